"""Jobs that run to their end in a process of their own, as an operator starts them."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def run_job(job: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run `jobs/<job>.py` with these variables, and those of this process."""
    command = (sys.executable, "-m", f"jobs.{job}", *arguments)
    environment = os.environ | variables
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
