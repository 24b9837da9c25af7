"""Sends a run of traffic to Kafka, and prints the ledger."""

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from gamelake.errors import GamelakeError, SettingsError
from gamelake.kafka import KafkaAccess
from gamelake.wire.event_schemas import load_schemas, register
from services.simulator.cli import Options, parse
from services.simulator.encoding import Encoder
from services.simulator.ledger import Bookkeeper
from services.simulator.pacing import Pacer, events_per_step
from services.simulator.progress import ProgressLine
from services.simulator.sender import DeliveryError, KafkaSender
from services.simulator.sessions import BLOCK_SEATS
from services.simulator.spec import TrafficSpec
from services.simulator.traffic import Traffic


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulator; 0 when Kafka has confirmed every record."""
    options = parse(arguments)
    try:
        return _run(options, _stop_on_signals())
    except GamelakeError as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 1


def _run(options: Options, stop: threading.Event) -> int:
    spec = _spec(options)
    schemas = load_schemas(options.contracts, options.versions)
    ids = register(schemas, registry_url=options.registry_url, topic=options.topic)
    traffic = Traffic(spec, [Encoder(schema, schema_id) for schema, schema_id in zip(schemas, ids, strict=True)])
    sender = KafkaSender(
        kafka=KafkaAccess.of(options.bootstrap_servers, options.kafka_credentials_file), topic=options.topic
    )
    books = Bookkeeper(spec)
    try:
        _send(traffic, sender, books, options, stop)
    finally:
        acked = sender.finish()
        _publish(books.ledger(acked=acked).to_json(), options.ledger)
    if acked != sender.sent:
        raise DeliveryError(f"Kafka confirmed {acked} of {sender.sent} records")
    return 0


def _send(traffic: Traffic, sender: KafkaSender, books: Bookkeeper, options: Options, stop: threading.Event) -> None:
    pacer = Pacer(options.rate, stop) if options.rate else None
    progress = ProgressLine(options.events)
    for parcel in traffic.parcels(events_per_step(options.rate) if options.rate else BLOCK_SEATS):
        sender.send(parcel)
        books.note(parcel.moments, records=len(parcel.values), value_bytes=parcel.value_bytes)
        progress.advance(len(parcel.moments))
        if pacer:
            pacer.wait_after(len(parcel.moments))
        if stop.is_set():
            break
    progress.close()


def _spec(options: Options) -> TrafficSpec:
    # Only here, so that everything else of the simulator runs without the contract of the tables.
    from gamelake.contracts.games import load_games  # noqa: PLC0415

    games = load_games(options.contracts / "games.yaml").games
    if options.games > len(games):
        raise SettingsError(f"the contract names {len(games)} games, not {options.games}")
    return TrafficSpec(
        game_names=tuple(game.game_name for game in games[: options.games]),
        versions=options.versions,
        events=options.events,
        seed=options.seed,
        players=options.players,
        history=options.history,
        shares=options.shares,
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
