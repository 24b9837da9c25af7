"""Wires one process of the service; the server calls `create` in each of them."""

import ctypes
import gc
import os
import sys
from datetime import timedelta

from google.protobuf.message_factory import GetMessageClass

from gamelake.model.games import load_games
from gamelake.model.logs import set_up_logs
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.opening import open_vault
from gamelake.schemas.event_schemas import load_schema, load_schemas, register
from services.gateway import metrics
from services.gateway.app import App
from services.gateway.authentication import Authenticator, Keyring
from services.gateway.batching import BatchingPace, LoopBatcher
from services.gateway.columns import ColumnarEncoder
from services.gateway.events_endpoint import EventsEndpoint
from services.gateway.kafka_producer import EventProducer, QueueLimits
from services.gateway.limits import EventCapacity, RateLimits
from services.gateway.lockout import ClientLockout
from services.gateway.personal.fields import personal_fields
from services.gateway.personal.pseudonymization import PlayerCache, Pseudonymizer
from services.gateway.personal.vault_client import BatchedVault, PlayerStore
from services.gateway.preparation import BatchPreparer, ColumnarPreparer, RecordEncoder, RowPreparer
from services.gateway.quotas import Quotas
from services.gateway.request_body import BodyReader
from services.gateway.request_preparation import RequestPreparer
from services.gateway.settings import GatewaySettings
from services.gateway.support_endpoint import SupportEndpoint
from services.gateway.traces import request_tracer
from services.gateway.validation import EventValidator

# Under load some hundred events arrive during a pause, enough for columns. Clients that send single events would only
# wait: after a batch of 64 of them the pause is 3 ms.
_PACE = BatchingPace(pause=timedelta(milliseconds=10), flush_size=2000, full_pause_size=200)
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
# Calls of support staff are few; each waits for its record.
_AUDIT_QUEUE = QueueLimits(records=1_000, bytes=2**20, timeout=timedelta(seconds=10))

# Options of mallopt(3).
_ARENA_MAX, _TRIM_THRESHOLD, _MMAP_THRESHOLD = -8, -1, -3
_ARENAS = 2
_TRIM_BYTES, _MMAP_BYTES = 2**20, 2**18


def create() -> App:
    """The application, from the environment.

    Raises:
        StartupError: a setting, the contract or the keys are invalid.
        RegistryUnavailableError: the registry does not answer.
    """
    _limit_retained_memory()
    set_up_logs(os.environ)
    settings = GatewaySettings.from_env()
    contract = load_games(settings.contracts / "games.yaml")
    version = settings.contract_version
    schemas = load_schemas(settings.contracts, version)
    submitted = load_schema(settings.contracts / "submitted" / f"v{version}", version).message
    ids = register(schemas, registry_url=settings.registry_url, topic=settings.topic, writer=settings.registry_writer)
    keyring = Keyring(settings.keys_file, contract)
    lockout = ClientLockout(settings.wrong_signatures, settings.lockout)
    quotas = Quotas(settings.quota_directory)
    vault_keyring = VaultKeyring(settings.vault.keys_file)
    personal = personal_fields(submitted)
    pseudonymizer = Pseudonymizer(submitted, personal)
    columnar_encoder = ColumnarEncoder(schemas[-1].message, ids[-1], personal.vault)

    metrics.initialize((game.name for game in contract.games), settings.queue.records)

    def events_endpoint() -> EventsEndpoint:
        _reduce_garbage_collection()
        cache = PlayerCache(settings.remembered_players)
        validator = EventValidator(contract, submitted, pseudonymizer.extractor)
        preparer = BatchPreparer(
            RowPreparer(validator, cache, pseudonymizer, RecordEncoder(ids[-1])),
            ColumnarPreparer(contract, cache, pseudonymizer, columnar_encoder),
        )
        players = PlayerStore(cache, BatchedVault(open_vault(settings.vault.access), vault_keyring))
        return EventsEndpoint(
            authenticator=Authenticator(keyring, settings.signature_window),
            lockout=lockout,
            rates=RateLimits(settings.burst, settings.processes),
            quotas=quotas,
            limits=settings.body,
            body_reader=BodyReader(settings.body),
            capacity=EventCapacity(settings.queue.records),
            validator=validator,
            preparer=RequestPreparer(LoopBatcher(preparer.prepare, _PACE), players),
            producer=EventProducer(settings.kafka, settings.topic, settings.queue),
            tracer=request_tracer(settings.traces, schemas[-1].message),
        )

    def support_endpoint() -> SupportEndpoint:
        return SupportEndpoint(
            authenticator=Authenticator(keyring, settings.signature_window),
            lockout=lockout,
            signature_window=settings.signature_window,
            vault=open_vault(settings.vault.access),
            keyring=vault_keyring,
            event=GetMessageClass(submitted),
            audit=EventProducer(settings.kafka, settings.audit_topic, _AUDIT_QUEUE),
        )

    return App(events_endpoint, support_endpoint, keyring, quotas)


def _reduce_garbage_collection() -> None:
    """Exclude the objects of the start from collections, and collect less often: events have no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 50)


def _limit_retained_memory() -> None:
    """Have the C library return free memory to the system: few arenas, trimmed early.

    By default each thread keeps the memory that it once used: 50 MiB after an outage of Kafka. No effect where the C
    library has no mallopt. Source: mallopt(3).
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
