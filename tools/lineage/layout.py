"""Layout of a lineage graph: nodes in layers, so that edges lead from left to right.

Source: Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System Structures" (layers by longest
path, order within a layer by barycentres); edges that close a cycle are left out of the layering.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import fmean

from gamelake.observability.lineage.graph import Graph

_SWEEPS = 3
CARD_WIDTH, COLUMN_GAP = 196, 60
ROW_HEIGHT, TITLE_HEIGHT, CARD_GAP, MARGIN = 18, 24, 14, 16


@dataclass(frozen=True, slots=True)
class Card:
    """A card with one node, or with the nodes of a family, one for each game; `games` has their names in that order.

    A collapsed card has one row for all its nodes.
    """

    name: str
    rows: tuple[str, ...]
    games: tuple[str, ...] = ()
    is_collapsed: bool = False

    @property
    def height(self) -> int:
        """Height of the card, in pixels."""
        rows = 1 if self.is_collapsed else len(self.rows)
        return rows * ROW_HEIGHT + (TITLE_HEIGHT if self.games else 0) + 8


@dataclass(frozen=True, slots=True)
class CardPosition:
    """A card's upper left corner."""

    card: Card
    x: float
    y: float

    def row_top(self, node: str) -> float:
        """Return the y coordinate of a node's row."""
        place = 0 if self.card.is_collapsed else self.card.rows.index(node)
        return self.y + 4 + (TITLE_HEIGHT if self.card.games else 0) + place * ROW_HEIGHT


@dataclass(frozen=True, slots=True)
class CardLayout:
    """The position of each node's card, and the size of the picture."""

    positions: Mapping[str, CardPosition]
    width: float
    height: float

    def of(self, node: str) -> CardPosition:
        """Return the position of a node's card."""
        return self.positions[node]


class LineageView(StrEnum):
    """The rows for the nodes of a family: one for all, or one for each game."""

    COLLAPSED = "folded"
    EXPANDED = "open"


def cards_of(graph: Graph, view: LineageView) -> list[Card]:
    """Return the nodes as cards."""
    families = graph.families()
    together = {node for family in families for node in family.members.values()}
    cards = [
        Card(
            family.name,
            tuple(family.members[game] for game in sorted(family.members)),
            tuple(sorted(family.members)),
            view is LineageView.COLLAPSED,
        )
        for family in families
    ]
    return [*cards, *(Card(node, (node,)) for node in sorted(graph.nodes.keys() - together))]


def arrange(cards: Sequence[Card], edges: Iterable[tuple[str, str]]) -> CardLayout:
    """Compute the position of each card."""
    card_of = {node: card.name for card in cards for node in card.rows}
    between = {(card_of[a], card_of[b]) for a, b in edges if card_of[a] != card_of[b]}
    by_name = {card.name: card for card in cards}
    layers = _layers(sorted(by_name), _without_cycles(sorted(between)))
    columns = _ordered(layers, between)
    heights = [sum(by_name[name].height + CARD_GAP for name in column) for column in columns]
    tallest = max(heights, default=0)
    positions: dict[str, CardPosition] = {}
    for place, (column, height) in enumerate(zip(columns, heights, strict=True)):
        y = MARGIN + (tallest - height) / 2
        for name in column:
            card = by_name[name]
            position = CardPosition(card, MARGIN + place * (CARD_WIDTH + COLUMN_GAP), y)
            positions |= dict.fromkeys(card.rows, position)
            y += card.height + CARD_GAP
    width = 2 * MARGIN + len(columns) * (CARD_WIDTH + COLUMN_GAP) - COLUMN_GAP
    return CardLayout(positions, width, 2 * MARGIN + tallest)


def _without_cycles(edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The edges without those that close a cycle."""
    after: dict[str, set[str]] = {}
    kept = []
    for source, target in edges:
        if source not in _reached(target, after):
            after.setdefault(source, set()).add(target)
            kept.append((source, target))
    return kept


def _reached(start: str, after: Mapping[str, set[str]]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = after.get(waiting.pop(), set()) - reached
        reached |= new
        waiting.extend(new)
    return reached


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The names by layer: the length of the longest path to them."""
    rank = dict.fromkeys(names, 0)
    for _ in names:
        longer = {target: rank[source] + 1 for source, target in edges if rank[target] <= rank[source]}
        if not longer:
            break
        rank |= {target: max(rank[target], value) for target, value in longer.items()}
    layers: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for name in names:
        layers[rank[name]].append(name)
    return layers


def _ordered(layers: list[list[str]], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Order each layer so that few edges cross: sweeps to the right and back, each layer by its neighbour layer."""
    neighbours: dict[str, set[str]] = {}
    for source, target in edges:
        neighbours.setdefault(source, set()).add(target)
        neighbours.setdefault(target, set()).add(source)
    forth = list(pairwise(range(len(layers))))
    back = [(right, left) for left, right in reversed(forth)]
    for fixed, moved in (forth + back) * _SWEEPS:
        _order(layers[moved], layers[fixed], neighbours)
    return layers


def _order(layer: list[str], adjacent: Sequence[str], neighbours: Mapping[str, set[str]]) -> None:
    """Sort a layer by the mean position of its nodes' neighbours in the adjacent layer."""
    places = {name: place / len(adjacent) for place, name in enumerate(adjacent)}
    own = {name: place / len(layer) for place, name in enumerate(layer)}

    def centre(name: str) -> float:
        found = [places[each] for each in neighbours.get(name, ()) if each in places]
        return fmean(found) if found else own[name]

    layer.sort(key=centre)
