"""Licences are read from packages' metadata, and each component needs an allowed one or an exception with a reason."""

from pathlib import Path

import pytest
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope
from packageurl import PackageURL

from gamelake.model.errors import SettingsError
from tools.supply_chain.images import SECTION
from tools.supply_chain.licence_check import AllowList, Verdict, check, unused
from tools.supply_chain.names_of_licences import any_of, expression, expression_of_text, identifiers, license_of

ALLOW_LIST = Path(__file__).resolve().parents[3] / "tools/supply_chain/licences.yaml"


@pytest.mark.parametrize(
    ("written", "spdx"),
    [
        ("Apache-2.0", "Apache-2.0"),
        ("The Apache Software License, Version 2.0", "Apache-2.0"),
        ("https://www.apache.org/licenses/LICENSE-2.0.txt", "Apache-2.0"),
        ("http://apache.org/licenses/LICENSE-2.0", "Apache-2.0"),
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("LGPLv3+", "LGPL-3.0-or-later"),
        ("BSD", None),
        ("Proprietary", None),
        ("", None),
    ],
)
def test_a_licence_is_recognised_by_its_identifier_name_or_address(written: str, spdx: str | None) -> None:
    assert expression(written) == spdx


def test_bsd_licences_are_distinguished_by_their_text() -> None:
    two = "Redistribution and use in source and binary forms, with or without modification, are permitted"
    three = f"{two} ... Neither the name of the\nauthor nor the names of contributors may be used"

    assert (expression_of_text(two), expression_of_text(three)) == ("BSD-2-Clause", "BSD-3-Clause")


@pytest.mark.parametrize("kind", ["AFFERO ", "LESSER ", ""])
def test_a_licence_of_gnu_is_not_taken_for_another_that_its_text_mentions(kind: str) -> None:
    assert "GPL" in (expression_of_text(f"GNU {kind}GENERAL PUBLIC LICENSE ... Apache License, Version 2.0") or "")


def test_of_several_licences_a_user_may_choose_one() -> None:
    assert any_of(["Eclipse Public License 2.0", "GPL2 w/ CPE", "of our own"]) == (
        "EPL-2.0 OR GPL-2.0-only WITH Classpath-exception-2.0"
    )


def test_the_ways_to_comply_with_an_expression_are_its_alternatives() -> None:
    assert set(identifiers("(MIT OR Apache-2.0) AND Unicode-3.0")) == {
        frozenset({"MIT", "Unicode-3.0"}),
        frozenset({"Apache-2.0", "Unicode-3.0"}),
    }


def verdict(licence: str | None, purl: str = "pkg:pypi/a@1", section: str = "") -> Verdict:
    component = Component(
        name="a",
        purl=PackageURL.from_string(purl),
        licenses=[license_of(licence)] if licence else [],
        properties=[Property(name=SECTION, value=section)] if section else [],
    )
    return next(check([("x", Bom(components=[component]))], AllowList.read(ALLOW_LIST))).verdict


@pytest.mark.parametrize("licence", ["MIT", "AGPL-3.0-only OR MIT", "Apache-2.0 AND BSD-3-Clause", "MIT License"])
def test_an_allowed_licence_passes(licence: str) -> None:
    assert verdict(licence) is Verdict.ALLOWED


@pytest.mark.parametrize("licence", ["AGPL-3.0-only", "MIT AND SSPL-1.0", "GPL-2.0-only", "BUSL-1.1"])
def test_a_licence_that_is_not_in_the_list_fails(licence: str) -> None:
    assert verdict(licence) is Verdict.NOT_ALLOWED


@pytest.mark.parametrize("licence", [None, "of our own"])
def test_a_component_without_a_known_licence_fails(licence: str | None) -> None:
    assert verdict(licence) is Verdict.UNKNOWN


def test_a_server_that_is_run_and_not_linked_passes_by_its_exception() -> None:
    assert verdict(None, "pkg:golang/github.com/minio/minio@v0.0.0") is Verdict.BY_EXCEPTION


@pytest.mark.parametrize(
    ("section", "expected"),
    [("libs", Verdict.ALLOWED), ("non-free/libs", Verdict.NOT_ALLOWED), ("contrib/net", Verdict.NOT_ALLOWED)],
)
def test_a_debian_package_passes_if_it_is_of_main(section: str, expected: Verdict) -> None:
    assert verdict("GPL-3.0-only", "pkg:deb/debian/a@1", section) is expected


def test_a_pin_for_another_system_needs_no_licence_as_it_is_not_installed() -> None:
    other = Component(name="a", purl=PackageURL("pypi", name="a", version="1"), scope=ComponentScope.EXCLUDED)

    findings = list(check([("x", Bom(components=[other]))], AllowList.read(ALLOW_LIST)))

    assert [one.verdict for one in findings] == [Verdict.NOT_INSTALLED]


def test_an_exception_that_no_component_needs_is_reported() -> None:
    assert "pkg:golang/*" in unused([("x", Bom())], AllowList.read(ALLOW_LIST))


def test_each_licence_of_the_list_is_one_of_spdx_and_each_entry_has_a_reason() -> None:
    allow_list = AllowList.read(ALLOW_LIST)

    assert all([*(one.reason for one in allow_list.allowed), *(one.reason for one in allow_list.exceptions)])
    for licence in (licence for entry in allow_list.allowed for licence in entry.licences):
        assert identifiers(licence) == (frozenset({licence}),)


def test_an_unknown_field_in_the_list_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "licences.yaml"
    path.write_text("allowed: []\nexceptions: []\nforbidden: []\n")

    with pytest.raises(SettingsError, match="forbidden"):
        AllowList.read(path)
