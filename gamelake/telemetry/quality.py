"""What rules have come to, as figures: a series for each rule and game only once a row has broken it."""

import time

from gamelake.lake.manifest import Judged
from gamelake.telemetry.metrics import Instruments, Metric


class QualityFigures:
    """The figures of one query's rules."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._rules = ""
        instruments.gauge(Metric.RULES_REFUSED).set(0)

    def count(self, judged: Judged) -> None:
        """A batch is committed."""
        self._instruments.gauge(Metric.RULES_REFUSED).set(bool(judged.refused))
        self._show_rules(judged.rules)
        counter = self._instruments.counter
        for game, rows in judged.rows.items():
            counter(Metric.JUDGED, game).inc(rows)
        for each in judged.counts:
            if each.broken:
                counter(Metric.BROKEN, each.game, each.rule, each.severity).inc(each.broken)
            if each.unjudged:
                counter(Metric.UNJUDGED, each.game, each.rule).inc(each.unjudged)
        for rule, rows in judged.dropped.items():
            counter(Metric.DROPPED, rule).inc(rows)

    def _show_rules(self, fingerprint: str) -> None:
        if fingerprint == self._rules:
            return
        if self._rules:
            self._instruments.forget(Metric.RULES_SINCE, self._rules)
        if fingerprint:
            self._instruments.gauge(Metric.RULES_SINCE, fingerprint).set(time.time())
        self._rules = fingerprint
