"""The segments contract (`contracts/segments.yaml`): groups of players, each by a condition in SQL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import duckdb
import msgspec
import pyarrow as pa

from gamelake.contract.games import GamesContract, SnakeName
from gamelake.contract.located_yaml import LocatedDocument, Problem, declaration, load_declaration, raise_first
from gamelake.model.errors import ContractError
from gamelake.quality.predicate import parse
from gamelake.serving.players.tables import PLAYER_COLUMNS

# The segments contract lies next to the games contract.
SEGMENTS_FILE = "segments.yaml"
_NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
# Each value in the topic has the names of all segments of a player.
_MOST_SEGMENTS = 200


class SegmentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One segment.

    Attributes:
        name: the segment's name.
        description: what the segment is for.
        where: the condition, in DuckDB's SQL over the columns of a player.
        game: the game's name in the games contract; None for all games.
    """

    name: SnakeName
    description: _NonEmpty
    where: _NonEmpty
    game: SnakeName | None = None


class SegmentsContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/segments.yaml`."""

    segments: Annotated[tuple[SegmentSpec, ...], msgspec.Meta(max_length=_MOST_SEGMENTS)] = ()


@dataclass(frozen=True, slots=True)
class UsableSegments:
    """The valid segments of a file.

    Attributes:
        segments: the valid segments.
        problems: the problem of each invalid segment, by the segment's name.
    """

    segments: Sequence[SegmentSpec]
    problems: dict[str, str]


@declaration
def load_segments(path: Path, games: GamesContract) -> SegmentsContract:
    """Read and check the segments contract.

    Args:
        path: the file.
        games: the games contract, which lists the games.

    Raises:
        ContractError: a key is unknown, a name is listed twice, a game is unknown, or a condition is not valid SQL
            over the columns of a player; the message names file and line.
    """
    contract, document = load_declaration(path, SegmentsContract)
    raise_first([problem for _, problem in _problems(contract, games)], document)
    return contract


@declaration
def usable_segments(path: Path, games: GamesContract) -> UsableSegments:
    """Read the segments contract. Invalid segments don't affect the others.

    Raises:
        ContractError: the file as a whole can't be read, or a key is unknown.
    """
    contract, document = load_declaration(path, SegmentsContract)
    problems: dict[int, str] = {}
    for index, (place, problem) in _problems(contract, games):
        problems.setdefault(index, _located(document, place, problem))
    segments = [each for index, each in enumerate(contract.segments) if index not in problems]
    return UsableSegments(segments, {contract.segments[index].name: text for index, text in problems.items()})


def _located(document: LocatedDocument, place: str, problem: str) -> str:
    return f"{document.path}:{document.line_of(place)}: {problem}"


def _problems(contract: SegmentsContract, games: GamesContract) -> Iterator[tuple[int, Problem]]:
    known, names = {game.name for game in games.games}, set[str]()
    for index, segment in enumerate(contract.segments):
        place = f"$.segments[{index}]"
        if segment.name in names:
            yield index, (f"{place}.name", f"'{segment.name}' is listed twice; rename one")
        names.add(segment.name)
        if segment.game is not None and segment.game not in known:
            yield index, (f"{place}.game", f"games.yaml does not have the game '{segment.game}'")
        if problem := _condition_problem(segment.where):
            yield index, (f"{place}.where", f"the condition of '{segment.name}' {problem}")


def _condition_problem(where: str) -> str:
    try:
        columns = parse(where).columns
    except ContractError as error:
        return str(error)
    unknown = [each for each in columns if each not in PLAYER_COLUMNS]
    if unknown:
        return f"uses '{unknown[0]}', which is not a column of a player; use {', '.join(PLAYER_COLUMNS)}"
    with duckdb.connect(":memory:") as connection:
        kinds = pa.schema([(name, kind) for name, (kind, _) in PLAYER_COLUMNS.items()])
        connection.register("player", kinds.empty_table())
        try:
            # The condition stands alone in its parentheses, since `parse` has accepted it.
            [(_, kind, *_)] = connection.execute(f"DESCRIBE SELECT ({where}\n) FROM player").fetchall()  # noqa: S608
        except duckdb.Error as error:
            return f"can't be computed: {str(error).splitlines()[0]}"
    return "" if kind == "BOOLEAN" else f"is a {kind}, not a condition"
