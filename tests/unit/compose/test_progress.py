"""A command that prints nothing for minutes is shown to make progress."""

import re
import subprocess
from pathlib import Path

from tests.unit.compose.configured import COMPOSE

MAKEFILE = (COMPOSE.parent / "Makefile").read_text(encoding="utf-8")


def test_the_growth_of_a_folder_is_printed_until_the_command_ends(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "first").write_bytes(b"1" * 2**20)
    # The command waits for the news about itself.
    script = f"""
        mkfifo news
        exec 3<>news
        exec 9> >('{COMPOSE}/progress.sh' "Fetching the jars" jars missing 2>news)
        read -r first <&3
        head -c {3 * 2**20} /dev/urandom >jars/second
        until read -r line <&3 && [[ $line = *" 3 MB so far" ]]; do :; done
        echo "$line"
    """

    ran = subprocess.run(
        ("/bin/bash", "-euc", script),
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PROGRESS_SECONDS": "1"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    assert re.fullmatch(r"Fetching the jars: \d+ s, 3 MB so far\n", ran.stdout)


def test_it_ends_with_the_command() -> None:
    # All of its output is read only once it has ended, too.
    script = f"exec 9> >('{COMPOSE}/progress.sh' 'Nothing') && exec true"

    subprocess.run(("/bin/bash", "-c", script), capture_output=True, check=True, timeout=30)


def test_make_setup_shows_the_progress_of_what_takes_minutes() -> None:
    quiet = [line for line in MAKEFILE.splitlines() if line.startswith("\t@$(install)") or "@$(fetch_jars)" in line]

    assert quiet == []
    assert MAKEFILE.count("$(call progress,") >= 3
