"""The sizes of the segments of players."""

from dataclasses import dataclass

from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import Question, QuestionReader
from services.portal.questions import QuestionResult

SEGMENT_SIZES = Question(
    name="segment_sizes",
    title="How many players does each segment have now?",
    grain="one row per game and segment",
    asked_by="analyst",
    reader=QuestionReader.LIVE_OPS_MANAGER,
    engines=frozenset(QueryEngine),
    sql="SELECT game_name, segment, players FROM gold.segments ORDER BY game_name, segment",
)


@dataclass(frozen=True, slots=True)
class SegmentSize:
    """The number of players in a segment of a game."""

    game: str
    segment: str
    players: int


def sizes_of(result: QuestionResult | None) -> list[SegmentSize]:
    """Return the sizes in the rows of `segment_sizes`; an empty list if the question could not be run."""
    rows = () if result is None else result.rows
    return [SegmentSize(str(game), str(segment), int(str(players))) for game, segment, players in rows]
