"""Rules for the Dockerfiles of all images: the checks of section 4 of the CIS Docker Benchmark that a text can show."""

import re
from pathlib import Path

import pytest

from tests.unit.compose.configured import COMPOSE

DOCKERFILES = {file.parent.name: file.read_text() for file in sorted(COMPOSE.glob("*/Dockerfile"))}
# Others are built from them, and no container runs them.
WITHOUT_A_USER = {"base", "java", "toolchain"}
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
UNVERIFIED = re.compile(
    r"--allow-unauthenticated|--force-yes|trusted=yes|--trusted-host|--insecure|GONOSUMDB|GONOSUMCHECK"
)
DOWNLOAD = re.compile(r"(^|&& |\| |; *)(curl|wget) ")

each_dockerfile = pytest.mark.parametrize("name", DOCKERFILES)


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, without comments."""
    lines = [line for line in DOCKERFILES[name].splitlines() if line and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines()]


def steps(name: str) -> list[str]:
    """The commands that an image is built by."""
    return [argument for instruction, argument in instructions(name) if instruction == "RUN"]


@each_dockerfile
def test_an_image_that_is_run_has_a_user_other_than_root(name: str) -> None:
    users = [argument for instruction, argument in instructions(name) if instruction == "USER"]

    assert (users[-1:] == []) == (name in WITHOUT_A_USER)
    assert not {"root", "0"} & set(users)


@each_dockerfile
def test_an_image_is_based_on_images_of_the_project_and_without_build_tools(name: str) -> None:
    stages = [argument.split() for instruction, argument in instructions(name) if instruction == "FROM"]
    own = {stage[-1] for stage in stages if "AS" in stage}
    sources = [stage[0] for stage in stages if stage[0] not in own]

    assert set(sources) <= {"${DEBIAN}", "${BASE}", "${JAVA}", "${TOOLCHAIN}"}
    assert sources[-1] != "${TOOLCHAIN}"
    assert ("${DEBIAN}" in sources) == (name == "base")


@each_dockerfile
def test_packages_are_installed_without_recommended_ones_from_a_list_of_the_same_step(name: str) -> None:
    for step in steps(name):
        assert ("apt-get update" in step) == ("apt-get install" in step)
        assert step.count("apt-get install") == step.count("--no-install-recommends")
        assert ("apt-get install" in step) == ("rm -rf /var/lib/apt/lists/*" in step)


@each_dockerfile
def test_files_are_copied_and_none_is_downloaded_or_unpacked_by_the_builder(name: str) -> None:
    assert "ADD" not in {instruction for instruction, _ in instructions(name)}


@each_dockerfile
def test_no_argument_or_variable_of_an_image_is_a_secret(name: str) -> None:
    stated = [argument for instruction, argument in instructions(name) if instruction in {"ARG", "ENV"}]

    assert [each for each in stated if SECRET_NAME.search(each)] == []


def test_secrets_and_private_keys_do_not_reach_the_builder() -> None:
    ignored = Path(".dockerignore").read_text().splitlines()

    assert ignored.index("compose/secrets") > ignored.index("!compose")
    assert ignored.index("compose/certificates") > ignored.index("!compose")


@each_dockerfile
def test_what_is_installed_is_verified_by_its_package_manager(name: str) -> None:
    for step in steps(name):
        assert not UNVERIFIED.search(step)
        assert not DOWNLOAD.search(step)
        assert step.count("pip install") == step.count("--require-hashes")
        assert "cargo build" not in step or "--locked" in step


def test_no_program_of_the_base_runs_with_the_rights_of_its_owner() -> None:
    assert "find / -xdev -type f -perm /6000 -exec chmod a-s {} +" in DOCKERFILES["base"]
