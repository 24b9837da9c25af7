"""A run straight to Kafka: producers without a gateway, in all versions of the contract."""

import threading

from gamelake.kafka import KafkaAccess
from gamelake.wire.event_schemas import load_schemas, register
from tools.simulator.cli import KafkaTarget, Options
from tools.simulator.encoding import Encoder
from tools.simulator.ledger import Bookkeeper, Ledger
from tools.simulator.pacing import Pacer, events_per_step
from tools.simulator.progress import ProgressLine
from tools.simulator.sender import DeliveryError, KafkaSender
from tools.simulator.sessions import BLOCK_SEATS
from tools.simulator.spec import TrafficSpec
from tools.simulator.traffic import Traffic


class KafkaRun:
    """Sends one run of traffic, and keeps the account of what Kafka has confirmed.

    Raises:
        RegistryUnavailableError: the registry took no schema.
        DeliveryError: Kafka does not answer.
    """

    def __init__(self, options: Options, target: KafkaTarget, spec: TrafficSpec) -> None:
        schemas = load_schemas(options.contracts, options.versions)
        ids = register(schemas, registry_url=target.registry_url, topic=target.topic)
        self._options = options
        self._traffic = Traffic(spec, [Encoder(schema, number) for schema, number in zip(schemas, ids, strict=True)])
        self._sender = KafkaSender(
            kafka=KafkaAccess.of(target.bootstrap_servers, target.credentials_file), topic=target.topic
        )
        self._books = Bookkeeper(spec)

    def send(self, stop: threading.Event) -> None:
        """Send all events.

        Raises:
            DeliveryError: Kafka has refused records for good.
        """
        rate = self._options.rate
        pacer = Pacer(rate, stop) if rate else None
        progress = ProgressLine(self._options.events)
        for parcel in self._traffic.parcels(events_per_step(rate) if rate else BLOCK_SEATS):
            self._sender.send(parcel)
            self._books.note(parcel.moments, records=len(parcel.values), value_bytes=parcel.value_bytes)
            progress.advance(len(parcel.moments))
            if pacer:
                pacer.wait_after(len(parcel.moments))
            if stop.is_set():
                break
        progress.close()

    def finish(self) -> Ledger:
        """Wait until Kafka has answered for every record, and close the accounts."""
        return self._books.ledger(acked=self._sender.finish())

    def check(self, ledger: Ledger) -> None:
        """See whether Kafka has everything.

        Raises:
            DeliveryError: it has not.
        """
        if ledger.acked != ledger.sent:
            raise DeliveryError(f"Kafka confirmed {ledger.acked} of {ledger.sent} records")
