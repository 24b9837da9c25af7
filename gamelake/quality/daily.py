"""The table gold/quality: by day, how many rows each rule evaluated and how many broke it, from batch manifests.

Each batch counts once: the commit that adds its counts also has the batch id as transaction version.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from gamelake.delta.appends import BatchTransaction, schema_of
from gamelake.delta.comments import CommentsOf, no_comments
from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.naming import QUALITY, rules_path
from gamelake.objects.store import Store
from gamelake.quality.rules import RuleSet, Severity
from gamelake.scans.datasets import dataset

SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("game", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("judged", pa.int64()),
        pa.field("broken", pa.int64()),
    ]
)
_DAY = "day"
_KEY = ("day", "game", "rule", "fingerprint", "severity")
_ATTEMPTS = 20
# More batches than between two updates; a long history is added in parts.
_BATCHES_AT_ONCE = 2_000


class StoredRule(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a rule that evaluated rows; never deleted."""

    name: str
    expect: str
    severity: str
    owner: str
    why: str
    games: tuple[str, ...]
    fingerprint: str


def store_rules(store: Store, rules: RuleSet) -> None:
    """Store a set of rules under its fingerprint, which manifests refer to."""
    known = [
        StoredRule(
            name=rule.name,
            expect=rule.expect,
            severity=rule.severity,
            owner=rule.owner,
            why=rule.why,
            games=tuple(sorted(rule.games)),
            fingerprint=rule.fingerprint,
        )
        for rule in rules.rules
    ]
    if known:
        store.put_new(rules_path(rules.fingerprint), msgspec.json.encode(known))


@dataclass(frozen=True, slots=True)
class _Part:
    """Batches that were read, and how many were added to the table."""

    batches: list[int]
    taken: int


@dataclass(frozen=True, slots=True)
class QualityTable:
    """The table, with one stream's batches as source; several streams may write it."""

    store: Store
    stream: str
    comments: CommentsOf = no_comments

    @property
    def _table(self) -> OwnedTable:
        comments = self.comments(QUALITY)
        return OwnedTable(store=self.store, path=QUALITY, schema=SCHEMA, partition_by=(_DAY,), comments=comments)

    @property
    def _app_id(self) -> str:
        return f"quality-{self.stream}"

    def catch_up(self) -> int:
        """Add the batches that the table lacks. Return their number.

        Raises:
            TransientError: other writers committed first at every attempt.
        """
        done, beyond = 0, -1
        while (part := self._take_some(beyond)) is not None:
            beyond, done = part.batches[-1], done + part.taken
        return done

    def _take_some(self, beyond: int) -> "_Part | None":
        """Add the next batches after one; None if there are none."""

        def attempt() -> _Part | None:
            handle = self._table.open()
            last = handle.transaction_version(self._app_id) if handle else None
            after = beyond if last is None else max(beyond, last)
            manifests = Manifests(self.store, self.stream)
            new = manifests.after(after)[:_BATCHES_AT_ONCE]
            if not new:
                return None
            figures = _figures(self.store, manifests.read_many(new))
            if not figures:
                return _Part(new, 0)
            if not self._commit(handle, figures, new[-1]):
                raise CommitConflictError
            return _Part(new, len(new))

        return commit_with_retry(QUALITY, _ATTEMPTS, attempt)

    def _commit(self, handle: DeltaTable | None, figures: dict[tuple[object, ...], list[int]], batch: int) -> bool:
        days = {key[0] for key in figures}
        removed = self._table.files(handle, lambda file: _day_of(file) in days)
        for key, counts in _read(self.store, handle, removed) if handle else ():
            known = figures.setdefault(key, [0, 0])
            figures[key] = [known[0] + counts[0], known[1] + counts[1]]
        files = [self._written(figures, day) for day in sorted(days, key=str)]
        transaction = BatchTransaction(self._app_id, batch)
        return self._table.commit(handle, Replacement(files=files, removed=removed, transaction=transaction))

    def _written(self, figures: dict[tuple[object, ...], list[int]], day: object) -> DataFile:
        rows = [
            dict(zip((*_KEY, "judged", "broken"), (*key, *counts), strict=True))
            for key, counts in sorted(figures.items(), key=lambda item: str(item[0]))
            if key[0] == day
        ]
        table = pa.Table.from_pylist(rows, schema=SCHEMA).drop_columns([_DAY])
        return self._table.write(table, {_DAY: str(day)})


def _day_of(file: FileEntry) -> date:
    return date.fromisoformat(file.partition[_DAY] or "")


def _read(store: Store, handle: DeltaTable, files: list[FileEntry]) -> list[tuple[tuple[object, ...], list[int]]]:
    rows = dataset(store.location, QUALITY, schema_of(handle), files).to_table().to_pylist() if files else []
    return [(tuple(row[name] for name in _KEY), [row["judged"], row["broken"]]) for row in rows]


def _figures(store: Store, manifests: Iterable[BatchManifest]) -> dict[tuple[object, ...], list[int]]:
    """Evaluated and broken rows by day, game, rule, fingerprint and severity; the day is that of the manifest."""
    figures: defaultdict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    known: dict[str, list[StoredRule]] = {}
    for manifest in manifests:
        judged, day = manifest.judged, datetime.fromisoformat(manifest.written_at).date()
        if judged.rules not in known:
            kept = store.get(rules_path(judged.rules)) if judged.rules else None
            known[judged.rules] = msgspec.json.decode(kept, type=list[StoredRule]) if kept else []
        for rule in known[judged.rules]:
            for game, rows in judged.rows.items():
                if not rule.games or game in rule.games:
                    figures[day, game, rule.name, rule.fingerprint, rule.severity][0] += rows
        for count in judged.counts:
            of = figures[day, count.game, count.rule, count.fingerprint, str(Severity(count.severity))]
            of[0] -= count.unjudged
            of[1] += count.broken
    return dict(figures)
