"""A run over HTTP: the games' SDKs send the events to the ingest gateway."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta

import numpy as np

from gamelake.contract.games import GameSpec
from gamelake.model.errors import SettingsError
from gamelake.schemas.event_schemas import load_schemas
from services.sdk import Credentials
from tools.simulator.cli import HttpTarget, SimulatorOptions
from tools.simulator.defects import corrupt_messages
from tools.simulator.encoding import SubmittedEncoder, load_submitted
from tools.simulator.game_sdks import (
    EVENTS_PER_BATCH,
    AcknowledgedIdsFile,
    GameSdks,
    UnacknowledgedError,
    read_credentials,
)
from tools.simulator.ledger import HttpLedger
from tools.simulator.pacing import Pacer, ProgressLine, events_per_step
from tools.simulator.players import Population, personal_column
from tools.simulator.sdk_payloads import payloads_by_game
from tools.simulator.sessions import BLOCK_SLOTS
from tools.simulator.spec import TrafficSpec
from tools.simulator.traffic import TrafficBatch, TrafficGenerator

# Longer than a service or a broker takes to restart.
_PATIENCE = timedelta(seconds=120)
# Number of players whose personal data is in the ledger.
_PLAYERS_IN_LEDGER = 20


class HttpRun:
    """Sends one run of traffic and records what was acknowledged.

    Raises:
        SettingsError: a game has no key.
    """

    def __init__(
        self, options: SimulatorOptions, target: HttpTarget, games: tuple[GameSpec, ...], spec: TrafficSpec
    ) -> None:
        submitted = load_submitted(options.contracts)
        encoders = [SubmittedEncoder(each, submitted) for each in load_schemas(options.contracts, options.versions)]
        self._options = options
        self._open = ExitStack()
        self._traffic = TrafficGenerator(spec, encoders, corrupt=corrupt_messages)
        acknowledgements = None
        if target.acknowledged is not None:
            acknowledgements = AcknowledgedIdsFile(self._open.enter_context(target.acknowledged.open("wb")))
        self._sdks = GameSdks(target.url, _credentials(target, games), spec.population, acknowledgements)

    def send(self, stop: threading.Event) -> None:
        """Hand all events to the SDKs, in their order, until stopped."""
        rate = self._options.rate
        pacer = Pacer(rate, stop) if rate else None
        progress = ProgressLine(self._options.events)
        for batch in self._traffic.batches(events_per_step(rate) if rate else BLOCK_SLOTS):
            if not self._hand_over(batch, stop):
                break
            progress.advance(len(batch.events))
            if pacer:
                pacer.wait_after(len(batch.events))
        progress.close()

    def finish(self) -> HttpLedger:
        """Wait until all events are settled, and sum up the run."""
        with self._open:
            self._sdks.finish(_PATIENCE)
        return self._sdks.ledger(list(_personal_samples(self._traffic.population)))

    def check(self, ledger: HttpLedger) -> None:
        """Check that the gateway accepted or rejected every event.

        Raises:
            UnacknowledgedError: some were refused with their batch, or are still waiting.
        """
        if ledger.refused or ledger.unsettled:
            raise UnacknowledgedError(
                f"the gateway refused {ledger.refused} events, and {ledger.unsettled} were not acknowledged in time"
            )

    def _hand_over(self, batch: TrafficBatch, stop: threading.Event) -> bool:
        home_games = self._traffic.home_games(batch.events)
        return all(self._sdks.send(payload, stop) for payload in payloads_by_game(batch, home_games, EVENTS_PER_BATCH))


def _credentials(target: HttpTarget, games: tuple[GameSpec, ...]) -> Mapping[str, Credentials]:
    """The keys by the games' titles, in the order of the games."""
    known = read_credentials(target.keys_file)
    if missing := [game.name for game in games if game.name not in known]:
        raise SettingsError(f"the keys file {target.keys_file} has no key of {', '.join(missing)}")
    return {game.game_name: known[game.name] for game in games}


def _personal_samples(population: Population) -> Iterator[str]:
    """Personal data of some players, spread evenly over all of them."""
    count = len(population.gamer_ids)
    people = np.unique(np.linspace(0, count - 1, min(count, _PLAYERS_IN_LEDGER)).astype(np.int64))
    for column in (
        population.gamer_ids.take(people),
        population.device_ids.take(people),
        *(personal_column(name, population, people) for name in ("email", "player_name", "free_text")),
    ):
        yield from (text for text in column.to_pylist() if text)
