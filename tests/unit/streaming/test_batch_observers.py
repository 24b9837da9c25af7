"""Observers of a stream's batches learn of each batch, and stop none."""

from pathlib import Path

import pytest

from gamelake.ledger.manifests import BatchManifest
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.observers import BatchObserver
from tests.support.logged import logged
from tests.support.manifests import offsets_of
from tests.unit.streaming.streams import a_stream, run_batch


class OneRecordNoTable:
    """Decides batches of one record that writes nothing."""

    def decide(self, records: object, planned: object, plan: object) -> Decision:
        """Decide; write no file."""
        del records, planned, plan
        return Decision((offsets_of(0, 0),), (), {}, {}, ())

    def learn(self, columns: object) -> bool:
        del columns
        return False


class Noting(BatchObserver):
    """Notes the calls for each batch."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def window_checked(self, left_out: int) -> None:
        self.calls.append(f"window left out {left_out}")

    def tables_held_back(self, count: int) -> None:
        self.calls.append(f"{count} held")

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        assert decide_seconds >= 0
        assert commit_seconds >= 0
        self.calls.append(f"committed {manifest.batch_id}")


class Broken(BatchObserver):
    """Fails at each call for a batch."""

    def window_checked(self, left_out: int) -> None:
        raise ZeroDivisionError(left_out)

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        raise ZeroDivisionError(manifest.batch_id)


def test_observers_learn_of_a_batch_in_the_order_of_its_steps(tmp_path: Path) -> None:
    first, second = Noting(), Noting()

    run_batch(tmp_path, OneRecordNoTable(), first, second)
    run_batch(tmp_path, OneRecordNoTable(), second)

    assert first.calls == ["window left out 0", "0 held", "committed 0"]
    # The second time the batch is decided already.
    assert second.calls == [*first.calls, "0 held", "committed 0"]


def test_an_observer_that_fails_stops_neither_the_batch_nor_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noting = Noting()

    run_batch(tmp_path, OneRecordNoTable(), Broken(), noting)

    assert noting.calls == ["window left out 0", "0 held", "committed 0"]
    assert {failed["function"] for failed in logged(caplog, "telemetry_failed")} == {
        "window_checked",
        "batch_committed",
    }
    assert a_stream(tmp_path).manifests.batches() == [0]
