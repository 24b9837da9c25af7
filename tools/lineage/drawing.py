"""Draws a layout as SVG; elements have the names of their nodes and edges as data attributes."""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from gamelake.observability.lineage.graph import Graph, Node, NodeKind, job_id
from tools.lineage.layout import (
    CARD_WIDTH,
    ROW_HEIGHT,
    TITLE_HEIGHT,
    CardLayout,
    CardPosition,
    LineageView,
    arrange,
    cards_of,
)

_LETTERS = 28
_JOB = job_id("")


def picture(graph: Graph, view: LineageView) -> ET.Element:
    """Draw the graph as SVG: edges first, so that the cards are drawn over them."""
    layout = arrange(cards_of(graph, view), graph.edges)
    size = f"0 0 {layout.width:.0f} {layout.height:.0f}"
    svg = ET.Element("svg", {"viewBox": size, "width": f"{layout.width:.0f}", "class": view.value, "role": "group"})
    svg.set("aria-label", f"{len(graph.nodes)} topics, tables and jobs")
    edges = ET.SubElement(svg, "g", {"class": "edges"})
    for d, pairs in _paths(layout, sorted(graph.edges)).items():
        edge = ET.SubElement(edges, "path", {"d": d})
        edge.set("data-edges", ";".join(f"{source}>{target}" for source, target in pairs))
    for position in {position.card.name: position for position in layout.positions.values()}.values():
        svg.append(_card(position, graph))
    return svg


def _paths(layout: CardLayout, edges: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Edges by their SVG path: all edges between two collapsed cards share one path."""
    paths: dict[str, list[tuple[str, str]]] = {}
    for source, target in edges:
        left, right = layout.of(source), layout.of(target)
        x1, y1 = left.x + CARD_WIDTH, left.row_top(source) + ROW_HEIGHT / 2
        x2, y2 = right.x, right.row_top(target) + ROW_HEIGHT / 2
        # An edge to the left, or within a layer, goes around the cards.
        bend = max(40.0, (x2 - x1) / 2) if x2 > x1 else 70.0
        paths.setdefault(
            f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}", []
        ).append((source, target))
    return paths


def _card(position: CardPosition, graph: Graph) -> ET.Element:
    card = position.card
    kind = graph.nodes[card.rows[0]].kind
    group = ET.Element("g", {"class": f"card {kind.value} {_layer(graph.nodes[card.rows[0]])}"})
    box = {
        "x": position.x,
        "y": position.y,
        "width": CARD_WIDTH,
        "height": card.height,
        "rx": 9 if kind is NodeKind.JOB else 3,
    }
    ET.SubElement(group, "rect", {"class": "box", **{name: f"{value:.0f}" for name, value in box.items()}})
    if card.games:
        _text(group, "title", position.x + 10, position.y + TITLE_HEIGHT - 6, shown(card.name))
    if card.is_collapsed:
        group.append(_row(position, card.rows, f"{len(card.rows)} games"))
    else:
        for node, text in zip(card.rows, card.games or map(shown, card.rows), strict=True):
            group.append(_row(position, (node,), text))
    return group


def _row(position: CardPosition, nodes: Sequence[str], text: str) -> ET.Element:
    row = ET.Element("g", {"class": "row", "tabindex": "0", "role": "button"})
    row.set("data-nodes", ";".join(nodes))
    top = position.row_top(nodes[0])
    place = {"x": position.x + 3, "y": top, "width": CARD_WIDTH - 6, "height": ROW_HEIGHT, "rx": 3}
    ET.SubElement(row, "rect", {"class": "ground", **{name: f"{value:.0f}" for name, value in place.items()}})
    _text(row, "name", position.x + 10, top + 13, text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…")
    ET.SubElement(row, "title").text = text if len(nodes) > 1 else shown(nodes[0])
    return row


def _text(parent: ET.Element, style: str, x: float, y: float, text: str) -> None:
    ET.SubElement(parent, "text", {"class": style, "x": f"{x:.0f}", "y": f"{y:.0f}"}).text = text


def shown(name: str) -> str:
    """Return the displayed name of a node, without the prefix of jobs."""
    return name.removeprefix(_JOB)


def _layer(node: Node) -> str:
    """The CSS class of a table's layer; empty for other nodes."""
    return f"layer-{node.id.partition('/')[0]}" if node.kind is NodeKind.TABLE else ""
