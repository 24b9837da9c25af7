"""Registers the schema of laps and sends two laps, as a producer of Pitwall does."""

import argparse
import struct
import time
import uuid
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from lap_pb2 import SESSION_KIND_RACE, Car, LapCompleted, Sector

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--kafka", required=True)
parser.add_argument("--registry", required=True)
parser.add_argument("--topic", required=True)
options = parser.parse_args()

text = Path(__file__).with_name("lap.proto").read_text()
subject = f"{options.topic}-{LapCompleted.DESCRIPTOR.full_name}"
with SchemaRegistryClient({"url": options.registry}) as registry:
    schema_id = registry.register_schema(subject, Schema(text, "PROTOBUF"))
# Confluent's wire format: a zero, the schema's id, and a zero for the first message of its file.
frame = struct.pack(">bIb", 0, schema_id, 0)

producer = Producer({"bootstrap.servers": options.kafka, "acks": "all"})
for number, team in ((7, "Red Kite"), (12, "Silver Fox")):
    lap = LapCompleted(
        lap_uuid=str(uuid.uuid4()),
        crossed_line_at_ms=time.time_ns() // 1_000_000,
        driver_ref=f"driver-{number}",
        car=Car(team=team, number=number),
        session=SESSION_KIND_RACE,
        sectors=[Sector(time_ms=30_100, top_speed=312.5), Sector(time_ms=28_400 + number, top_speed=298.0)],
        tyre_wear={"front_left": 0.25, "rear_right": 0.5},
    )
    producer.produce(options.topic, frame + lap.SerializeToString())
producer.flush()
