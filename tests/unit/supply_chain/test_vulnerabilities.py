"""Known vulnerabilities are found by the versions that OSV's advisories affect, in a database of OSV's format."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component
from packageurl import PackageURL

from gamelake.model.errors import SettingsError
from tools.supply_chain import __main__ as program
from tools.supply_chain.osv import Database, PackageName, parsed
from tools.supply_chain.sbom import write
from tools.supply_chain.vulnerabilities import Ignored, Result, age_in_days, check, looked_up, table

TODAY = date(2026, 6, 1)


def advisory(package: str, *events: Mapping[str, str], **more: Any) -> dict[str, Any]:  # noqa: ANN401 # JSON
    ecosystem, _, name = package.partition("/")
    kind = "SEMVER" if ecosystem in ("crates.io", "Go") else "ECOSYSTEM"
    affected = {
        "package": {"ecosystem": ecosystem, "name": name},
        "ranges": [{"type": kind, "events": list(events)}],
        "versions": more.pop("versions", []),
    }
    return {"id": "X-1", "modified": "2026-05-01T00:00:00Z", "affected": [affected], **more}


def database(folder: Path, *advisories: Mapping[str, Any]) -> Path:
    for one in advisories:
        ecosystem = one["affected"][0]["package"]["ecosystem"].partition(":")[0]
        (folder / ecosystem).mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(folder / ecosystem / "all.zip", "a") as archive:
            archive.writestr(f"{one['id']}.json", json.dumps(one))
    return folder


def component(purl: str) -> Component:
    return Component(name="x", purl=PackageURL.from_string(purl), bom_ref=purl)


def result(folder: Path, *purls: str, ignored: Sequence[Ignored] = ()) -> Result:
    return check([("python", Bom(components=map(component, purls)))], folder, ignored, TODAY)


FROM_START_TO_2 = ({"introduced": "0"}, {"fixed": "2.0"})


@pytest.mark.parametrize(
    ("package", "purl", "affected"),
    [
        ("PyPI/a-b", "pkg:pypi/a-b@1.10", True),
        ("PyPI/a-b", "pkg:pypi/a-b@2.0rc1", True),
        ("PyPI/a-b", "pkg:pypi/a-b@2.0.post1", False),
        ("Maven/g:a", "pkg:maven/g/a@2.0-beta-1", True),
        ("Maven/g:a", "pkg:maven/g/a@2.0.Final", False),
        ("Maven/g:a", "pkg:maven/other/a@1.0", False),
        ("Debian:13/src", "pkg:deb/debian/bin@1?distro=debian-13&upstream=src%401.9-1", True),
        ("Debian:13/src", "pkg:deb/debian/src@1.9-1%7Ebpo1?distro=debian-13", True),
        ("Debian:13/src", "pkg:deb/debian/src@1:1.0-1?distro=debian-13", False),
        ("Debian:12/src", "pkg:deb/debian/src@1.0-1?distro=debian-13", False),
    ],
)
def test_versions_are_compared_by_the_rules_of_their_ecosystem(
    tmp_path: Path, package: str, purl: str, affected: bool
) -> None:
    folder = database(tmp_path, advisory(package, *FROM_START_TO_2))

    assert bool(result(folder, purl).found) is affected


@pytest.mark.parametrize(
    ("purl", "package"),
    [
        ("pkg:cargo/a@1.2.3", "crates.io/a"),
        ("pkg:golang/x.org/a@v1.2.3", "Go/x.org/a"),
        ("pkg:golang/github.com/IBM/sarama@v1.2.3", "Go/github.com/IBM/sarama"),
        ("pkg:golang/stdlib@1.2.3", "Go/stdlib"),
    ],
)
def test_crates_and_go_modules_are_found_too(tmp_path: Path, purl: str, package: str) -> None:
    folder = database(tmp_path, advisory(package, {"introduced": "1.0.0"}, {"fixed": "1.2.4"}))

    assert [one.fixed_in for one in result(folder, purl).found] == [("1.2.4",)]


@pytest.mark.parametrize(
    ("version", "affected"),
    [("0.9", False), ("1.0", True), ("1.5", True), ("1.6", False), ("2.0", True), ("2.4", True), ("2.5", False)],
)
def test_a_version_is_affected_between_introduction_and_correction_of_each_line(
    tmp_path: Path, version: str, affected: bool
) -> None:
    events = ({"introduced": "2.0"}, {"last_affected": "2.4"}, {"introduced": "1.0"}, {"fixed": "1.6"})
    folder = database(tmp_path, advisory("PyPI/a", *events))

    assert bool(result(folder, f"pkg:pypi/a@{version}").found) is affected


def test_a_version_that_an_advisory_lists_is_affected(tmp_path: Path) -> None:
    folder = database(tmp_path, advisory("PyPI/a", versions=["7.1"]))

    assert [one.id for one in result(folder, "pkg:pypi/a@7.1", "pkg:pypi/a@7.2").found] == ["X-1"]


def test_an_advisory_with_fields_of_a_later_schema_counts(tmp_path: Path) -> None:
    folder = database(tmp_path, advisory("PyPI/a", {"introduced": "0"}, of_a_later_schema={"x": 1}))

    assert [one.id for one in result(folder, "pkg:pypi/a@1").found] == ["X-1"]


def test_a_withdrawn_advisory_does_not_count(tmp_path: Path) -> None:
    folder = database(tmp_path, advisory("PyPI/a", {"introduced": "0"}, withdrawn="2026-05-02T00:00:00Z"))

    assert result(folder, "pkg:pypi/a@1").found == []


def test_advisories_of_several_databases_on_one_vulnerability_are_one_line(tmp_path: Path) -> None:
    folder = database(
        tmp_path,
        advisory("PyPI/a", {"introduced": "0"}, id="PYSEC-1", aliases=["CVE-1"]),
        advisory(
            "PyPI/a", *FROM_START_TO_2, id="GHSA-1", aliases=["CVE-1"], database_specific={"severity": "MODERATE"}
        ),
    )

    (heading, line) = table(result(folder, "pkg:pypi/a@1").found)

    assert heading.split() == ["id", "severity", "package", "version", "fixed", "in", "SBOMs"]
    assert line.split() == ["GHSA-1", "medium", "a", "1", "2.0", "python"]


def test_the_severity_is_that_of_the_cvss_vector_where_the_advisory_has_no_words_for_it(tmp_path: Path) -> None:
    vector = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"
    folder = database(
        tmp_path,
        advisory("PyPI/a", {"introduced": "0"}, severity=[{"type": "CVSS_V3", "score": vector}]),
        advisory("PyPI/b", {"introduced": "0"}, id="X-2", severity=[{"type": "CVSS_V3", "score": "damaged"}]),
    )

    assert [one.severity for one in result(folder, "pkg:pypi/b@1", "pkg:pypi/a@1").found] == ["critical", "unknown"]


def test_a_version_that_can_not_be_compared_is_reported_and_the_others_are_checked(tmp_path: Path) -> None:
    damaged = advisory("PyPI/a", {"introduced": "0"}, {"fixed": "what?"})
    folder = database(tmp_path, damaged, advisory("PyPI/b", {"introduced": "0"}, id="X-2"))

    checked = result(folder, "pkg:pypi/a@1", "pkg:pypi/b@1")

    assert [one.id for one in checked.found] == ["X-2"]
    assert "what?" in checked.database.not_comparable[0]


def entry(until: date) -> Ignored:
    return Ignored(id="CVE-1", package="a", reason="not reachable", until=until)


def test_an_ignored_vulnerability_does_not_count_until_its_day(tmp_path: Path) -> None:
    folder = database(tmp_path, advisory("PyPI/a", {"introduced": "0"}, aliases=["CVE-1"]))

    until_today = result(folder, "pkg:pypi/a@1", ignored=[entry(TODAY)])
    until_yesterday = result(folder, "pkg:pypi/a@1", ignored=[entry(date(2026, 5, 31))])

    assert (until_today.found, len(until_today.ignored)) == ([], 1)
    assert (len(until_yesterday.found), len(until_yesterday.expired)) == (1, 1)


def test_an_ignored_vulnerability_that_no_component_has_is_reported(tmp_path: Path) -> None:
    folder = database(tmp_path, advisory("PyPI/a", {"introduced": "5"}, aliases=["CVE-1"]))

    assert result(folder, "pkg:pypi/a@1", ignored=[entry(TODAY)]).unused == [entry(TODAY)]


def test_an_ignored_vulnerability_needs_a_reason_and_a_day(tmp_path: Path) -> None:
    path = tmp_path / "ignored.yaml"

    path.write_text("- {id: X, package: a, reason: ' ', until: 2026-06-01}\n")
    with pytest.raises(SettingsError, match="X has no reason"):
        Ignored.read(path)
    path.write_text("- {id: X, package: a, reason: none}\n")
    with pytest.raises(SettingsError, match="until"):
        Ignored.read(path)


def test_the_projects_own_list_of_ignored_vulnerabilities_is_valid() -> None:
    assert isinstance(Ignored.read(Path(program.__file__).with_name("ignored_vulnerabilities.yaml")), list)


def test_the_age_of_a_database_is_that_of_its_newest_advisory(tmp_path: Path) -> None:
    old, new = advisory("PyPI/a"), advisory("PyPI/b", id="X-2", modified="2026-05-20T12:00:00.5Z")
    read = Database.read(database(tmp_path, old, new), [PackageName("PyPI", "c")])

    assert age_in_days(read.newest["PyPI"], datetime(2026, 6, 1, tzinfo=UTC)) == 11


def test_a_component_that_osv_has_no_ecosystem_for_is_counted(tmp_path: Path) -> None:
    assert looked_up(PackageURL.from_string("pkg:docker/grafana/grafana@13")) is None
    assert result(tmp_path, "pkg:docker/grafana/grafana@13").without_package == 1


# https://maven.apache.org/pom.html#version-order-specification
@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("1-alpha-1", "1-beta-1"),
        ("1-beta-1", "1-milestone-1"),
        ("1-milestone-1", "1-rc-1"),
        ("1-rc-1", "1-SNAPSHOT"),
        ("1-SNAPSHOT", "1"),
        ("1", "1-sp"),
        ("1-sp", "1.1"),
        ("1.9", "1.10"),
        ("32.0.0-android", "33.0.0-jre"),
    ],
)
def test_versions_of_maven_are_in_its_order(less: str, more: str) -> None:
    assert parsed("Maven", less) < parsed("Maven", more)


@pytest.fixture
def sboms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sbom"
    monkeypatch.setattr(program, "SBOMS", folder)
    write("python", [component("pkg:pypi/a@1")], "1", folder / "python.cdx.json")
    return folder


@pytest.mark.usefixtures("sboms")
def test_the_exit_code_says_whether_a_vulnerability_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    affecting = database(tmp_path / "affecting", advisory("PyPI/a", {"introduced": "0"}))
    harmless = database(tmp_path / "harmless", advisory("PyPI/a", {"introduced": "2"}))

    assert program.main(["vulnerabilities", "--database", str(harmless)]) == 0
    assert "0 vulnerabilities in 1 packages" in capsys.readouterr().out
    assert program.main(["vulnerabilities", "--database", str(affecting)]) == program.FOUND == 1
    assert "the newest advisory of the database is" in capsys.readouterr().out


@pytest.mark.usefixtures("sboms")
def test_without_a_database_the_check_says_so_and_how_to_get_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["vulnerabilities", "--database", str(tmp_path)]) == program.NO_DATABASE == 2

    assert "there is no database of PyPI" in (error := capsys.readouterr().err)
    assert "make vulnerability-database" in error
