"""Reports the judgements of live operations as metrics."""

from dataclasses import dataclass

import pyarrow.compute as pc

from gamelake.observability.metrics.serving.live_ops import JudgedFigures, LiveOpsTelemetry
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.signals import SignalKind
from gamelake.serving.live_ops.signals.watching import Judgement


@dataclass(frozen=True, slots=True)
class LiveOpsReporter:
    """Reports each batch; which signals last is known to the detector, also after a start."""

    telemetry: LiveOpsTelemetry
    detector: Detector

    def judged(self, judgement: Judgement, states: int) -> None:
        """Receive the judgement of a batch, and the number of states that changed."""
        closed = judgement.closed
        judged = JudgedFigures(
            states=states,
            late=judgement.late,
            until=(pc.max(closed["minute"]).as_py() + 1) * 60.0 if len(closed) else None,
            signals=self._signals(),
            # They change with the minutes only, and cost more than the rest.
            ratios=list(self.detector.ratios()) if len(closed) else [],
        )
        self.telemetry.judged(judged)

    def _signals(self) -> dict[tuple[str, str], int]:
        shown = {(game, kind.value): 0 for game in self.detector.games for kind in SignalKind}
        return shown | {(signal.game, signal.kind.value): 1 for signal in self.detector.lasting}
