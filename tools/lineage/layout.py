"""Where the nodes of a lineage graph stand: in layers, so that what leads to something is left of it.

Source: Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System Structures" (layers by longest
path, order within a layer by barycentres); edges that close a circle are left out of it.
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
    """What stands together: one node, or what there is for each game, whose names `games` then has in the same order.

    A folded card has one row for all its nodes.
    """

    name: str
    rows: tuple[str, ...]
    games: tuple[str, ...] = ()
    is_folded: bool = False

    @property
    def height(self) -> int:
        """How high the card is drawn."""
        rows = 1 if self.is_folded else len(self.rows)
        return rows * ROW_HEIGHT + (TITLE_HEIGHT if self.games else 0) + 8


@dataclass(frozen=True, slots=True)
class Spot:
    """A card's upper left corner."""

    card: Card
    x: float
    y: float

    def row_top(self, node: str) -> float:
        """Where a node's row begins."""
        place = 0 if self.card.is_folded else self.card.rows.index(node)
        return self.y + 4 + (TITLE_HEIGHT if self.card.games else 0) + place * ROW_HEIGHT


@dataclass(frozen=True, slots=True)
class Layout:
    """All cards in their places, and the size of the picture."""

    spots: Mapping[str, Spot]
    width: float
    height: float

    def of(self, node: str) -> Spot:
        """The place of the card that a node is in."""
        return self.spots[node]


class View(StrEnum):
    """Whether what there is for each game stands in one row or in one for each."""

    FOLDED = "folded"
    OPEN = "open"


def cards_of(graph: Graph, view: View) -> list[Card]:
    """The nodes as cards."""
    families = graph.families()
    together = {node for family in families for node in family.members.values()}
    cards = [
        Card(
            family.name,
            tuple(family.members[game] for game in sorted(family.members)),
            tuple(sorted(family.members)),
            view is View.FOLDED,
        )
        for family in families
    ]
    return [*cards, *(Card(node, (node,)) for node in sorted(graph.nodes.keys() - together))]


def arrange(cards: Sequence[Card], edges: Iterable[tuple[str, str]]) -> Layout:
    """Give each card its place."""
    card_of = {node: card.name for card in cards for node in card.rows}
    between = {(card_of[a], card_of[b]) for a, b in edges if card_of[a] != card_of[b]}
    by_name = {card.name: card for card in cards}
    layers = _layers(sorted(by_name), _without_circles(sorted(between)))
    columns = _ordered(layers, between)
    heights = [sum(by_name[name].height + CARD_GAP for name in column) for column in columns]
    tallest = max(heights, default=0)
    spots: dict[str, Spot] = {}
    for place, (column, height) in enumerate(zip(columns, heights, strict=True)):
        y = MARGIN + (tallest - height) / 2
        for name in column:
            card = by_name[name]
            spot = Spot(card, MARGIN + place * (CARD_WIDTH + COLUMN_GAP), y)
            spots |= dict.fromkeys(card.rows, spot)
            y += card.height + CARD_GAP
    width = 2 * MARGIN + len(columns) * (CARD_WIDTH + COLUMN_GAP) - COLUMN_GAP
    return Layout(spots, width, 2 * MARGIN + tallest)


def _without_circles(edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The edges but for those that would lead back to where one came from."""
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
    """The names by the longest way that leads to them."""
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
    """Each layer in an order in which few edges cross: to and fro, each by the layer that came before it."""
    neighbours: dict[str, set[str]] = {}
    for source, target in edges:
        neighbours.setdefault(source, set()).add(target)
        neighbours.setdefault(target, set()).add(source)
    forth = list(pairwise(range(len(layers))))
    back = [(right, left) for left, right in reversed(forth)]
    for fixed, moved in (forth + back) * _SWEEPS:
        _order(layers[moved], layers[fixed], neighbours)
    return layers


def _order(layer: list[str], beside: Sequence[str], neighbours: Mapping[str, set[str]]) -> None:
    """Sort a layer by where the neighbours in the layer beside stand on average."""
    places = {name: place / len(beside) for place, name in enumerate(beside)}
    own = {name: place / len(layer) for place, name in enumerate(layer)}

    def centre(name: str) -> float:
        found = [places[each] for each in neighbours.get(name, ()) if each in places]
        return fmean(found) if found else own[name]

    layer.sort(key=centre)
