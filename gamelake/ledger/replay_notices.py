"""Replay notices: the identities of the rows that replays add to silver, for streams that may receive the events again.

A replay puts its notice once it is decided, before it commits a row. A batch that begins later knows the events. The
replay waits for batches that began earlier (`gamelake.recovery.replay.late_batches`).
"""

import uuid
from collections.abc import Sequence

import msgspec

from gamelake.ledger.manifests import EventsFile
from gamelake.objects.records import Records
from gamelake.objects.store import Store

_FOLDER = "_gamelake/replays/notices"
_SEED = "_gamelake/replays/seed"


class ReplayNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The identities of the events of a replay.

    Attributes:
        number: the replay's number.
        seed: the seed of the identities' hash.
        files: the files with the identities.
        until: when streams forget the events, in seconds since 1970.
    """

    number: int
    seed: str
    files: tuple[EventsFile, ...]
    until: int


class ReplayNotices:
    """The notices of a lakehouse; the streams delete those that have expired.

    Attributes:
        store: the lakehouse.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._records = Records(store, _FOLDER, ReplayNotice)

    def seed(self) -> str:
        """Return the seed of all replays' identities, and create it on the first call.

        With a seed for each replay, a stream would hash its events once for each of them.
        """
        self.store.put_new(_SEED, str(uuid.uuid4()).encode())
        return (self.store.get(_SEED) or b"").decode()

    def put(self, number: int, files: Sequence[EventsFile], until: int) -> None:
        """Write the notice of a decided replay for the streams.

        Args:
            number: the replay's number.
            files: the files with its identities. Files that have been deleted since, because they expired before the
                replay could finish, are omitted.
            until: when streams forget the events, in seconds since 1970.
        """
        gone = set(self.store.missing([file.path for file in files]))
        there = tuple(file for file in files if file.path not in gone)
        notice = ReplayNotice(number=number, seed=self.seed(), files=there, until=until)
        self._records.put(_name(number), notice)

    def numbers(self) -> list[int]:
        """List the numbers of all notices, in ascending order."""
        return [int(name) for name in self._records.names()]

    def read(self, number: int) -> ReplayNotice | None:
        """Read a notice; return None if it has been deleted."""
        return self._records.read(_name(number))

    def delete(self, number: int) -> None:
        """Delete an expired notice: first all identity files that its replay wrote, then the notice."""
        self.store.delete_all([*self.store.paths(replayed_events_folder(number)), self._records.path(_name(number))])


def replayed_events_folder(number: int) -> str:
    """Return the folder of a replay's identity files."""
    return f"_gamelake/replays/events/{_name(number)}"


def _name(number: int) -> str:
    return f"{number:012d}"
