"""Trino's access rules, generated from the access contract: `python -m services.provision.access --check|--write`.

The rules are those of Trino's file-based access control: for each statement and table the first rule that matches the
user decides, and what no rule allows is denied. Views read with the rights of the user who queries them, so filters and
masks are those of the tables under them, and a second mask would hash a hash.

The file `people` has the names of the users that may log in at a provider instead of with a password (decision 0070),
and `dashboard-users.json` those that may log in to Superset, with their role there.

Source: Trino 476, "File-based access control".
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gamelake.command import command_parser
from gamelake.contract.access import (
    AccessContract,
    AccessRole,
    AccessUser,
    Duty,
    GameColumn,
    Pseudonyms,
    RoleGames,
    load_access,
)
from gamelake.contract.aggregates import Over
from gamelake.contract.games import GamesContract, GameSpec, load_games
from gamelake.model.errors import ContractError
from gamelake.model.naming import GOLD, Layer, game_table
from gamelake.program import OK, run
from gamelake.serving.sql.dialects import names_in
from gamelake.serving.sql.views import View, load_views

REPOSITORY = Path(__file__).parents[2]
ACCESS = REPOSITORY / "contracts/access.yaml"
GAMES = REPOSITORY / "contracts/games.yaml"
VIEWS = REPOSITORY / "sql/views"
SETTINGS = REPOSITORY / "compose/trino/etc"
RULES, PEOPLE = SETTINGS / "rules.json", SETTINGS / "people"
DASHBOARD_USERS = SETTINGS / "dashboard-users.json"
READER_OF_DASHBOARDS = "Gamelake"

CATALOG, SYSTEM = "delta", "system"
Rule = dict[str, object]
# Names that end in $partitions, $transactions or $files show the bounds of columns, also of masked ones.
_PLAIN_TABLES, _HISTORIES = "[^$]*", r"[^$]*\$(history|properties)"
# Limits of the user's own queries: Trino applies the server's limit too, where there is one.
_HARMLESS_PROPERTIES = (
    "query_max_run_time|query_max_execution_time|query_max_cpu_time|query_max_scan_physical_bytes|time_zone_id"
)


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules that an access contract means, given the games and the views."""

    access: AccessContract
    games: GamesContract
    views: Sequence[View]

    def document(self) -> dict[str, list[Rule]]:
        """Return the document of Trino's file-based access control."""
        return {
            "catalogs": self._catalogs(),
            "schemas": [*self._owned_schemas(), {"owner": False}],
            "tables": [*self._tables(), {"privileges": []}],
            "functions": [],
            "procedures": self._procedures(),
            "queries": self._queries(),
            "system_session_properties": self._session_properties(),
            "catalog_session_properties": [
                *self._of(Duty.SET_SESSION, catalog=CATALOG, allow=True),
                {"allow": False},
            ],
            "impersonation": self._impersonation(),
            "authorization": [],
            "system_information": self._system_information(),
        }

    def people(self) -> str:
        """Return a regular expression of the users that are not services."""
        return _pattern(user.name for user in self._people())

    def dashboard_users(self) -> str:
        """Return the people who may log in to Superset as JSON, each with the role there.

        A service that may impersonate can query as any of them, so people who may change the server are left out.
        """
        stopping = self._users(Duty.STOP_QUERIES)
        roles = {name: "Admin" if name in stopping else READER_OF_DASHBOARDS for name in self._impersonated()}
        return json.dumps(roles, indent=2)

    def tables_of_all_games(self) -> Mapping[str, GameColumn]:
        """Return tables with rows of all games (`schema.table`), and the column that says whose a row is."""
        aggregates = {
            f"{GOLD}.{each.name}": GameColumn(column)
            for each in self.games.aggregates
            for column in each.group_by
            if each.over is Over.ALL_GAMES and column in set(GameColumn)
        }
        return {**self.access.tables_of_all_games, **aggregates}

    def _catalogs(self) -> list[Rule]:
        changing = self._users(Duty.REGISTER_TABLES, Duty.OWN_VIEWS)
        reading = _pattern(user.name for user in self._readers() if user.name not in changing)
        return [
            {"user": _pattern(changing), "catalog": CATALOG, "allow": "all"},
            {"user": reading, "catalog": CATALOG, "allow": "read-only"},
            {"user": self.people(), "catalog": SYSTEM, "allow": "read-only"},
            {"allow": "none"},
        ]

    def _owned_schemas(self) -> list[Rule]:
        return self._of(Duty.REGISTER_TABLES, catalog=CATALOG, schema=_pattern(Layer), owner=True)

    def _tables(self) -> Iterator[Rule]:
        for role in self.access.roles:
            users = self.access.users_of(role)
            if not users:
                continue
            name = _pattern(user.name for user in users)
            if Duty.OWN_VIEWS in role.may:
                yield from self._own_views(name)
            if role.games is RoleGames.OWN:
                for user in users:
                    yield from self._tables_of_games(user, role)
            else:
                yield from self._tables_of_layers(name, role)
            if Duty.READ_SYSTEM in role.may:
                yield {"user": name, "catalog": SYSTEM, "privileges": ["SELECT"]}
            elif role.reads and Duty.OWN_VIEWS not in role.may:
                yield {"user": name, "catalog": SYSTEM, "schema": "jdbc", "privileges": ["SELECT"]}

    def _tables_of_layers(self, user: str, role: AccessRole) -> Iterator[Rule]:
        owning = ["OWNERSHIP"] if Duty.REGISTER_TABLES in role.may else []
        if role.pseudonyms is Pseudonyms.MASKED:
            for layer in role.reads:
                yield from self._readable_views(user, layer, self.views)
            yield _readable(user, _pattern(role.reads), _PLAIN_TABLES) | {"columns": self._masks()}
            yield _readable(user, _pattern(role.reads), _HISTORIES)
        elif role.reads:
            yield {
                "user": user,
                "catalog": CATALOG,
                "schema": _pattern(role.reads),
                "privileges": ["SELECT", *owning],
            }
        if owning and set(role.reads) != set(Layer):
            yield {"user": user, "catalog": CATALOG, "schema": _pattern(Layer), "privileges": owning}

    def _tables_of_games(self, user: AccessUser, role: AccessRole) -> Iterator[Rule]:
        games = [game for game in self.games.games if game.name in user.games]
        masks = {"columns": self._masks()} if role.pseudonyms is Pseudonyms.MASKED else {}
        for layer in role.reads:
            yield from self._readable_views(user.name, layer, self._complete_views(role, games))
            own = _pattern(self._own_tables(layer, games))
            if own:
                yield _readable(user.name, layer, own) | masks
                yield _readable(user.name, layer, rf"({own})\$(history|properties)")
            if open_to_all := _pattern(_names_in(layer, self.access.tables_of_no_game)):
                yield _readable(user.name, layer, open_to_all)
            for column in GameColumn:
                shared = _pattern(self._shared_tables(layer, column))
                if shared:
                    yield _readable(user.name, layer, shared) | {"filter": _condition(column, games)} | masks

    def _complete_views(self, role: AccessRole, games: Sequence[GameSpec]) -> Sequence[View]:
        """List the views that these games' analyst can query: those whose tables and views the role can read."""
        readable = set()
        for layer in role.reads:
            shared = (name for column in GameColumn for name in self._shared_tables(layer, column))
            readable |= {f"{layer}.{name}" for name in (*self._own_tables(layer, games), *shared)}
        readable |= set(self.access.tables_of_no_game)
        complete = []
        for view in self.views:
            # A view that is put together from each game's table needs a right to all of them.
            if not view.is_for_each_game and names_in(view.sql) <= readable:
                complete.append(view)
                readable.add(view.name)
        return complete

    def _own_tables(self, layer: Layer, games: Iterable[GameSpec]) -> Iterator[str]:
        for game in games:
            if layer is Layer.SILVER:
                yield _name(game_table(game.name))
            for aggregate in self.games.aggregates:
                if layer is Layer.GOLD and aggregate.over is Over.EACH_GAME:
                    yield _name(aggregate.table(game.name))

    def _shared_tables(self, layer: Layer, column: GameColumn) -> list[str]:
        return _names_in(layer, (table for table, each in self.tables_of_all_games().items() if each is column))

    def _own_views(self, user: str) -> Iterator[Rule]:
        for layer in Layer:
            for rule in self._readable_views(user, layer, self.views):
                yield rule | {"privileges": ["SELECT", "OWNERSHIP"]}

    def _readable_views(self, user: str, layer: Layer, views: Iterable[View]) -> Iterator[Rule]:
        names = [view.name.partition(".")[2] for view in views if view.name.startswith(f"{layer}.")]
        if names:
            yield _readable(user, layer, _pattern(names))

    def _masks(self) -> list[Rule]:
        return [{"name": column, "mask": mask(column)} for column in self.access.pseudonyms]

    def _procedures(self) -> list[Rule]:
        stop = {"catalog": SYSTEM, "schema": "runtime", "procedure": "kill_query", "privileges": ["EXECUTE"]}
        register = {
            "catalog": CATALOG,
            "schema": "system",
            "procedure": "register_table|unregister_table|flush_metadata_cache",
            "privileges": ["EXECUTE"],
        }
        return [*self._of(Duty.STOP_QUERIES, **stop), *self._of(Duty.REGISTER_TABLES, **register)]

    def _queries(self) -> list[Rule]:
        doing = {*self._users(Duty.REGISTER_TABLES, Duty.OWN_VIEWS), *(user.name for user in self._readers())}
        executing = _pattern(user.name for user in self.access.users if user.name in doing)
        return [
            *self._of(Duty.STOP_QUERIES, queryOwner=".*", allow=["view", "kill"]),
            {"user": executing, "allow": ["execute"]},
        ]

    def _session_properties(self) -> list[Rule]:
        free = self._users(Duty.SET_SESSION)
        others = _pattern(user.name for user in self._people() if user.name not in free)
        return [
            *self._of(Duty.SET_SESSION, allow=True),
            {"user": others, "property": _HARMLESS_PROPERTIES, "allow": True},
            {"allow": False},
        ]

    def _system_information(self) -> list[Rule]:
        operating = self._users(Duty.OPERATE)
        reading = [name for name in self._users(Duty.READ_METRICS) if name not in operating]
        return [
            {"user": _pattern(operating), "allow": ["read", "write"]},
            {"user": _pattern(reading), "allow": ["read"]},
            {"allow": []},
        ]

    def _impersonation(self) -> list[Rule]:
        acting = self._users(Duty.IMPERSONATE)
        return [{"original_user": _pattern(acting), "new_user": _pattern(self._impersonated())}] if acting else []

    def _impersonated(self) -> list[str]:
        changing = {Duty.REGISTER_TABLES, Duty.OWN_VIEWS, Duty.OPERATE}
        return [user.name for user in self._people() if not changing & set(self.access.role_of(user).may)]

    def _users(self, *duties: Duty) -> list[str]:
        return [user.name for user in self.access.users if set(duties) & set(self.access.role_of(user).may)]

    def _of(self, duty: Duty, **rule: object) -> list[Rule]:
        """One rule for all users with a duty; none if there are none, because a rule without users is for all."""
        users = self._users(duty)
        return [{"user": _pattern(users), **rule}] if users else []

    def _readers(self) -> list[AccessUser]:
        return [user for user in self.access.users if self.access.role_of(user).reads]

    def _people(self) -> list[AccessUser]:
        return [user for user in self._readers() if Duty.OWN_VIEWS not in self.access.role_of(user).may]


def mask(column: str) -> str:
    """Return the SQL (a varchar) of the value that a masked role reads in place of a pseudonym.

    Equal for equal pseudonyms. 64 bits of hash leave open which of all pseudonyms of 128 bits it was. SHA-256 would
    double the time of a query that counts players.
    """
    return f"lower(to_hex(xxhash64(to_utf8({column}))))"


def _names_in(layer: Layer, tables: Iterable[str]) -> list[str]:
    return [name for schema, _, name in (table.partition(".") for table in tables) if schema == layer]


def _condition(column: GameColumn, games: Iterable[GameSpec]) -> str:
    values = [value for game in games for value in (game.match if column is GameColumn.GAME_NAME else (game.name,))]
    return f"{column} IN ({', '.join(_literal(value) for value in values)})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _readable(user: str, schema: str, table: str) -> Rule:
    return {"user": user, "catalog": CATALOG, "schema": schema, "table": table, "privileges": ["SELECT"]}


def _pattern(names: Iterable[str]) -> str:
    return "|".join(names)


def _name(path: str) -> str:
    return path.partition("/")[2]


def rendered(document: Mapping[str, Sequence[Rule]]) -> str:
    """Render the document as JSON with a line for each rule."""
    sections = []
    for name, rules in document.items():
        lines = ",".join(f"\n    {json.dumps(rule)}" for rule in rules)
        sections.append(f"  {json.dumps(name)}: [{lines}" + ("\n  ]" if rules else "]"))
    return "{\n" + ",\n".join(sections) + "\n}\n"


def generate(access: Path = ACCESS, games: Path = GAMES, views: Path = VIEWS) -> Mapping[str, str]:
    """Generate the texts of the files, by their names.

    Raises:
        StartupError: a file can't be read, or says something impossible; names the file.
    """
    contract = load_games(games)
    rules = AccessRules(load_access(access, contract), contract, load_views(views, games))
    return {
        RULES.name: rendered(rules.document()),
        PEOPLE.name: f"{rules.people()}\n",
        DASHBOARD_USERS.name: f"{rules.dashboard_users()}\n",
    }


def main() -> int:
    """Compare the files with the generated texts, or write them."""
    parser = command_parser("Generate Trino's rules.")
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="the files' folder; default: %(default)s")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail if a file is not what the contract means")
    action.add_argument("--write", action="store_true", help="write the files")
    arguments = parser.parse_args()
    for file, text in ((arguments.settings / name, text) for name, text in generate().items()):
        if arguments.write:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            raise ContractError(
                f"{file} is not what {ACCESS.name} means: run 'python -m services.provision.access --write'"
            )
    return OK


if __name__ == "__main__":
    run(main)
