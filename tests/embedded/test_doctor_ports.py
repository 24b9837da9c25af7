"""`make doctor` finds a port that a program of this machine has, which no engine knows of."""

import socket
import subprocess
from pathlib import Path

from tests.support.programs import add_program
from tools.embedded.ports import HOST

DOCTOR = Path(__file__).parents[2] / "compose" / "doctor.sh"
# An engine that is up and has no containers.
FAKE_DOCKER = """#!/bin/bash
case "$*" in
  *ServerVersion*) echo 28.2.2 ;;
  *MemTotal* | *NCPU*) echo 4000000000 ;;
esac
"""


def doctor_says(folder: Path, port: int) -> str:
    """The line about a stack with this one port."""
    docker = add_program(folder / "bin" / "docker", FAKE_DOCKER)
    (folder / "compose.yaml").write_text("services: {trino: {ports: ['127.0.0.1:${TRINO_PORT}:8080']}}\n")
    (folder / ".env").write_text(f"TRINO_PORT={port}\n")
    environment = {"PATH": f"{docker.parent}:/usr/bin:/bin", "COMPOSE_DIRECTORY": str(folder)}
    outcome = subprocess.run(
        (str(DOCTOR), "--minimal"), env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    (line,) = [line for line in outcome.stdout.splitlines() if " ports: " in line]
    return line


def test_a_port_in_use_is_named_with_both_remedies(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]

        line = doctor_says(tmp_path, port)

    assert line.startswith(f"FAIL ports: another program listens on {HOST}:{port}; stop it")
    assert "TRINO_PORT=... in compose/.env.override" in line
