"""A run over HTTP: the games' SDKs send to the gateway what their players do."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta

import numpy as np

from gamelake.model.errors import SettingsError
from gamelake.model.games import GameSpec
from gamelake.schemas.event_schemas import load_schemas
from services.sdk import Credentials
from tools.simulator.cli import HttpTarget, Options
from tools.simulator.defects import spoil_message
from tools.simulator.encoding import SubmittedEncoder, load_submitted
from tools.simulator.game_sdks import (
    EVENTS_PER_BATCH,
    Acknowledgements,
    GameSdks,
    UnacknowledgedError,
    read_credentials,
)
from tools.simulator.ledger import HttpLedger
from tools.simulator.pacing import Pacer, ProgressLine, events_per_step
from tools.simulator.players import Population, personal_column
from tools.simulator.sdk_payloads import packets
from tools.simulator.sessions import BLOCK_SEATS
from tools.simulator.spec import TrafficSpec
from tools.simulator.traffic import Parcel, Traffic

# Longer than a service or a broker takes to start again.
_PATIENCE = timedelta(seconds=120)
# Of so many people the ledger says who they are.
_SHOWN_PEOPLE = 20


class HttpRun:
    """Sends one run of traffic, and keeps the account of what was acknowledged.

    Raises:
        SettingsError: a game has no key.
    """

    def __init__(self, options: Options, target: HttpTarget, games: tuple[GameSpec, ...], spec: TrafficSpec) -> None:
        submitted = load_submitted(options.contracts)
        encoders = [SubmittedEncoder(each, submitted) for each in load_schemas(options.contracts, options.versions)]
        self._options = options
        self._open = ExitStack()
        self._traffic = Traffic(spec, encoders, spoil=spoil_message)
        acknowledgements = None
        if target.acknowledged is not None:
            acknowledgements = Acknowledgements(self._open.enter_context(target.acknowledged.open("wb")))
        self._sdks = GameSdks(target.url, _credentials(target, games), acknowledgements)

    def send(self, stop: threading.Event) -> None:
        """Hand all events over, in the order in which they happen."""
        rate = self._options.rate
        pacer = Pacer(rate, stop) if rate else None
        progress = ProgressLine(self._options.events)
        for parcel in self._traffic.parcels(events_per_step(rate) if rate else BLOCK_SEATS):
            if not self._hand_over(parcel, stop):
                break
            progress.advance(len(parcel.moments))
            if pacer:
                pacer.wait_after(len(parcel.moments))
        progress.close()

    def finish(self) -> HttpLedger:
        """Wait until all that was handed over is settled, and close the accounts."""
        with self._open:
            self._sdks.finish(_PATIENCE)
        return self._sdks.ledger(list(_who(self._traffic.population)))

    def check(self, ledger: HttpLedger) -> None:
        """See whether the gateway looked at all events.

        Raises:
            UnacknowledgedError: it did not.
        """
        if ledger.refused or ledger.unsettled:
            raise UnacknowledgedError(
                f"the gateway refused {ledger.refused} events and did not answer for {ledger.unsettled}"
            )

    def _hand_over(self, parcel: Parcel, stop: threading.Event) -> bool:
        home_games = self._traffic.home_games(parcel.moments)
        return all(self._sdks.send(packet, stop) for packet in packets(parcel, home_games, EVENTS_PER_BATCH))


def _credentials(target: HttpTarget, games: tuple[GameSpec, ...]) -> Mapping[str, Credentials]:
    """The keys by the games' titles, in the games' order."""
    known = read_credentials(target.keys_file)
    if missing := [game.name for game in games if game.name not in known]:
        raise SettingsError(f"the keys file {target.keys_file} has no key of {', '.join(missing)}")
    return {game.game_name: known[game.name] for game in games}


def _who(population: Population) -> Iterator[str]:
    """What the games know of some people, spread over all of them."""
    count = len(population.gamer_ids)
    people = np.unique(np.linspace(0, count - 1, min(count, _SHOWN_PEOPLE)).astype(np.int64))
    for column in (
        population.gamer_ids.take(people),
        population.device_ids.take(people),
        *(personal_column(name, population, people) for name in ("email", "player_name", "free_text")),
    ):
        yield from (text for text in column.to_pylist() if text)
