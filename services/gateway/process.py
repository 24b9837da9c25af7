"""Wires one process of the service; the server calls `create` in each of them."""

import os
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from gamelake.contract.games import GamesContract, load_games
from gamelake.model.logs import set_up_logs
from gamelake.observability.metrics.endpoint import served
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.opening import open_vault
from gamelake.schemas.event_schemas import load_schema, load_schemas, register
from services.gateway import metrics
from services.gateway.app import App, Endpoints
from services.gateway.authentication import Authenticator, Keyring
from services.gateway.events.batching import BatchingPace, LoopBatcher
from services.gateway.events.columns import ColumnarEncoder
from services.gateway.events.endpoint import EventsEndpoint
from services.gateway.events.preparation import BatchPreparer, ColumnarPreparer, RecordEncoder, RowPreparer
from services.gateway.events.request_preparation import RequestPreparer
from services.gateway.events.validation import EventValidator
from services.gateway.flags.endpoint import MOST_BODY_BYTES, FlagsEndpoint
from services.gateway.flags.experiments import ExperimentFlags
from services.gateway.kafka_producer import EventProducer, QueueLimits
from services.gateway.limits.memory_budget import MemoryBudget
from services.gateway.limits.quotas import Quotas
from services.gateway.limits.rates import RateLimits
from services.gateway.limits.turns import Turns
from services.gateway.personal.fields import PersonalFields, check_vault_takes, personal_fields
from services.gateway.personal.pseudonymization import PlayerCache, Pseudonymizer
from services.gateway.personal.vault_client import BatchedVault, PlayerStore
from services.gateway.process_memory import limit_retained_memory, reduce_garbage_collection
from services.gateway.request_body import BodyReader
from services.gateway.settings import GatewaySettings
from services.gateway.support_endpoint import SupportEndpoint
from services.gateway.traces import request_tracer

# Under load about a hundred events arrive during a pause, enough for columns. Clients that send single events would
# only wait: after a batch of 64 of them the pause is 3 ms.
_PACE = BatchingPace(pause=timedelta(milliseconds=10), flush_size=2000, full_pause_size=200)
# Calls of support staff are few; each waits for its record.
_AUDIT_QUEUE = QueueLimits(bytes=2**20, timeout=timedelta(seconds=10))


@dataclass(frozen=True, slots=True)
class _EventTypes:
    """The types of events that games send and that Kafka gets, by the contract.

    Attributes:
        submitted: the message that games send.
        kept: the message of Kafka's records, whose schema has this id in the registry.
    """

    contract: GamesContract
    submitted: Descriptor
    kept: Descriptor
    schema_id: int
    personal: PersonalFields


@dataclass(frozen=True, slots=True)
class _Access:
    """The keys of games with their limits, and the keys of encryption; the endpoints share them."""

    keyring: Keyring
    quotas: Quotas
    rates: RateLimits
    memory: MemoryBudget
    vault_keyring: VaultKeyring


def create() -> App:
    """Create the application from the environment.

    Raises:
        StartupError: a setting, the contract or the keys are invalid.
        RegistryUnavailableError: the registry does not answer.
    """
    limit_retained_memory()
    set_up_logs(os.environ)
    settings = GatewaySettings.from_env()
    types = _event_types(settings)
    access = _Access(
        keyring=Keyring(settings.keys_file, types.contract),
        quotas=Quotas(settings.quota_directory),
        rates=RateLimits(settings.burst, settings.processes),
        memory=MemoryBudget(settings.memory),
        vault_keyring=VaultKeyring(settings.vault.keys_file),
    )
    metrics.initialize((game.name for game in types.contract.games), settings.memory)
    return App(
        partial(_endpoints, settings, types, access),
        access.keyring,
        access.quotas,
        # Each process answers for all of them.
        lambda: served(metrics.registry_of_service(), settings.telemetry, shares_port=True),
    )


def _event_types(settings: GatewaySettings) -> _EventTypes:
    """Load the contract, and register its schemas."""
    contract = load_games(settings.contracts / "games.yaml")
    version = settings.contract_version
    schemas = load_schemas(settings.contracts, version)
    submitted = load_schema(settings.contracts / "submitted" / f"v{version}", version).message
    personal = personal_fields(submitted)
    check_vault_takes(submitted, personal, contract.lengths)
    ids = register(schemas, registry_url=settings.registry_url, topic=settings.topic, writer=settings.registry_writer)
    return _EventTypes(contract, submitted, schemas[-1].message, ids[-1], personal)


def _endpoints(settings: GatewaySettings, types: _EventTypes, access: _Access) -> Endpoints:
    return Endpoints(
        events=_events_endpoint(settings, types, access),
        support=_support_endpoint(settings, types, access),
        flags=_flags_endpoint(settings, access),
    )


def _events_endpoint(settings: GatewaySettings, types: _EventTypes, access: _Access) -> EventsEndpoint:
    reduce_garbage_collection()
    cache = PlayerCache(settings.player_cache)
    pseudonymizer = Pseudonymizer(types.submitted, types.personal)
    validator = EventValidator(types.contract, types.submitted, pseudonymizer.extractor)
    encoder = ColumnarEncoder(types.kept, types.schema_id, types.personal.vault)
    preparer = BatchPreparer(
        RowPreparer(validator, cache, pseudonymizer, RecordEncoder(types.schema_id)),
        ColumnarPreparer(types.contract, types.submitted, cache, pseudonymizer, encoder),
    )
    players = PlayerStore(cache, BatchedVault(open_vault(settings.vault.access), access.vault_keyring))
    queue = QueueLimits(settings.memory, settings.kafka_timeout)
    return EventsEndpoint(
        authenticator=Authenticator(access.keyring, settings.signature_window),
        rates=access.rates,
        quotas=access.quotas,
        limits=settings.body,
        body_reader=BodyReader(settings.body),
        memory=access.memory,
        turns=Turns(),
        validator=validator,
        preparer=RequestPreparer(LoopBatcher(preparer.prepare, _PACE), players),
        producer=EventProducer(settings.kafka, settings.topic, queue),
        tracer=request_tracer(settings.traces, types.kept),
    )


def _support_endpoint(settings: GatewaySettings, types: _EventTypes, access: _Access) -> SupportEndpoint:
    return SupportEndpoint(
        authenticator=Authenticator(access.keyring, settings.signature_window),
        signature_window=settings.signature_window,
        vault=open_vault(settings.vault.access),
        keyring=access.vault_keyring,
        event=GetMessageClass(types.submitted),
        audit=EventProducer(settings.kafka, settings.audit_topic, _AUDIT_QUEUE),
    )


def _flags_endpoint(settings: GatewaySettings, access: _Access) -> FlagsEndpoint:
    experiments = ExperimentFlags(settings.experiments_file, settings.contracts / "games.yaml")
    experiments.refresh()
    return FlagsEndpoint(
        experiments=experiments,
        authenticator=Authenticator(access.keyring, settings.signature_window),
        rates=access.rates,
        body_reader=BodyReader(replace(settings.body, size=MOST_BODY_BYTES)),
        memory=access.memory,
    )
