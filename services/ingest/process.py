"""Puts one process of the service together; the server calls `create` in each of them."""

import logging

from google.protobuf.message_factory import GetMessageClass

from gamelake.contracts.games import load_games
from gamelake.wire.event_schemas import load_schema, load_schemas, register
from services.ingest.admission import Admission
from services.ingest.app import App
from services.ingest.encoding import Encoder
from services.ingest.endpoint import EventsEndpoint
from services.ingest.keys import Keyring
from services.ingest.personal.fields import personal_fields
from services.ingest.personal.guard import Guard
from services.ingest.personal.players import Players
from services.ingest.personal.protection import Protection
from services.ingest.personal.secrecy import VaultKeys
from services.ingest.personal.sqlite_vault import SqliteVault
from services.ingest.producing import Outbox
from services.ingest.rates import RateLimits
from services.ingest.settings import IngestServiceSettings
from services.ingest.signatures import Doorkeeper


def create() -> App:
    """The application, from the environment.

    Raises:
        StartupError: a setting, the contract or the keys are not as they must be.
        RegistryUnavailableError: the registry did not answer.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = IngestServiceSettings.from_env()
    contract = load_games(settings.contracts / "games.yaml")
    version = settings.contract_version
    schemas = load_schemas(settings.contracts, version)
    submitted = load_schema(settings.contracts / "submitted" / f"v{version}", version).message
    ids = register(schemas, registry_url=settings.registry_url, topic=settings.topic)
    keyring = Keyring(settings.keys_file, contract)
    vault_keys = VaultKeys.read(settings.vault_keys_file)
    protection = Protection(GetMessageClass(submitted), personal_fields(submitted))

    def endpoint() -> EventsEndpoint:
        vault = SqliteVault(settings.vault_file)
        return EventsEndpoint(
            doorkeeper=Doorkeeper(keyring, settings.signature_window),
            rates=RateLimits(settings.burst, settings.processes),
            limits=settings.body,
            admission=Admission(contract, submitted),
            guard=Guard(vault, Players(vault, vault_keys, settings.remembered_players), protection),
            encoder=Encoder(ids[-1]),
            outbox=Outbox(settings.kafka, settings.topic, settings.queue),
        )

    return App(endpoint, keyring)
