"""The lineage as one page that needs nothing else: pictures, style and script are in it."""

from collections.abc import Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from xml.etree import ElementTree as ET

import msgspec

from gamelake.lineage.graph import Graph, NodeKind
from gamelake.lineage.recorded import RecordedEvent
from tools.lineage.details import data_of
from tools.lineage.drawing import picture
from tools.lineage.layout import View

_TEMPLATE = Path(__file__).with_name("page.html.template")


def as_page(events: Sequence[RecordedEvent], source: str = "") -> str:
    """Draw the events, which come oldest first; `source` says where they were recorded."""
    graph = Graph.of(events)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        summary=escape(_summary(graph, events[-1].event_time if events else None)),
        source=escape(source),
        folded=ET.tostring(picture(graph, View.FOLDED), encoding="unicode"),
        open=ET.tostring(picture(graph, View.OPEN), encoding="unicode"),
        # A script ends at "</script>", whatever stands around it.
        data=msgspec.json.encode(data_of(graph)).decode().replace("<", "\\u003c"),
    )


def _summary(graph: Graph, newest: datetime | None) -> str:
    if newest is None:
        return "Nothing has been told yet: run make demo, or a job on this lakehouse."
    counts = [(sum(node.kind is kind for node in graph.nodes.values()), kind.value) for kind in NodeKind]
    text = ", ".join(f"{count:,} {kind}{'' if count == 1 else 's'}" for count, kind in counts)
    return f"{text}; the last event is of {newest:%d %B %Y, %H:%M} UTC."
