"""Panels and queries that several dashboards have: alerts, services that respond, a batch's phases."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.panels import (
    DURATION,
    FULL_WIDTH,
    Column,
    Link,
    Query,
    Rating,
    StateTimeline,
    Table,
    Word,
)

UP = (Word(0, "down", Rating.BAD), Word(1, "up"))
_SHOWN_LABELS = ("severity", "query", "game", "table", "job")


def firing_alerts(selector: str = "", width: int = FULL_WIDTH) -> Table:
    """A table of the alerts that fire now.

    Args:
        selector: further label matchers, each after a comma.
        width: in Grafana's grid units.
    """
    labels = ", ".join(("alertname", *_SHOWN_LABELS))
    firing = f'ALERTS{{alertstate="firing", severity!="none"{selector}}}'
    # Prometheus keeps since when an alert's condition is true as the value of ALERTS_FOR_STATE.
    since = f"max by ({labels}) (time() - ALERTS_FOR_STATE and ignoring (alertstate) {firing})"
    return Table(
        title="Alerts that fire",
        description=(
            "What each alert is about, and for how long its condition has been true. Its name leads to the runbook."
        ),
        label="alertname",
        columns=(Column("True for", DURATION, since),),
        more_labels=_SHOWN_LABELS,
        sort="severity",
        smallest_first=True,
        links=(Link("Runbook"),),
        empty="none fires",
        width=width,
        height=7,
    )


def alert_history(selector: str = "", width: int = 12) -> StateTimeline:
    """When each alert fired in the shown range.

    Args:
        selector: further label matchers, each after a comma.
        width: in Grafana's grid units.
    """
    firing = f'ALERTS{{alertstate="firing", severity!="none"{selector}}}'
    labels = "alertname, query"
    return StateTimeline(
        title="When alerts fired",
        description="A row for each alert that fired in the shown range: red while it fires, green before and after.",
        unit=units.NoUnit,
        # Explicit zeros: without them a resolved alert would keep its state.
        queries=(
            Query(
                f"max by ({labels}) ({firing}) or 0 * max by ({labels}) (max_over_time({firing}[$__range] @ end()))",
                "{{alertname}} {{query}}",
            ),
        ),
        words=(Word(0, "resolved"), Word(1, "fires", Rating.BAD)),
        empty="none fired",
        width=width,
        height=9,
    )


def responding_services(width: int = 12) -> StateTimeline:
    """Which services respond to Prometheus, over time."""
    return StateTimeline(
        title="Services that respond",
        description=(
            "Whether Prometheus reaches each service; of several workers, the worst. See the runbook TargetDown. "
            "PostgreSQL, Grafana, Spark's history and the alert receiver have no metrics."
        ),
        unit=units.NoUnit,
        queries=(Query("min by (job) (up)", "{{job}}"),),
        words=UP,
        width=width,
        height=13,
    )


def mean_by_phase(window: str) -> str:
    """Mean duration of the phases of the selected queries' batches; no result without a batch in the window."""
    selector = '{query=~"$query", phase!~"trigger_execution|add_batch"}'
    return (
        f"sum by (phase) (rate(gamelake_stream_batch_seconds_sum{selector}[{window}])) "
        f"/ (sum by (phase) (rate(gamelake_stream_batch_seconds_count{selector}[{window}])) > 0)"
    )
