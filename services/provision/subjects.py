"""Brings the registry's compatibility levels in line with `compose/registry/subjects.yaml`.

`python -m services.provision.subjects`. It registers no schema: that is the producers' part.
"""

import logging

from gamelake.program import OK, run
from services.provision.changes import Changes
from services.provision.declared_subjects import Compatibility, DeclaredSubjects, load_subjects
from services.provision.patience import wait_for
from services.provision.registry import Registry
from services.provision.settings import SubjectsSettings


def main() -> int:
    """Run once; 0 when the registry is as declared."""
    settings = SubjectsSettings.from_env()
    declared = load_subjects(settings.file)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each request says nothing that is not said below
    registry = Registry(settings.url)
    found = wait_for("registry", registry.level_of_others, settings.patience)
    changes = Changes("subjects")
    bring_levels_in_line(registry, declared, found, changes)
    changes.close()
    return OK


def bring_levels_in_line(
    registry: Registry, declared: DeclaredSubjects, found: Compatibility, changes: Changes
) -> None:
    """Set each level that differs."""
    if found is not declared.others:
        registry.set_level_of_others(declared.others)
        changes.note(f"others are {declared.others} instead of {found}")
    for subject in declared.subjects:
        level = registry.level(subject.name)
        if level is not subject.compatibility:
            registry.set_level(subject.name, subject.compatibility)
            changes.note(f"{subject.name} is {subject.compatibility} instead of {level or 'without a level'}")
        elif level is Compatibility.NONE:
            # It may mean that the subject has no level, and so that of the others: only setting it makes sure.
            registry.set_level(subject.name, subject.compatibility)


if __name__ == "__main__":
    run(main)
