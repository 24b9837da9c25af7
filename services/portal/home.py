"""The first page: five tiles, charts of all games or of one, the questions by reader, and what runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from urllib.parse import urlencode

from markupsafe import Markup

from gamelake.serving.sql.questions import Question, QuestionReader
from services.portal import charts
from services.portal.charts import Amount, Plot
from services.portal.display import UNKNOWN, duration, number, short_money
from services.portal.docs import ALERT_RUNBOOKS
from services.portal.figures import Level, Overview
from services.portal.portfolio import DAYS, GameDay, Portfolio
from services.portal.running_experiments import VariantResult
from services.portal.settings import PageLink
from services.portal.templates import PortalTemplates

_MOST_BARS = 10
_START = "make dev RATE=200 GAMES=5"
# Wider intervals are clipped: one experiment with few players must not shrink all others to a point.
_WIDEST = 0.5
_VERDICTS: Mapping[str, tuple[str, Level]] = {
    "higher": ("higher", Level.GOOD),
    "lower": ("lower", Level.BAD),
    "harmed": ("harmed", Level.BAD),
    "sample_ratio_mismatch": ("player numbers don't match the shares", Level.BAD),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A tile of the first page.

    Attributes:
        level: its colour.
        spark: the course of the value, oldest first; its title says what it covers.
        remedy: the command that helps if the value is unknown.
    """

    name: str
    value: str
    note: str
    level: Level = Level.PLAIN
    spark: tuple[float, ...] = ()
    spark_title: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class PortfolioChart:
    """A chart with its caption."""

    caption: str
    picture: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRow:
    """A running experiment's result for one variant, as texts; `picture` is the interval of the lift."""

    result: VariantResult
    verdict: str
    level: Level
    lift: str
    interval: str
    picture: Markup
    players: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The content of the first page.

    Attributes:
        overview: health and figures.
        portfolio: the figures of the games.
        game: the game that is shown; "": all games.
        questions: those that can be run, by name.
        links: pages of other services, by their titles.
    """

    overview: Overview
    portfolio: Portfolio
    game: str = ""
    questions: Mapping[str, Question] = field(default_factory=dict)
    links: Mapping[str, PageLink] = field(default_factory=dict)

    def page(self, templates: PortalTemplates) -> str:
        """Render the whole page."""
        context: dict[str, object] = {
            **_moment(),
            "overview": self.overview,
            "game": self.game,
            "query": f"?{urlencode({'game': self.game})}" if self.game else "",
            "portfolio": self.portfolio,
            "tiles": self._tiles(),
            "charts": self._charts(),
            "experiments": self._experiments(),
            "readers": [(reader.value, len(found)) for reader, found in by_reader(self.questions.values())],
            "links": self.links,
        }
        return templates.page("home.html", "/", **context)

    def tiles_part(self) -> str:
        """Render the part with the tiles, which is refreshed."""
        return PortalTemplates.part("tiles.html", tiles=self._tiles())

    def portfolio_part(self) -> str:
        """Render the part with the charts, which is refreshed until the figures were read."""
        context = {"charts": self._charts(), "experiments": self._experiments()}
        return PortalTemplates.part("portfolio.html", portfolio=self.portfolio, game=self.game, **context)

    def _tiles(self) -> list[Tile]:
        days = list(self.portfolio.by_day(self.game).values())
        return [
            self._tile_of_days("Players today", [float(day.players) for day in days], number),
            self._tile_of_days("Bookings today", [day.bookings for day in days], short_money),
            self._tile_of_days("Events today", [float(day.events) for day in days], number),
            freshness_tile(self.overview),
            alerts_tile(self.overview),
        ]

    def _tile_of_days(self, name: str, values: Sequence[float], write: charts.Write) -> Tile:
        portfolio = self.portfolio
        if values:
            late = portfolio.problem and portfolio.read_at
            return Tile(
                name=name,
                value=write(values[-1]),
                note=f"as of {portfolio.read_at:%H:%M} UTC: {portfolio.problem}"
                if late
                else f"yesterday {write(values[-2])}",
                level=Level.LATE if late else Level.PLAIN,
                spark=tuple(values),
                spark_title=f"{name}: the last {DAYS} days, from {write(min(values))} to {write(max(values))}",
                remedy=portfolio.remedy,
            )
        if portfolio.is_loading:
            return Tile(name=name, value="…", note="being read")
        if portfolio.problem:
            return Tile(name=name, value=UNKNOWN, note=portfolio.problem, level=Level.LATE, remedy=portfolio.remedy)
        return Tile(name=name, value=UNKNOWN, note="The portal has no tables to read.", remedy=_START)

    def _charts(self) -> list[PortfolioChart]:
        days = self.portfolio.by_day(self.game)
        if not days:
            return []
        found = [
            _by_day("Players by day", {day: figures.players for day, figures in days.items()}, number),
            _by_day("Bookings by day", {day: figures.bookings for day, figures in days.items()}, short_money),
            *self._revenue(days),
            _by_day("Events by day", {day: figures.events for day, figures in days.items()}, number),
        ]
        return [*found, *([] if self.game else _by_game(self.portfolio)), *self._segments()]

    def _segments(self) -> list[PortfolioChart]:
        """Return the chart of the segments of this game, or of the segments of all games by name."""
        sizes = Counter[str]()
        for each in self.portfolio.segments:
            if self.game in {"", each.game}:
                sizes[each.segment] += each.players
        if not sizes:
            return []
        most = [Amount(name.replace("_", " "), players) for name, players in sizes.most_common(_MOST_BARS)]
        text = f"The {len(most)} largest of {len(sizes)} segments; a player can be in several."
        caption = "Players by segment, now"
        return [PortfolioChart(caption, charts.bars(caption, text, most, number))]

    def _experiments(self) -> list[ExperimentRow]:
        """Return the running experiments; the page of one game shows none, because results name games differently."""
        results = [] if self.game else self.portfolio.experiments
        ends = [abs(each) for result in results for each in result.interval or ()]
        end = min(max(ends, default=0), _WIDEST)
        return [_experiment_row(result, end) for result in results]

    def _revenue(self, days: Mapping[date, GameDay]) -> list[PortfolioChart]:
        """Return the chart of sales, less refunds, taxes and store fees, and of ad revenue."""
        if not self.portfolio.has_revenue:
            return []
        values: dict[object, float] = {day: figures.revenue for day, figures in days.items()}
        return [
            _by_day("Revenue by day, from sales after refunds, taxes and store fees, and from ads", values, short_money)
        ]


def status_part(overview: Overview, now: datetime | None = None) -> str:
    """Render the part of the first page that is refreshed: health, streams, and firing alerts."""
    return PortalTemplates.part("status.html", overview=overview, **_moment(now))


def freshness_tile(overview: Overview) -> Tile:
    """Return the tile of the stream that is furthest behind."""
    known = [each for each in overview.streams if each.seconds_behind is not None]
    if not known:
        note = overview.problem or "No stream reports how far it is behind."
        return Tile(name="Freshness", value=UNKNOWN, note=note, level=Level.LATE, remedy=overview.remedy)
    worst = max(known, key=lambda each: each.seconds_behind or 0)
    history = overview.freshness
    return Tile(
        name="Freshness",
        value=duration(worst.seconds_behind),
        note=f"{worst.stream} {worst.state}",
        level=worst.level,
        spark=history,
        spark_title=f"Seconds behind, the last hour: at most {duration(max(history))}" if history else "",
    )


def alerts_tile(overview: Overview) -> Tile:
    """Return the tile of the firing alerts."""
    if overview.alerts is None:
        if overview.problem:
            return Tile(name="Alerts", value=UNKNOWN, note=overview.problem, level=Level.LATE, remedy=overview.remedy)
        return Tile(
            name="Alerts", value=UNKNOWN, note="Prometheus evaluates alerts; the stack has one:", remedy="make up"
        )
    count, history = len(overview.alerts), overview.firing
    return Tile(
        name="Alerts",
        value=f"{count:,}",
        note=", ".join(overview.alerts) if count else "No alert fires.",
        level=Level.BAD if count else Level.GOOD,
        spark=history,
        spark_title=f"Firing alerts, the last hour: at most {max(history):.0f}" if history else "",
    )


def _experiment_row(result: VariantResult, end: float) -> ExperimentRow:
    verdict, level = _VERDICTS.get(result.verdict, (result.verdict.replace("_", " "), Level.PLAIN))
    lift, interval, picture = "", "", Markup("")
    if result.interval is not None:
        low, value, high = result.interval
        lift, interval = f"{value:+.1%}", f"{low:+.1%} to {high:+.1%}"
        title = f"{result.experiment}, {result.variant}: lift {lift}, {interval}"
        picture = charts.interval(low, value, high, end, title)
    players, control = result.players
    return ExperimentRow(
        result=result,
        verdict=verdict,
        level=level,
        lift=lift or UNKNOWN,
        interval=interval,
        picture=picture,
        players=f"{number(players)} of {number(players + control)}",
    )


def by_reader(questions: Iterable[Question]) -> list[tuple[QuestionReader, list[Question]]]:
    """Return the questions of each reader that has any."""
    every = list(questions)
    groups = [(reader, [each for each in every if each.reader is reader]) for reader in QuestionReader]
    return [(reader, found) for reader, found in groups if found]


def _moment(now: datetime | None = None) -> dict[str, object]:
    return {"now": now or datetime.now(UTC), "runbooks": ALERT_RUNBOOKS}


def _by_day(caption: str, values: Mapping[object, float], write: charts.Write) -> PortfolioChart:
    labels = [f"{day:%d %b}" for day in values]
    bars = [
        (place + 0.1, place + 0.9, float(value), f"{label}: {write(value)}")
        for place, (label, value) in enumerate(zip(labels, values.values(), strict=True))
    ]
    text = f"From {labels[0]} to {labels[-1]}; the last day, which is not over, has {write(bars[-1][2])}."
    axis = charts.short if write is number else lambda value: f"${charts.short(value)}"
    plot = Plot(
        title=caption, description=text, across="", up="", end=float(len(bars)), bars=bars, labels=labels, write=axis
    )
    return PortfolioChart(caption, charts.plot(plot))


def _by_game(portfolio: Portfolio) -> list[PortfolioChart]:
    totals, today = portfolio.by_game(), list(portfolio.days.values())[-1]
    bookings = {name: figures.bookings for name, figures in totals.items()}
    players = {name: float(today.get(name, GameDay()).players) for name in totals}
    return [
        _ranking(f"Bookings by game, the last {DAYS} days", bookings, short_money),
        _ranking("Players by game, today", players, number),
    ]


def _ranking(caption: str, values: Mapping[str, float], write: charts.Write) -> PortfolioChart:
    most = sorted(values.items(), key=lambda item: (-item[1], item[0]))[:_MOST_BARS]
    amounts = [Amount(name, value, f"/?{urlencode({'game': name})}") for name, value in most]
    text = f"The {len(most)} largest of {len(values)} games; the name of a game leads to its figures."
    return PortfolioChart(caption, charts.bars(caption, text, amounts, write))
