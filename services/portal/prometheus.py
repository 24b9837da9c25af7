"""A client of Prometheus' HTTP API.

All values are finite. NaN, the result of 0 / 0, and infinity, that of 1 / 0, count as missing, since nothing can draw
them.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import urllib3

from gamelake.model.errors import TransientError


class FiguresUnavailableError(TransientError):
    """Prometheus does not respond."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """The values of a metric over time, each with its time in seconds since 1970, oldest first."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class _Result(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str] = (0, "NaN")
    values: tuple[tuple[float, str], ...] = ()


class _Data(msgspec.Struct):
    result: list[_Result] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)


class Prometheus:
    """A server, with the client's certificate where it wants one."""

    def __init__(self, url: str, http: urllib3.PoolManager) -> None:
        self._url = url
        self._http = http

    def at(self, moment: float, expression: str) -> list[Sample]:
        """Return the expression's values at a time in seconds since 1970.

        Raises:
            FiguresUnavailableError: Prometheus does not respond, or refuses the query.
        """
        return list(samples_of(self._get("query", query=expression, time=str(moment))))

    def now(self, expression: str) -> list[Sample]:
        """Return the expression's current values; raises as `at`."""
        return self.at(time.time(), expression)

    def over_time(self, expression: str, start: float, end: float, step: int) -> list[Series]:
        """Return the expression's values from `start` to `end`, one every `step` seconds; raises as `at`."""
        answer = self._get("query_range", query=expression, start=str(start), end=str(end), step=str(step))
        return list(series_of(answer))

    def _get(self, name: str, **fields: str) -> bytes:
        try:
            return self._http.request("GET", f"{self._url}/api/v1/{name}", fields=fields).data
        except urllib3.exceptions.HTTPError as error:
            raise FiguresUnavailableError(f"Prometheus does not respond: {type(error).__name__}") from error


def samples_of(body: bytes) -> Iterator[Sample]:
    """Yield the values in the response to an instant query.

    Raises:
        FiguresUnavailableError: Prometheus reports an error, or the body is not its response.
    """
    for each in _results(body):
        if math.isfinite(value := float(each.value[1])):
            yield Sample(each.metric, value)


def series_of(body: bytes) -> Iterator[Series]:
    """Yield the series in the response to a range query that have a value; raises as `samples_of`."""
    for each in _results(body):
        points = tuple((moment, number) for moment, value in each.values if math.isfinite(number := float(value)))
        if points:
            yield Series(each.metric, points)


def _results(body: bytes) -> list[_Result]:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError as error:
        raise FiguresUnavailableError(f"Prometheus does not respond: {type(error).__name__}") from error
    if answer.status != "success":
        raise FiguresUnavailableError("Prometheus refuses a query of the portal")
    return answer.data.result
