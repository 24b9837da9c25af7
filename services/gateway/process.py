"""Puts one process of the service together; the server calls `create` in each of them."""

import ctypes
import gc
import logging
import sys
from datetime import timedelta

from google.protobuf.message_factory import GetMessageClass

from gamelake.model.games import load_games
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.opening import open_vault
from gamelake.schemas.event_schemas import load_schema, load_schemas, register
from services.gateway import metrics
from services.gateway.app import App
from services.gateway.authentication import Authenticator, Keyring
from services.gateway.batching import Gathering, Pace
from services.gateway.columns import LakeColumns
from services.gateway.events_endpoint import EventsEndpoint
from services.gateway.kafka_producer import Outbox
from services.gateway.limits import RateLimits, Room
from services.gateway.personal.fields import personal_fields
from services.gateway.personal.pseudonymization import Players, Protection
from services.gateway.personal.vault_client import Guard, Safekeeping
from services.gateway.preparation import Assembly, Encoder, Singly, Together
from services.gateway.request_body import Receiver
from services.gateway.settings import IngestServiceSettings
from services.gateway.support_endpoint import SupportEndpoint
from services.gateway.validation import Admission

# Under load some hundred events come in meanwhile; who comes alone is served at once.
_PACE = Pace(pause=timedelta(milliseconds=10), enough=2000)
_OBJECTS_BETWEEN_COLLECTIONS = 20_000


def create() -> App:
    """The application, from the environment.

    Raises:
        StartupError: a setting, the contract or the keys are not as they must be.
        RegistryUnavailableError: the registry did not answer.
    """
    give_memory_back()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = IngestServiceSettings.from_env()
    contract = load_games(settings.contracts / "games.yaml")
    version = settings.contract_version
    schemas = load_schemas(settings.contracts, version)
    submitted = load_schema(settings.contracts / "submitted" / f"v{version}", version).message
    ids = register(schemas, registry_url=settings.registry_url, topic=settings.topic)
    keyring = Keyring(settings.keys_file, contract)
    vault_keyring = VaultKeyring(settings.vault.keys_file)
    personal = personal_fields(submitted)
    protection = Protection(submitted, personal)
    lake = LakeColumns(schemas[-1].message, ids[-1], personal.vault)

    metrics.begin((game.name for game in contract.games), settings.queue.records)

    def endpoint() -> EventsEndpoint:
        _spare_the_collector()
        safekeeping = Safekeeping(open_vault(settings.vault.access), vault_keyring)
        players = Players(settings.remembered_players)
        admission = Admission(contract, submitted)
        assembly = Assembly(
            Singly(admission, players, protection, Encoder(ids[-1])),
            Together(contract.event_time, players, protection, lake),
        )
        return EventsEndpoint(
            authenticator=Authenticator(keyring, settings.signature_window),
            rates=RateLimits(settings.burst, settings.processes),
            limits=settings.body,
            receiver=Receiver(settings.body),
            room=Room(settings.queue.records),
            admission=admission,
            gathering=Gathering(assembly.prepare, _PACE),
            guard=Guard(players, safekeeping),
            outbox=Outbox(settings.kafka, settings.topic, settings.queue),
        )

    def support() -> SupportEndpoint:
        return SupportEndpoint(
            authenticator=Authenticator(keyring, settings.signature_window),
            vault=open_vault(settings.vault.access),
            keyring=vault_keyring,
            event=GetMessageClass(submitted),
        )

    return App(endpoint, support, keyring)


def _spare_the_collector() -> None:
    """What is there now stays for good, and events have no cycles: both are looked through less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 50)


_ARENA_MAX, _TRIM_THRESHOLD, _MMAP_THRESHOLD = -8, -1, -3
_ARENAS = 2
_TRIM_BYTES, _MMAP_BYTES = 2**20, 2**18


def give_memory_back() -> None:
    """Few arenas, whose free ends are returned at once; where the C library is another one, nothing happens.

    Else each thread keeps what it ever had: some 50 MiB after an outage of Kafka.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
