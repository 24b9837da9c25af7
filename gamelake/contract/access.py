"""The access contract (`contracts/access.yaml`): Trino's users, their roles, and what each role may read and do."""

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contract.games import ColumnName, GamesContract
from gamelake.contract.located_yaml import Problem, declaration, load_declaration, raise_first
from gamelake.model.naming import Layer

# Names are part of regular expressions, of file names and of compose's secrets.
UserName = Annotated[str, msgspec.Meta(pattern=r"^[a-z](-?[a-z0-9]+){0,31}$")]
RoleName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
TableName = Annotated[str, msgspec.Meta(pattern=r"^(silver|gold)\.[a-z][a-z0-9_]{0,62}$")]

# Layers without raw records, in which a pseudonym is part of a key or of a text.
_LAYERS_WITHOUT_RECORDS = frozenset({Layer.SILVER, Layer.GOLD, Layer.CLONES})
_LAYERS_BY_GAME = frozenset({Layer.SILVER, Layer.GOLD})
# compose/secrets has files of these names after `trino-` that hold no user's password.
_RESERVED = frozenset({"internal", "password-hashes"})


class GameColumn(StrEnum):
    """Columns that say to which game a row belongs: by its title, or by its name in the games contract."""

    GAME_NAME = "game_name"
    GAME = "game"


class RoleGames(StrEnum):
    """The games whose rows a role reads."""

    ALL = "all"
    OWN = "own"


class Pseudonyms(StrEnum):
    """The choice if a role reads players' pseudonyms."""

    SHOWN = "shown"
    MASKED = "masked"


class Duty(StrEnum):
    """A task that a role has other than reading tables."""

    READ_SYSTEM = "read_system"
    STOP_QUERIES = "stop_queries"
    SET_SESSION = "set_session"
    READ_METRICS = "read_metrics"
    REGISTER_TABLES = "register_tables"
    OWN_VIEWS = "own_views"
    OPERATE = "operate"
    IMPERSONATE = "impersonate"


class AccessRole(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A role: the layers and games that it reads, with or without pseudonyms, and its duties."""

    name: RoleName
    description: Annotated[str, msgspec.Meta(min_length=1)]
    reads: tuple[Layer, ...] = ()
    games: RoleGames = RoleGames.ALL
    pseudonyms: Pseudonyms = Pseudonyms.SHOWN
    may: tuple[Duty, ...] = ()


class AccessUser(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user of one role; `games` by their names in the games contract, for a role that reads its own games."""

    name: UserName
    role: RoleName
    games: tuple[str, ...] = ()


class AccessContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/access.yaml`."""

    pseudonyms: Annotated[tuple[ColumnName, ...], msgspec.Meta(min_length=1)]
    tables_of_all_games: dict[TableName, GameColumn]
    tables_of_no_game: tuple[TableName, ...] = ()
    roles: Annotated[tuple[AccessRole, ...], msgspec.Meta(min_length=1)]
    users: Annotated[tuple[AccessUser, ...], msgspec.Meta(min_length=1)]

    def role_of(self, user: AccessUser) -> AccessRole:
        """Return the role of a user."""
        return next(role for role in self.roles if role.name == user.role)

    def users_of(self, role: AccessRole) -> tuple[AccessUser, ...]:
        """Return the users of a role, in the file's order."""
        return tuple(user for user in self.users if user.role == role.name)


@declaration
def load_access(path: Path, games: GamesContract) -> AccessContract:
    """Read and check the access contract.

    Args:
        path: the file.
        games: the games contract, which has the games that users may name.

    Raises:
        ContractError: a key is unknown, a value is impossible, or a user has no role or an unknown game; the message
            names file and line.
    """
    contract, document = load_declaration(path, AccessContract)
    raise_first([*_role_problems(contract), *_user_problems(contract, games)], document)
    return contract


def _role_problems(contract: AccessContract) -> Iterator[Problem]:
    yield from _repeated([role.name for role in contract.roles], "$.roles")
    for index, role in enumerate(contract.roles):
        place = f"$.roles[{index}]"
        if role.pseudonyms is Pseudonyms.MASKED and (raw := _beyond(role, _LAYERS_WITHOUT_RECORDS)):
            yield f"{place}.reads", f"'{role.name}' has masked pseudonyms, and {raw} has raw records that hold them"
        if role.games is RoleGames.OWN and (mixed := _beyond(role, _LAYERS_BY_GAME)):
            yield f"{place}.reads", f"'{role.name}' reads its own games, and {mixed} can't be divided by game"


def _user_problems(contract: AccessContract, games: GamesContract) -> Iterator[Problem]:
    yield from _repeated([user.name for user in contract.users], "$.users")
    known, roles = {game.name for game in games.games}, {role.name: role for role in contract.roles}
    for index, user in enumerate(contract.users):
        place = f"$.users[{index}]"
        if user.name in _RESERVED:
            yield f"{place}.name", f"'{user.name}' is the name of another secret; use another name"
        if user.role not in roles:
            yield f"{place}.role", f"'{user.name}' has the role '{user.role}', which is not under roles"
        elif (roles[user.role].games is RoleGames.OWN) != bool(user.games):
            wanted = "names no game; list its games" if not user.games else "names games, but its role reads all"
            yield f"{place}.games", f"'{user.name}' {wanted}"
        for unknown in [game for game in user.games if game not in known]:
            yield f"{place}.games", f"'{user.name}' names the game '{unknown}', which games.yaml does not have"


def _repeated(names: Sequence[str], place: str) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{place}[{index}].name", f"'{name}' is listed twice; remove one entry"


def _beyond(role: AccessRole, layers: Collection[Layer]) -> str:
    return ", ".join(layer for layer in role.reads if layer not in layers)
