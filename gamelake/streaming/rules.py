"""Loads the rules of a lakehouse from their folder and checks them against the columns that rows can have."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from gamelake.contract.games import GamesContract, UnlistedGames
from gamelake.contract.located_yaml import refused_by_file
from gamelake.contract.messages import MessageSpec
from gamelake.layers.silver import COMMON_SCHEMA, NESTED_COLUMNS, conform
from gamelake.model.errors import IncompatibleSchemaError, SchemaError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.daily import store_rules
from gamelake.quality.rules import RuleSet
from gamelake.quality.rules_in_force import NoRules, RulesInForce, WatchedRules
from gamelake.schemas.compiler import message_at
from gamelake.schemas.decoder import MessageDecoder
from gamelake.schemas.event_schemas import FIRST_MESSAGE, load_schema
from gamelake.schemas.schema_cache import kept_schemas
from gamelake.streaming.message_mapping import MessageMapper

log = event_logger(__name__)


def known_columns(
    games_file: Path, store: Store, tables: Iterable[pa.Schema], messages: Sequence[MessageSpec] = ()
) -> pa.Schema:
    """Collect all columns that rows can have; names that differ only in case are one column.

    The columns come from four sources, in this order: the platform's own columns, the schemas next to the games
    contract (newest first), the schemas that the lakehouse keeps (newest first), and the tables. If two sources have a
    column of the same name, the first type counts.

    Args:
        games_file: the games contract; its folder has the schemas.
        store: the lakehouse.
        tables: the columns of the tables.
        messages: the mappings of messages, which apply to all schemas.
    """
    # Rules judge rows of games' tables, which have the nested columns in their structs only.
    columns = {field.name.lower(): field for field in COMMON_SCHEMA if field.name not in NESTED_COLUMNS}
    mapper = MessageMapper(messages)
    found = (*(_silver_columns(each, mapper) for each in _messages(games_file, store)), *tables)
    for field in (field for schema in found for field in schema):
        columns.setdefault(field.name.lower(), field)
    return pa.schema(list(columns.values()))


def _messages(games_file: Path, store: Store) -> Iterator[Descriptor]:
    folders = games_file.parent.glob("proto/v[0-9]*")
    versions = {int(each.name[1:]): each for each in folders if each.name[1:].isdecimal()}
    for version, folder in sorted(versions.items(), reverse=True):
        with refused_by_file(folder):
            yield load_schema(folder, version).message
    for number, content in reversed(kept_schemas(store)):
        try:
            yield message_at(FileDescriptorSet.FromString(content), FIRST_MESSAGE)
        except (SchemaError, DecodeError) as error:
            log.info("schema_unreadable", schema=number, error=error, action="rules can't use its columns")


def _silver_columns(message: Descriptor, mapper: MessageMapper) -> pa.Schema:
    try:
        _, columns = MessageDecoder(message).decode(pa.array([], pa.binary()))
        coordinates = pa.array([], pa.int64())
        return conform(mapper.apply(message.full_name, columns), coordinates, coordinates).schema
    except (SchemaError, IncompatibleSchemaError):
        return pa.schema([])


@dataclass(frozen=True, slots=True)
class RulesLoader:
    """Loads and checks rules.

    Attributes:
        folder: of the rules; None for no rules.
        games_file: the games contract; its folder has the schemas.
        contract: the content of `games_file`.
        store: the lakehouse.
        schemas: returns the current columns of the tables, by table name.
    """

    folder: Path | None
    games_file: Path
    contract: GamesContract
    store: Store
    schemas: Callable[[], Mapping[str, pa.Schema]]

    def watch(self) -> RulesInForce:
        """Load the rules, and reload them when their files change.

        Raises:
            ContractError: a rule can't be evaluated; the message has its file and line.
        """
        return NoRules() if self.folder is None else WatchedRules(self.folder, self.check)

    def watch_and_store(self) -> RulesInForce:
        """Load the rules as in `watch`, and store each version in the lakehouse, since manifests refer to it.

        Raises:
            ContractError: a rule can't be evaluated; the message has its file and line.
        """
        return NoRules() if self.folder is None else WatchedRules(self.folder, self._checked_and_kept)

    def _checked_and_kept(self, rules: RuleSet) -> CheckedRules:
        checked = self.check(rules)
        store_rules(self.store, rules)
        return checked

    def check(self, rules: RuleSet) -> CheckedRules:
        """Check that rules can be evaluated on the rows of this lakehouse.

        Raises:
            ContractError: a rule can't be evaluated; the message has its file and line.
        """
        any_game = self.contract.unlisted_games is UnlistedGames.OWN_TABLE
        games = () if any_game else [game.name for game in self.contract.games]
        columns = known_columns(self.games_file, self.store, self.schemas().values(), self.contract.messages)
        return check_rules(rules, columns, games)
