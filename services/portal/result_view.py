"""A question's result for its page: the texts of the table, a chart of one measure, and the files to download."""

import base64
import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import msgspec
from markupsafe import Markup

from services.portal import charts
from services.portal.charts import Amount, Line, Plot
from services.portal.display import ColumnKind, ColumnStyle, style_of, text
from services.portal.questions import QuestionResult

_MOST_BARS = 15
# The difference of two larger numbers may be infinite.
_NEAR_INFINITY = 1e100
_TIMES = frozenset({"event_date", "hour", "first_day", "first_week", "ingest_date"})
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?")
# A spreadsheet runs a text that begins with one of these.
# Source: OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of the table: its values and their texts."""

    name: str
    style: ColumnStyle
    values: tuple[object, ...]

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def is_number(self) -> bool:
        """True if the texts are aligned to the right."""
        return self.style.kind.is_measure

    @property
    def is_moment(self) -> bool:
        """True if each value is a date or a time, which is not broken into lines."""
        return all(value is None or _MOMENT.fullmatch(text(value)) for value in self.values)

    def texts(self) -> list[str]:
        """Return the text of each value."""
        return [self.style.text(value) for value in self.values]


@dataclass(frozen=True, slots=True)
class DownloadLink:
    """A file to download: its name and its content as an address."""

    name: str
    label: str
    address: str


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result as its page shows it.

    Attributes:
        columns: those with a value.
        left_out: the names of those without.
        rows: the texts of the cells.
        chart: the picture; None if nothing in the result can be drawn.
        legend: the names of the chart's lines, if it has several.
        downloads: the rows as CSV and JSON.
    """

    columns: tuple[ResultColumn, ...]
    left_out: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool
    chart: Markup | None
    legend: tuple[str, ...]
    downloads: tuple[DownloadLink, ...]

    @property
    def summary(self) -> str:
        """The number of rows, in a sentence."""
        count = f"{len(self.rows):,} {'row' if len(self.rows) == 1 else 'rows'}"
        return f"The first {count}; there are more" if self.is_cut else count


def view_of(name: str, title: str, result: QuestionResult) -> ResultView:
    """Return the view of a result.

    Args:
        name: names the files.
        title: the question.
        result: its rows.
    """
    every = [
        ResultColumn(column, style_of(column, values), values)
        for column, values in zip(result.columns, _columns(result), strict=True)
    ]
    columns = tuple(each for each in every if any(value not in {None, ""} for value in map(_hashable, each.values)))
    chart, legend = _chart(title, columns)
    return ResultView(
        columns=columns,
        left_out=tuple(each.title for each in every if each not in columns),
        rows=tuple(zip(*(each.texts() for each in columns), strict=True)),
        is_cut=result.is_cut,
        chart=chart,
        legend=legend,
        downloads=tuple(_downloads(name, result)),
    )


def as_csv(result: QuestionResult) -> str:
    """Return the rows as CSV with a header; a text that a spreadsheet would run as a formula begins with '."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(map(_harmless, result.columns))
    writer.writerows([_harmless(value) for value in row] for row in result.rows)
    return file.getvalue()


def as_json(result: QuestionResult) -> bytes:
    """Return the rows as a list of objects."""
    records = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    return msgspec.json.format(msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode(records), indent=1)


def _columns(result: QuestionResult) -> Iterator[tuple[object, ...]]:
    for place in range(len(result.columns)):
        yield tuple(row[place] for row in result.rows)


def _hashable(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float | Decimal | date) else repr(value)


def _harmless(value: object) -> object:
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _downloads(name: str, result: QuestionResult) -> Iterator[DownloadLink]:
    # A link to the content itself: the file has the rows of this page, and no query runs again.
    for kind, content_type, content in (
        ("csv", "text/csv", as_csv(result).encode()),
        ("json", "application/json", as_json(result)),
    ):
        address = f"data:{content_type};charset=utf-8;base64,{base64.b64encode(content).decode()}"
        yield DownloadLink(f"{name}.{kind}", kind.upper(), address)


def _chart(title: str, columns: Sequence[ResultColumn]) -> tuple[Markup | None, tuple[str, ...]]:
    measure = _measure(columns)
    if measure is None or len(measure.values) < 2:  # noqa: PLR2004 # one value needs no picture
        return None, ()
    names = [each for each in columns if not each.is_number and each.name != "is_provisional"]
    time = next((each for each in names if each.name in _TIMES), None)
    if time is None or len(set(map(text, time.values))) < 2:  # noqa: PLR2004 # as above
        return _bars(title, [each for each in names if each is not time] or names, measure), ()
    return _lines(title, time, [each for each in names if each is not time], measure)


def _measure(columns: Sequence[ResultColumn]) -> ResultColumn | None:
    """The column that is drawn: a share if there is one, else an amount of money, else the first number."""
    for kind in (ColumnKind.SHARE, ColumnKind.MONEY, ColumnKind.NUMBER, ColumnKind.TIME):
        for each in columns:
            if each.style.kind is kind:
                return each
    return None


def _bars(title: str, names: Sequence[ResultColumn], measure: ResultColumn) -> Markup:
    labels = _labels(names, len(measure.values))
    amounts = [
        Amount(label, amount)
        for label, value in zip(labels, measure.values, strict=True)
        if (amount := _amount(value)) is not None
    ][:_MOST_BARS]
    first = "the first " if len(amounts) < len(labels) else ""
    description = f"{measure.title} of {first}{len(amounts)} rows; the table below has all values."
    return charts.bars(title, description, amounts, measure.style.text)


def _lines(
    title: str, time: ResultColumn, names: Sequence[ResultColumn], measure: ResultColumn
) -> tuple[Markup, tuple[str, ...]]:
    moments = sorted(set(map(text, time.values)))
    place = {moment: float(index) for index, moment in enumerate(moments)}
    values: dict[str, dict[str, float]] = {}
    labels = _labels(names, len(measure.values)) if names else [measure.title] * len(measure.values)
    for moment, label, value in zip(map(text, time.values), labels, measure.values, strict=True):
        if (amount := _amount(value)) is not None:
            values.setdefault(label, {})[moment] = amount
    most = sorted(values, key=lambda name: -sum(values[name].values()))[: charts.SERIES]
    write = measure.style.text
    lines = []
    for name in most:
        course = sorted(values[name].items())
        points = [(place[moment], value, f"{name}, {moment}: {write(value)}") for moment, value in course]
        lines.append(Line(name, points))
    of = f" of the {len(most)} largest of {len(values)}" if len(most) < len(values) else ""
    chart = Plot(
        title=title,
        description=f"{measure.title}{of}, from {moments[0]} to {moments[-1]}; the table below has all values.",
        across=time.title,
        up=measure.title,
        end=float(len(moments) - 1),
        lines=lines,
        labels=[moment[5:] for moment in moments],
        write=write,
    )
    return charts.plot(chart), tuple(most) if names else ()


def _amount(value: object) -> float | None:
    """Return a value that can be drawn; None for null, NaN, infinity, and numbers near it."""
    amount = math.nan if value is None else float(str(value))
    return amount if abs(amount) < _NEAR_INFINITY else None


def _labels(names: Sequence[ResultColumn], count: int) -> list[str]:
    if not names:
        return [f"row {number}" for number in range(1, count + 1)]
    return [", ".join(parts) for parts in zip(*(each.texts() for each in names), strict=True)]
