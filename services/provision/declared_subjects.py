"""What `compose/registry/subjects.yaml` may say: how schemas of a subject may change from version to version."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from services.provision.declaration import load_declaration, refuse_first, repeated

SubjectName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]


class Compatibility(StrEnum):
    """What a new version of a schema is held against; the registry's own words.

    Source: Confluent, "Schema Evolution and Compatibility".
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class SubjectSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One subject; it may be there or not yet."""

    name: SubjectName
    compatibility: Compatibility


class DeclaredSubjects(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of the file; `others` is for subjects that it does not name."""

    others: Compatibility
    subjects: tuple[SubjectSpec, ...] = ()


def load_subjects(path: Path) -> DeclaredSubjects:
    """Read and check the file.

    Raises:
        ContractError: a key is unknown or a value is impossible; names file and line.
    """
    declared, document = load_declaration(path, DeclaredSubjects)
    refuse_first(repeated([subject.name for subject in declared.subjects], "$.subjects[{index}].name"), document)
    return declared
