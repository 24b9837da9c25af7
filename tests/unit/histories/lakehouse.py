"""The lakehouse of a history: its streams, whose Kafka and Spark are in this process, and its jobs."""

import importlib
import io
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from gamelake.contract.games import load_games
from gamelake.delta.tables import DeltaTables
from gamelake.layers.comments import EventComments
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import Manifests
from gamelake.model.failpoints import Failpoint, Failpoints, Kill
from gamelake.objects.store import Location, Store
from gamelake.privacy.vault.secrecy import PlayerKey, VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import StoredPlayer
from gamelake.program import OK
from gamelake.schemas.schema_cache import schema_path
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed, RefreshOutcome
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.runner import fan_out, finish_last_batch
from gamelake.streaming.driver.settings import IngestSettings
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.files import decider as files_decider
from gamelake.streaming.files.settings import FilesSettings
from gamelake.streaming.kafka.source import SourceTopic
from gamelake.streaming.plan import DedupPlan
from tests.support.vault_keys import key_file
from tests.unit.histories.events import GAMES, NEW_GAME, NEWEST_SCHEMA, NOW, Event, Source
from tests.unit.histories.kafka import Topic
from tests.unit.streaming.tasks import game_event_schema, schema_id
from tests.unit.streaming_files.task_runs import notification

_CONTRACTS = Path("contracts").resolve()
_WHOLE = yaml.safe_load((_CONTRACTS / "games.yaml").read_text(encoding="utf-8"))
# Without what columns mean, which takes most of the time to read.
_CONTRACT = {name: part for name, part in _WHOLE.items() if name != "tables"}
_NO_ADDRESS = "127.0.0.1:1"
_CORES = 2
# As the settings name them.
STREAMS = {Source.KAFKA: "ingest_events", Source.FILE: "ingest_files"}
_MAY_NAME_PLAYERS = re.compile("/_delta_log/|^_gamelake/(erasures|settled|statements|streams/[a-z_]+/manifests)/")
_ZSTD = b"\x28\xb5\x2f\xfd"


class CrashError(BaseException):
    """The process was killed here. No handler of errors may catch it."""


class _Subject:
    """The versions of the events' schema in the registry."""

    def newest(self, subject: str) -> int:
        """The id of the newest version."""
        del subject
        return schema_id(NEWEST_SCHEMA)

    def older(self, subject: str) -> Iterator[int]:
        """Ask for no other."""
        del subject
        return iter(())


@dataclass
class _Driver:
    """The driver of a stream, from its start to its end."""

    topic: Topic
    tables: DeltaTables
    stream: Stream
    source: OpenStream
    batches: FanOut[DedupPlan]

    def run_batch(self) -> bool:
        """Process what has come since the last batch, or again one that was not completed, as Spark does.

        Returns:
            False if nothing has come.
        """
        folder = self.stream.folder(self.source.generation)
        path = self.source.generation.checkpoint
        state = folder.read()
        assert state is not None
        done = -1 if state.last_commit is None else state.last_commit
        number = done + 1
        if state.last_offsets in (None, done):
            before = folder.offsets(done) if done >= 0 else {}
            if all(before.get(partition, 0) == end for partition, end in self.topic.ends().items()):
                return False
            self._log(f"{path}/offsets/{number}", "{}", json.dumps({self.topic.name: self.topic.ends()}))
        self.batches(cast("Any", None), number)
        self._log(f"{path}/commits/{number}", '{"nextBatchWatermarkMs":0}')
        return True

    def _log(self, path: str, *lines: str) -> None:
        self.stream.store.put(path, "\n".join(("v1", *lines)).encode())


@dataclass
class Lakehouse:
    """A lakehouse in a folder, the topic of its events, its folder of arriving files, and its vault."""

    folder: Path
    _titles: dict[str, Sequence[str]] = field(
        default_factory=lambda: {game: [title] for title, game in GAMES.items() if title != NEW_GAME}
    )
    _drivers: dict[Source, _Driver] = field(default_factory=dict)
    _files: int = 0

    def __post_init__(self) -> None:
        """Write the contract and the vault's keys, and register the schemas."""
        self.lake, self.landing = self.folder / "lake", self.folder / "landing"
        for each in (self.lake, self.landing):
            each.mkdir()
        self.events, self.notifications = Topic("events"), Topic("files.notifications")
        (self.folder / "metrics.yaml").symlink_to(_CONTRACTS / "metrics.yaml")
        self._write_contract()
        self.environment = {
            "GAMELAKE_LAKEHOUSE": self.location.uri,
            "GAMELAKE_LANDING": self.landing.as_uri(),
            "GAMELAKE_GAMES_FILE": str(self.folder / "games.yaml"),
            "GAMELAKE_REGISTRY_URL": f"http://{_NO_ADDRESS}",
            "GAMELAKE_BOOTSTRAP_SERVERS": _NO_ADDRESS,
            "GAMELAKE_TOPIC": self.events.name,
            "GAMELAKE_VAULT": str(self.folder / "vault.db"),
            "GAMELAKE_VAULT_KEYS_FILE": str(key_file(self.folder)),
            # More than one task, and several files, of a few records.
            "GAMELAKE_RECORDS_PER_TASK": "3",
            "GAMELAKE_DEDUP_WINDOW_SECONDS": "86400",
        }
        for version in (1, 2, NEWEST_SCHEMA):
            self.store.put(schema_path(schema_id(version)), game_event_schema(version).SerializeToString())

    @property
    def location(self) -> Location:
        return Location(uri=self.lake.as_uri())

    @property
    def store(self) -> Store:
        return Store(self.location)

    @property
    def games_file(self) -> Path:
        return self.folder / "games.yaml"

    def _write_contract(self) -> None:
        games = [{"name": game, "match": [*titles]} for game, titles in self._titles.items()]
        self.games_file.write_text(yaml.safe_dump({**_CONTRACT, "games": games}, sort_keys=False))

    def set_titles(self, **titles: Sequence[str]) -> None:
        """Change the titles of games in the contract, or add games; streams read it when they start."""
        self._titles |= titles
        self._write_contract()
        self.stop()

    def send(self, *events: Event) -> None:
        """Write events to the topic, those of a player to one partition."""
        for event in events:
            partition = 0 if event.gamer is None else int(event.gamer, 16) % len(self.events.partitions)
            self.events.add(partition, event.record(), (event.gamer or "").encode())

    def drop_file(self, *events: Event) -> None:
        """Write a file of events, and its notification."""
        self._files += 1
        key, content = f"{self._files:04d}.jsonl", b"\n".join(event.line() for event in events)
        (self.landing / key).write_bytes(content)
        self.notifications.add(0, notification(key, len(content), "landing"))

    def ingest(self) -> None:
        """Run batches of each stream until it has read all."""
        for source, start in ((Source.KAFKA, self._start_events), (Source.FILE, self._start_files)):
            if source not in self._drivers:
                self._drivers[source] = start()
            while self._drivers[source].run_batch():
                pass

    def batches(self) -> Mapping[Source, int]:
        """The number of the next batch of each stream."""
        decided = {source: Manifests(self.store, stream).batches() for source, stream in STREAMS.items()}
        return {source: batches[-1] + 1 if batches else 0 for source, batches in decided.items()}

    def ingest_and_crash(self, at: Kill) -> None:
        """Begin to ingest, until the process of both streams dies at a step, or after both batches."""
        with interrupted(at, crash), suppress(CrashError):
            self.ingest()
        self.stop()

    def stop(self) -> None:
        """End the process of the streams."""
        for driver in self._drivers.values():
            driver.tables.__exit__(None, None, None)
        self._drivers.clear()

    def _start_events(self) -> _Driver:
        settings = IngestSettings.from_env(self.environment)
        return self._start(settings, self.events, lambda source: fan_out(settings, source, _CORES))

    def _start_files(self) -> _Driver:
        settings = FilesSettings.from_env(self.environment)

        def batches(source: OpenStream) -> FanOut[DedupPlan]:
            with patch.object(files_decider, "SchemaRegistry", lambda _: _Subject()):
                return files_decider.files_fan_out(settings, source, _CORES)

        return self._start(settings.reading, self.notifications, batches)

    def _start(
        self, settings: IngestSettings, topic: Topic, batches: Callable[[OpenStream], FanOut[DedupPlan]]
    ) -> _Driver:
        """Start a stream as its job does (`gamelake.streaming.driver.runner.prepare`), but on a topic in memory."""
        tables = stream_tables(self.location, EventComments(load_games(self.games_file), self.store)).__enter__()
        stream = Stream(self.store, settings.stream, topic.name)
        finish_last_batch(stream, tables)
        source = OpenStream(stream, stream.open(topic.id()), tables, cast("SourceTopic", topic))
        return _Driver(topic, tables, stream, source, batches(source))

    def refresh_figures(self) -> frozenset[str]:
        """Bring all figures that are stored up to date: here is what does so.

        Returns:
            The tables that are held back.
        """
        held = set()
        for refresh in GoldTables(self.store, load_gold(self.games_file)).now():
            done = attempt(refresh)
            assert isinstance(done, Refreshed), f"{done.table}: {done.reason}"
            held |= {done.table} if done.outcome is RefreshOutcome.HELD else set()
        failed = KpiRefresh(self.store, now=lambda: NOW)().failed
        assert not failed, failed
        return frozenset(held)

    def run(self, job: str, *arguments: str) -> Any:  # noqa: ANN401 # what a job prints
        """Run a job to its end, in this process. Return what it prints.

        Raises:
            GamelakeError: the job's error.
        """
        module, printed = importlib.import_module(f"jobs.{job}"), io.StringIO()
        with (
            patch.object(sys, "argv", [job, *arguments]),
            patch.dict(os.environ, self.environment),
            patch.object(signal, "signal"),
            redirect_stdout(printed),
        ):
            code = module.main()
        assert code == OK, printed.getvalue()
        return json.loads(printed.getvalue())

    def files_with(self, text: str) -> list[str]:
        """The files of the lakehouse that have a text, whatever their format is.

        Logs, manifests and records of erasures are left out: by docs/privacy.md they may have a pseudonym.
        """
        found = []
        for path in (path for path in self.lake.rglob("*") if path.is_file()):
            name = path.relative_to(self.lake).as_posix()
            if not _MAY_NAME_PLAYERS.search(name) and any(text.encode() in content for content in _contents(path)):
                found.append(name)
        return found

    def know(self, player: PlayerKey) -> None:
        """Put a player into the vault, as the gateway does at the first event."""
        keys, vault = VaultKeys.read(self.folder / "vault-keys.yaml"), SqliteVault(self.folder / "vault.db")
        token = keys.token(player.game, player.pseudonym)
        stored = StoredPlayer(
            token=token,
            game=player.game,
            pseudonym=player.pseudonym,
            key_id=keys.current,
            wrapped_key=keys.wrap(player, token),
        )
        vault.add([stored])
        vault.close()


@contextmanager
def interrupted(at: Kill | None, by: Callable[[], object]) -> Iterator[None]:
    """Call a function at a step of the programs that the block runs, once."""
    reached, lock = Counter[Failpoint](), Lock()

    def reach(_: Failpoints, step: Failpoint) -> None:
        with lock:
            reached[step] += 1
            is_here = at is not None and step is at.step and reached[step] == at.at
        if is_here:
            by()

    with patch.object(Failpoints, "reach", reach):
        yield


def crash() -> None:
    """End the process, which runs no further code of its own."""
    raise CrashError


def _contents(path: Path) -> Iterator[bytes]:
    """What a file has: its bytes, and what they are compressed from."""
    content = path.read_bytes()
    yield content
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path).to_pylist()).encode()
    elif content[:4] == _ZSTD:
        yield pa.input_stream(pa.BufferReader(content), compression="zstd").read()
