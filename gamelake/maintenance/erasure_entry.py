"""The entry of a table's log that takes rows out: files without them in the place of files that had them.

Source: Delta Transaction Log Protocol, headings "Add File and Remove File" and "Commit Provenance Information".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gamelake.lake.actions import ENGINE, add_action, now_milliseconds, remove_action
from gamelake.lake.datafile import DataFile
from gamelake.lake.file_entries import FileEntry
from gamelake.lake.log import ERASURE_NOTE


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file that held such rows, how many, and the files with its other rows."""

    old: FileEntry
    erased: int
    new: Sequence[DataFile]


def entry(rewritten: Sequence[Rewritten], run: str) -> list[dict[str, Any]]:
    """The actions of a run's entry; its files are there already."""
    now = now_milliseconds()
    adds = [add_action(file, now) for each in rewritten for file in each.new]
    info = {
        "timestamp": now,
        "operation": "DELETE",
        # Not who: a predicate would keep the pseudonym in the log.
        "operationParameters": {"predicate": "[]"},
        "operationMetrics": {
            "numRemovedFiles": str(len(rewritten)),
            "numAddedFiles": str(len(adds)),
            "numDeletedRows": str(sum(each.erased for each in rewritten)),
        },
        "isBlindAppend": False,
        "engineInfo": ENGINE,
        ERASURE_NOTE: run,
    }
    return [{"commitInfo": info}, *(remove_action(each.old, now) for each in rewritten), *adds]
