"""Puts one process of the service together; the server calls `create` in each of them."""

import gc
import logging
from datetime import timedelta

from google.protobuf.message_factory import GetMessageClass

from gamelake.contracts.games import load_games
from gamelake.vault.keyring import VaultKeyring
from gamelake.vault.opening import open_vault
from gamelake.wire.event_schemas import load_schema, load_schemas, register
from services.ingest import metrics
from services.ingest.admission import Admission
from services.ingest.allocator import give_memory_back
from services.ingest.app import App
from services.ingest.assembly import Assembly
from services.ingest.columns.lake_columns import LakeColumns
from services.ingest.encoding import Encoder
from services.ingest.endpoint import EventsEndpoint
from services.ingest.gathering import Gathering, Pace
from services.ingest.keys import Keyring
from services.ingest.personal.fields import personal_fields
from services.ingest.personal.guard import Guard
from services.ingest.personal.players import Players
from services.ingest.personal.protection import Protection
from services.ingest.personal.safekeeping import Safekeeping
from services.ingest.producing import Outbox
from services.ingest.rates import RateLimits
from services.ingest.receiving import Receiver
from services.ingest.room import Room
from services.ingest.settings import IngestServiceSettings
from services.ingest.signatures import Doorkeeper
from services.ingest.singly import Singly
from services.ingest.support import SupportEndpoint
from services.ingest.together import Together

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
            doorkeeper=Doorkeeper(keyring, settings.signature_window),
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
            doorkeeper=Doorkeeper(keyring, settings.signature_window),
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
