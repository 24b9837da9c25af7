"""Sends a run of traffic to the gateway or to Kafka, and prints the ledger."""

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from gamelake.contract.games import GameSpec, load_games
from gamelake.model.errors import GamelakeError, SettingsError
from tools.simulator.cli import HttpTarget, KafkaTarget, SimulatorOptions, parse
from tools.simulator.http_run import HttpRun
from tools.simulator.kafka_run import KafkaRun
from tools.simulator.players import ANONYMOUS, IDENTIFYING
from tools.simulator.spec import TrafficSpec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulator; 0 when every event was acknowledged, or rejected one by one."""
    options = parse(arguments)
    try:
        _run(options, _stop_on_signals())
    except GamelakeError as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options: SimulatorOptions, stop: threading.Event) -> None:
    games = _games(options)
    spec = _spec(options, games)
    match options.target:
        case HttpTarget() as gateway:
            over_http = HttpRun(options, gateway, games, spec)
            try:
                over_http.send(stop)
            finally:
                acknowledged = over_http.finish()
                _publish(acknowledged.to_json(), options.ledger)
            over_http.check(acknowledged)
        case KafkaTarget() as kafka:
            over_kafka = KafkaRun(options, kafka, spec)
            try:
                over_kafka.send(stop)
            finally:
                confirmed = over_kafka.finish()
                _publish(confirmed.to_json(), options.ledger)
            over_kafka.check(confirmed)


def _games(options: SimulatorOptions) -> tuple[GameSpec, ...]:
    games = load_games(options.contracts / "games.yaml").games
    if options.games > len(games):
        raise SettingsError(f"the contract names {len(games)} games, not {options.games}")
    return tuple(games[: options.games])


def _spec(options: SimulatorOptions, games: Sequence[GameSpec]) -> TrafficSpec:
    return TrafficSpec(
        game_names=tuple(game.game_name for game in games),
        versions=options.versions,
        events=options.events,
        seed=options.seed,
        players=options.players,
        history=options.history,
        shares=options.shares,
        incidents=options.incidents,
        naming=IDENTIFYING if isinstance(options.target, HttpTarget) else ANONYMOUS,
    )


def _publish(ledger: str, path: Path | None) -> None:
    if path is None:
        print(ledger)
    else:
        path.write_text(ledger + "\n")


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop


if __name__ == "__main__":
    sys.exit(main())
