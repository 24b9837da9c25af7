"""A release is made of a committed tree whose version has a section in the changelog."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tools.release import Image, Release, ReleaseError

IMAGE = Image("gamelake/kafka:0.2.0", "linux/amd64", "sha256:1")


def git(project: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    command = ("git", "-C", str(project), *identity, *arguments)
    subprocess.run(command, capture_output=True, check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A committed checkout of version 0.2.0, with the files that make has built for it."""
    files = {
        ".gitignore": "/build/\n",
        "pyproject.toml": '[project]\nname = "gamelake"\nversion = "0.2.0"\n',
        "CHANGELOG.md": "# Changelog\n\n## 0.2.0\n\n- New.\n- Newer.\n\n## 0.1.0\n",
        "compose/.env": "# Versions\nGAMELAKE_TAG=0.2.0\n",
        "deploy/helm/gamelake/Chart.yaml": "version: 7.0.0\nappVersion: 0.2.0\n",
        "build/dist/gamelake-0.2.0-py3-none-any.whl": "wheel",
        "build/dist/gamelake-0.1.0-py3-none-any.whl": "older wheel",
        "build/jars/spark/gamelake-logstore-0.1.0.jar": "jar",
        "build/jars/spark/delta.jar": "another's",
        "build/sbom/python.cdx.json": "{}",
        "build/sbom/image-kafka.cdx.json": "{}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def change(project: Path, name: str, old: str, new: str) -> None:
    """Replace text in a file, and commit it."""
    path = project / name
    path.write_text(path.read_text().replace(old, new))
    git(project, "commit", "--quiet", "--all", "--message", "change")


def test_its_notes_are_its_section_of_the_changelog(project: Path) -> None:
    assert Release.of(project).notes == "- New.\n- Newer."


def test_it_has_the_wheel_our_jar_the_sboms_the_images_and_the_notes(project: Path) -> None:
    collected = {path.name for path in Release.of(project).collect([IMAGE])}

    assert collected == {
        "NOTES.md",
        "SHA256SUMS.linux-amd64",
        "gamelake-0.2.0-py3-none-any.whl",
        "gamelake-logstore-0.1.0.jar",
        "image-kafka.linux-amd64.cdx.json",
        "images.linux-amd64.txt",
        "python.cdx.json",
    }
    assert (project / "build/release/0.2.0/NOTES.md").read_text() == "# Gamelake 0.2.0\n\n- New.\n- Newer.\n"


def test_the_checksums_are_of_all_other_files(project: Path) -> None:
    folder = Release.of(project).folder

    Release.of(project).collect([IMAGE])

    lines = (folder / "SHA256SUMS.linux-amd64").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    others = [path for path in folder.iterdir() if not path.name.startswith("SHA256SUMS")]
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in others}


def test_what_an_earlier_try_left_is_not_in_it(project: Path) -> None:
    release = Release.of(project)
    release.folder.mkdir(parents=True)
    (release.folder / "old.txt").write_text("old")

    assert "old.txt" not in {path.name for path in release.collect([IMAGE])}


def test_a_tree_that_differs_from_its_commit_is_refused(project: Path) -> None:
    (project / "new.py").write_text("")

    with pytest.raises(ReleaseError, match=r"not what was committed(.|\n)*new\.py"):
        Release.of(project)


def test_a_version_without_a_section_in_the_changelog_is_refused(project: Path) -> None:
    change(project, "CHANGELOG.md", "## 0.2.0\n\n- New.\n- Newer.\n", "## 0.2.0\n\n")

    with pytest.raises(ReleaseError, match=r"has no section `## 0.2.0`"):
        Release.of(project)


def test_a_change_above_the_section_of_its_version_is_refused(project: Path) -> None:
    change(project, "CHANGELOG.md", "## 0.2.0", "## Unreleased\n\n- Later.\n\n## 0.2.0")

    with pytest.raises(ReleaseError, match=r"has `## Unreleased` above `## 0.2.0`"):
        Release.of(project)


@pytest.mark.parametrize("file", ["compose/.env", "deploy/helm/gamelake/Chart.yaml"])
def test_a_version_that_is_not_the_same_everywhere_is_refused(project: Path, file: str) -> None:
    change(project, file, "0.2.0", "0.1.9")

    with pytest.raises(ReleaseError, match=f"{file} has no line .*0.2.0"):
        Release.of(project)


@pytest.mark.parametrize("kind", [(), ("--annotate", "--message", "released")], ids=["plain tag", "annotated tag"])
def test_a_version_is_released_from_one_commit_only(project: Path, kind: tuple[str, ...]) -> None:
    git(project, "tag", *kind, "v0.2.0")
    assert Release.of(project).version == "0.2.0"

    change(project, "CHANGELOG.md", "Newer", "Newest")

    with pytest.raises(ReleaseError, match="tag of another commit; raise the version"):
        Release.of(project)


def test_a_tag_of_another_version_is_refused(project: Path) -> None:
    git(project, "tag", "v0.3.0")

    with pytest.raises(ReleaseError, match=r"tag of this commit is v0\.3\.0"):
        Release.of(project)


def test_something_that_was_not_built_is_named(project: Path) -> None:
    (project / "build/dist/gamelake-0.2.0-py3-none-any.whl").unlink()

    with pytest.raises(ReleaseError, match=r"build/dist/gamelake-0.2.0-py3-none-any.whl is missing"):
        Release.of(project).collect([IMAGE])
