"""The graph that lineage events make: topics, tables and jobs, and what leads from which to which."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gamelake.model.naming import game_of
from gamelake.observability.lineage.recorded import TOPICS, Dataset, RecordedEvent


class NodeKind(StrEnum):
    """The kind of a node."""

    TOPIC = "topic"
    TABLE = "table"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Node:
    """A topic, a table or a job, and the newest event that names it; `dataset` is its description there."""

    id: str
    kind: NodeKind
    event: RecordedEvent
    dataset: Dataset | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Nodes that exist once for each game: their name with the game left out, and the member of each game."""

    name: str
    members: Mapping[str, str] = field(hash=False)


@dataclass(slots=True)
class Graph:
    """Nodes by their ids, and edges as pairs of ids."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, events: Iterable[RecordedEvent]) -> "Graph":
        """Build the graph of events, which come oldest first: a newer one adds to an older one of the same job."""
        graph = cls()
        for event in events:
            graph._take(event)
        return graph

    def _take(self, event: RecordedEvent) -> None:
        job = job_id(event.job.name)
        self.nodes[job] = Node(job, NodeKind.JOB, event)
        self._take_all(event, event.inputs)
        # After the inputs: of a table that is both, what was written says more.
        self._take_all(event, event.outputs)
        self.edges |= {(each.known_as, job) for each in event.inputs}
        self.edges |= {(job, each.known_as) for each in event.outputs}

    def _take_all(self, event: RecordedEvent, datasets: Iterable[Dataset]) -> None:
        for each in datasets:
            known = self.nodes.get(each.known_as)
            if known is None or _says_as_much(each, known.dataset):
                kind = NodeKind.TOPIC if each.known_as.startswith(f"{TOPICS}/") else NodeKind.TABLE
                self.nodes[each.known_as] = Node(each.known_as, kind, event, each)

    def before(self, node: str) -> list[str]:
        """Return all nodes that lead to a node, the nearest first."""
        found: dict[str, None] = {}
        nearest = [node]
        while nearest:
            nearest = sorted({source for source, target in self.edges if target in nearest} - found.keys() - {node})
            found |= dict.fromkeys(nearest)
        return list(found)

    def families(self) -> list[Family]:
        """Return the nodes that exist for each of several games; a game is one if it has a silver table."""
        games = sorted({game for name in self.nodes if (game := game_of(name)) is not None}, key=len, reverse=True)
        found: dict[str, dict[str, str]] = {}
        for name in sorted(self.nodes):
            for game, mark in ((game, mark) for game in games for mark in "/."):
                layer, is_of_game, rest = name.partition(f"{mark}{game}_")
                if is_of_game:
                    found.setdefault(f"{layer}{mark}<game>_{rest}", {})[game] = name
                    break
        return [Family(name, members) for name, members in found.items() if len(members) > 1]


def job_id(name: str) -> str:
    """Return a job's id among nodes, where a table may have the job's name."""
    return f"job {name}"


def _says_as_much(dataset: Dataset, known: Dataset | None) -> bool:
    """Return True if nothing would be lost: a job that only reads a table does not know where its columns come from."""
    if known is None:
        return True
    before, now = known.facets, dataset.facets
    lost_columns = bool(before.column_lineage.fields) and not now.column_lineage.fields
    return not lost_columns and not (before.protobuf.schemas and not now.protobuf.schemas)
