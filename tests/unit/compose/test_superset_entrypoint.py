"""Superset starts after its database, people and dashboards are prepared, and no command line has its password."""

import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import add_program
from tests.unit.compose.configured import COMPOSE

PASSWORD = "0123456789abcdef"  # noqa: S105 # of no database
FAKE = """#!/bin/bash
echo "${0##*/} $* PGPASSFILE=$PGPASSFILE" >>"$LOG"
[ "${0##*/}" != "$FAILING" ]
"""


def start(folder: Path, failing: str = "") -> tuple[int, list[str]]:
    for program in ("python", "gunicorn"):
        add_program(folder / "bin" / program, FAKE)
    (folder / "postgres-superset").write_text(f"username=superset\npassword={PASSWORD}\n")
    environment = {
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "LOG": str(folder / "log"),
        "FAILING": failing,
        "SUPERSET_SECRETS": str(folder),
        "SUPERSET_RUN": str(folder),
        "SUPERSET_PROGRAM": "/program",
    }
    done = subprocess.run(("/bin/bash", str(COMPOSE / "superset/entrypoint.sh")), env=environment, check=False)
    return done.returncode, (folder / "log").read_text().splitlines()


def test_it_is_prepared_and_then_served_by_one_process_over_tls(tmp_path: Path) -> None:
    code, (prepared, served) = start(tmp_path)

    assert code == 0
    assert prepared.startswith("python /program/provision.py")
    assert served.startswith("gunicorn wsgi:application")
    assert "--workers 1 --worker-class gthread --threads 8" in served
    assert f"--certfile {tmp_path}/tls-superset --keyfile {tmp_path}/tls-superset" in served


def test_a_failed_preparation_ends_it(tmp_path: Path) -> None:
    code, steps = start(tmp_path, failing="python")

    assert code != 0
    assert len(steps) == 1


def test_the_password_is_in_a_file_of_its_user_only(tmp_path: Path) -> None:
    _, steps = start(tmp_path)
    file = tmp_path / "pgpass"

    assert not any(PASSWORD in step for step in steps)
    assert all(step.endswith(f"PGPASSFILE={file}") for step in steps)
    assert file.read_text() == f"postgres:5432:superset:superset:{PASSWORD}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("file", ["superset_config.py", "provision.py", "wsgi.py", "numpy_names.py"])
def test_its_programs_are_valid_python(file: str) -> None:
    source = (COMPOSE / "superset/program" / file).read_text(encoding="utf-8")

    assert compile(source, file, "exec")
