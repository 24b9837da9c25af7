"""Failpoints: steps at which a test has the process killed by SIGKILL, as a crash would."""

import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock


class Failpoint(StrEnum):
    """The steps of a batch, a replay, an erasure, a compaction and the audit between which a crash may happen."""

    BEFORE_FILES = "before_files"
    AFTER_FILES = "after_files"
    AFTER_SETTLE_RECORD = "after_settle_record"
    AFTER_MANIFEST = "after_manifest"
    AFTER_REPLAY_NOTICE = "after_replay_notice"
    AFTER_TABLE_COMMIT = "after_table_commit"
    AFTER_COMMITS = "after_commits"
    AFTER_ERASURE_REQUEST = "after_erasure_request"
    AFTER_FORGETTING = "after_forgetting"
    AFTER_ERASED_FILES = "after_erased_files"
    AFTER_ERASED_TABLE = "after_erased_table"
    AFTER_PURGE_PLAN = "after_purge_plan"
    AFTER_PURGED_FILE = "after_purged_file"
    AFTER_COMPACTED_FILES = "after_compacted_files"
    AFTER_COMPACTED_TABLE = "after_compacted_table"
    AFTER_AUDIT_FILE = "after_audit_file"
    AFTER_AUDIT_COMMIT = "after_audit_commit"


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the process the n-th time that it reaches a step."""

    step: Failpoint
    at: int = 1

    @classmethod
    def parse(cls, text: str) -> "Kill":
        """Read `after_table_commit:7`.

        Raises:
            ValueError: there is no such step.
        """
        step, _, at = text.partition(":")
        return cls(Failpoint(step), int(at or 1))


@dataclass(slots=True)
class Failpoints:
    """Counts the steps of this process and kills it at the configured one; a no-op without one."""

    kill: Kill | None = None
    _reached: Counter[Failpoint] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def reach(self, step: Failpoint) -> None:
        """Count a step; kill the process if it is the configured one."""
        if self.kill is None or self.kill.step is not step:
            return
        with self._lock:
            self._reached[step] += 1
            if self._reached[step] == self.kill.at:
                os.kill(os.getpid(), signal.SIGKILL)
