"""Licences as their authors write them, in terms of SPDX.

Metadata of packages has SPDX expressions, names ("The Apache Software License, Version 2.0"), addresses, classifiers or
whole texts. What is not recognised stays as it was written, and the check of licences reports it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.license import License
from license_expression import get_spdx_licensing

_NAMES_FILE = Path(__file__).with_name("names_of_licences.yaml")
# A sentence that no other licence of this list has, the longer licence first.
# Names that fit several licences: the text decides which one it is.
_OPEN = frozenset({"", "bsd", "bsdlicense", "thebsdlicense", "bsdlicence", "unknown", "seelicensefile", "osiapproved"})
# A longer one is a text.
_LONGEST_NAME = 200
_BSD = r"redistribution and use in source and binary forms"
_TEXTS = (
    (r"^.{0,200}gnu affero general public license", "AGPL-3.0-only"),
    (r"^.{0,200}gnu (?:lesser|library) general public license", "LGPL-2.1-or-later"),
    (r"^.{0,200}gnu general public license", "GPL-2.0-only"),
    (r"apache license,? version 2\.0|www\.apache\.org/licenses/license-2\.0", "Apache-2.0"),
    (r"mozilla public license,? (?:version|v\.) ?2\.0", "MPL-2.0"),
    (_BSD + r".*(?:neither the name|names? of .{0,200}not be used)", "BSD-3-Clause"),
    (_BSD, "BSD-2-Clause"),
    (r"permission to use, copy, modify, and/?o?r? ?distribute this software", "ISC"),
    (r"permission is hereby granted, free of charge, to any person obtaining", "MIT"),
)  # fmt: skip


@cache
def expression(written: str) -> str | None:
    """Return a package's licence statement as a normalised SPDX expression; None if it is not recognised."""
    written = " ".join(written.split())
    if not written:
        return None
    return _names().get(_key(written)) or _as_expression(written)


def expression_of_text(text: str) -> str | None:
    """Return the SPDX identifier of a licence's full text; None if it is not one of the common ones."""
    plain = " ".join(text.split()).lower()
    return next((identifier for pattern, identifier in _TEXTS if re.search(pattern, plain)), None)


def leaves_open(written: str) -> bool:
    """Return True if a statement is a licence's text, or too vague to contradict one: nothing, or BSD."""
    return len(written) > _LONGEST_NAME or _key(written) in _OPEN


def any_of(written: Iterable[str]) -> str | None:
    """Return the SPDX expression of licences from which a user may choose; None if none is recognised."""
    known = {found for found in map(expression, written) if found is not None}
    return _as_expression(" OR ".join(f"({one})" for one in sorted(known))) if known else None


def license_of(found: str) -> License:
    """Return a licence for an SBOM: an SPDX identifier, an SPDX expression, or a name."""
    return LicenseFactory().make_from_string(" ".join(found.split())[:_LONGEST_NAME])


def identifiers(spdx: str) -> tuple[frozenset[str], ...]:
    """Return the ways to comply with an SPDX expression, each the set of identifiers whose terms apply together.

    `A OR B AND C` has the ways {A} and {B, C}. An exception is part of its identifier: `GPL-2.0-only WITH X`.
    """
    rules = _spdx()
    ways = _parts(rules.dnf(rules.parse(spdx, validate=True, strict=True)), rules.OR)
    return tuple(frozenset(one.render() for one in _parts(way, rules.AND)) for way in ways)


def _parts(node: Any, operator: type[Any]) -> tuple[Any, ...]:  # noqa: ANN401 # a node of a library without types
    return node.args if isinstance(node, operator) else (node,)


def _as_expression(written: str) -> str | None:
    try:
        return str(_spdx().parse(written, validate=True, strict=True).render())
    # It fails on free text in more ways than it documents.
    except Exception:
        return None


def _key(written: str) -> str:
    """Return a name or address without the parts in which spellings differ."""
    return re.sub(r"^https?://(?:www\.)?|[^a-z0-9.+/]|\.(?:txt|html|php)$|/$", "", written.lower())


@cache
def _spdx() -> Any:  # noqa: ANN401 # of a library without types
    """Read the list of SPDX, which takes a second."""
    return get_spdx_licensing()


@cache
def _names() -> Mapping[str, str]:
    read: Mapping[str, list[str]] = yaml.safe_load(_NAMES_FILE.read_text(encoding="utf-8"))
    return {_key(name): identifier for identifier, names in read.items() for name in names}
