"""Signals as the topic has them."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gamelake.live_ops.publishing import Publisher
from gamelake.live_ops.signals import Signal
from gamelake.live_ops.watch_tables import signal_rows


def publish_signals(publisher: Publisher, changes: Sequence[Signal]) -> None:
    """Publish what begins and what ends, under the name of the game; returns when Kafka has it.

    Raises:
        KafkaUnavailableError: Kafka did not take them.
    """
    if not changes:
        return
    rows = signal_rows(changes)
    for name in ("kind", "phase"):
        words = pc.binary_join_element_wise(f"SIGNAL_{name.upper()}", pc.utf8_upper(rows[name]), "_")
        rows = rows.set_column(rows.schema.get_field_index(name), name, words)
    publisher.publish(rows["game"].combine_chunks().cast(pa.binary()), rows)
