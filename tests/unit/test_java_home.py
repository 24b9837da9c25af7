"""Finding a Java: make and the services must find the same one."""

import subprocess
from pathlib import Path

import pytest

from tests.support.programs import add_program
from tools.embedded.java import find_java_home, java_version
from tools.embedded.process import ServiceMissingError

SCRIPT = Path(__file__).resolve().parents[2] / "compose" / "prerequisites.sh"
PATH = "/usr/bin:/bin"


def a_java_home(home: Path, version: str) -> Path:
    """A folder with the files of an installed JDK of that version."""
    add_program(home / "bin" / "java", "#!/bin/sh\n")
    (home / "release").write_text(f'IMPLEMENTOR="Vendor"\nJAVA_VERSION="{version}"\n')
    return home


def found_by_script(environment: dict[str, str]) -> Path:
    """What make would put into JAVA_HOME."""
    outcome = subprocess.run((str(SCRIPT), "java"), env=environment, capture_output=True, text=True, check=True)
    return Path(outcome.stdout.strip())


@pytest.mark.parametrize(("stated", "version"), [("25.0.1", 25), ("21", 21), ("17.0.15", 17), ("1.8.0_402", 1)])
def test_the_major_version_is_read_from_the_release_file(tmp_path: Path, stated: str, version: int) -> None:
    assert java_version(a_java_home(tmp_path, stated)) == version


def test_a_new_enough_java_home_is_taken(tmp_path: Path) -> None:
    home = a_java_home(tmp_path / "jdk", "21.0.2")
    environment = {"JAVA_HOME": str(home), "HOME": str(tmp_path), "PATH": PATH}

    assert find_java_home(environment) == home
    assert found_by_script(environment) == home


def test_a_newer_java_home_in_another_folder_is_preferred_to_an_old_one(tmp_path: Path) -> None:
    old = a_java_home(tmp_path / "jdk", "17.0.1")
    a_java_home(tmp_path / ".sdkman" / "candidates" / "java" / "25-tem", "25")
    environment = {"JAVA_HOME": str(old), "HOME": str(tmp_path), "PATH": PATH}

    found = find_java_home(environment)

    # The machine may have one of its own under /usr/lib/jvm, which comes first.
    assert found != old
    assert java_version(found) >= 21
    assert found_by_script(environment) == found


def test_without_a_jdk_the_packaged_java_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tools.embedded.java.INSTALLED", ())
    packaged = a_java_home(tmp_path / "java", "25.0.2")
    monkeypatch.setattr("tools.embedded.java.PACKAGED", packaged)

    assert find_java_home({"PATH": ""}) == packaged


def test_the_message_about_a_missing_java_has_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tools.embedded.java.INSTALLED", ())
    monkeypatch.setattr("tools.embedded.java.PACKAGED", tmp_path)

    with pytest.raises(ServiceMissingError, match="JDK 21 or newer is missing: run make java"):
        find_java_home({"PATH": ""})
