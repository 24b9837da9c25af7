"""PromQL that panels share: ages, and the top series of a range."""

import re

_SELECTOR = re.compile(r"\bgamelake[:_][a-z0-9_:]+(?:\{[^}]*\})?(?:\[[^\]]+\])?|\bkafka_\w+\{[^}]*\}(?:\[[^\]]+\])?")


def age(timestamp: str) -> str:
    """Seconds since a timestamp; no result for 0, which stands for "never" and would be an age of decades."""
    return f"time() - ({timestamp} > 0)"


def top(number: int, label: str, expression: str, *, by: str | None = None, least: bool = False) -> str:
    """The series that are largest at the end of the shown range, over the whole range.

    `topk` alone selects at each point in time: a series that was large an hour ago is in the legend with the value
    that it had then.

    Args:
        number: how many series.
        label: the only label of the expression's series.
        expression: a query of Gamelake's or Kafka's metrics.
        by: the query whose value decides, if it is another one.
        least: take the smallest instead.
    """
    choose = "bottomk" if least else "topk"
    ranking = at_end(by or expression)
    if by is not None:
        # A series that has ended since is not shown.
        ranking = f"({ranking}) and on ({label}) ({at_end(expression)})"
    return f"({expression}) and on ({label}) {choose}({number}, {ranking})"


def at_end(expression: str) -> str:
    """The query with each selector evaluated at the end of the shown range.

    Raises:
        ValueError: the query has none of the metrics whose selectors are recognised.
    """
    changed, found = _SELECTOR.subn(r"\g<0> @ end()", expression)
    if not found:
        raise ValueError(f"no selector of a known metric in {expression}")
    return changed


def finite(expression: str, label: str) -> str:
    """The query with -1 in place of infinity, which has no place on an axis and cannot be mapped to a text."""
    return f"({expression} < +Inf) or on ({label}) -({expression} == bool +Inf)"


def top_rates(number: int, label: str, counter: str, *, factor: str = "") -> str:
    """The rates per second of the counters that grew most in the shown range; `factor` is put in front of each rate."""
    shown, whole = (f"sum by ({label}) (rate({counter}[{window}]))" for window in ("$__rate_interval", "$__range"))
    return top(number, label, factor + shown, by=whole)


def quantile(share: float, labels: str, histogram: str) -> str:
    """A quantile of a histogram's buckets by labels, which end with `le`; no result where nothing was observed."""
    return f"histogram_quantile({share}, sum by ({labels}) (rate({histogram}[$__rate_interval]))) >= 0"
