"""The part of the page that says what Great Expectations found."""

from xml.etree import ElementTree as ET

from gamelake.quality.tables.findings import Bounds
from tools.demo.page_table import page_table
from tools.demo.plot import Bar, bar_list
from tools.demo.validation import Failure, GameTally, Validation

_COLUMNS = ("failed", "of", "severity", "observed", "expected", "ask")
_ALL_GAMES = "all games"
_SHOWN = 50


def as_section(validation: Validation | None) -> str:
    """Expectations by game as a picture, and each that failed; how to have them judged where nobody has yet."""
    if validation is None:
        return "<p><code>make quality</code> judges the newest day, and shows here what it found.</p>"
    told = f"<p>{_said(validation)}</p>{_key()}{ET.tostring(expectations(validation), encoding='unicode')}"
    if not validation.failures:
        return told
    return told + page_table(_COLUMNS, map(_failure, validation.failures[:_SHOWN]))


def expectations(validation: Validation) -> ET.Element:
    """How many expectations on each game passed, and how many failed."""
    return bar_list("Expectations by game", [_bar(game) for game in validation.games])


def _said(validation: Validation) -> str:
    passed = sum(game.passed for game in validation.games)
    skipped = sum(game.skipped for game in validation.games)
    return (
        f"The day {validation.day}, judged on {validation.validated_at:%d %B %Y, %H:%M} UTC: "
        f"{passed:,} expectations passed, {len(validation.failures):,} failed, {skipped:,} had nothing to judge."
    )


def _key() -> str:
    return (
        '<p><i class="key a"></i><span>passed</span> <i class="key b"></i><span>failed</span>; those with nothing to '
        "judge are left out</p>"
    )


def _bar(game: GameTally) -> Bar:
    name = game.game or _ALL_GAMES
    title = f"{name}: {game.passed} passed, {game.failed} failed, {game.skipped} had nothing to judge"
    return Bar(name, game.passed + game.failed, title, rest=game.failed)


def _failure(failure: Failure) -> tuple[str, ...]:
    return (
        failure.expectation,
        f"{failure.game or _ALL_GAMES}, {failure.suite}",
        failure.severity,
        f"{failure.observed or 0:,.6g}",
        Bounds(failure.least, failure.most).told,
        failure.owner,
    )
