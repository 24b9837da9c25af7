"""A replay and a batch that run at the same time and have an event in common."""

from pathlib import Path
from threading import Event as Signal
from threading import Thread, current_thread

import pytest

from gamelake.delta.tables import open_table
from gamelake.ledger.replay_manifests import ReplayManifests
from gamelake.ledger.replay_notices import ReplayNotices
from gamelake.model.failpoints import Failpoint, Failpoints
from tests.support.eventually import eventually
from tests.unit.histories.events import NEW_GAME, Play, table_of
from tests.unit.histories.lakehouse import Lakehouse
from tests.unit.histories.model import SILVER, Model
from tests.unit.histories.operations import AddGame, Send


def test_a_replay_waits_for_a_batch_that_began_before_its_notice_and_leaves_out_what_the_batch_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, model = Lakehouse(tmp_path), Model()
    Send([Play(game=NEW_GAME), Play(game=NEW_GAME, minute=1)])(lake, model)
    AddGame()(lake, model)
    lake.send(*model.again([0]))
    begun = Signal()
    batch = Thread(target=lake.ingest)

    def reach(_: Failpoints, step: Failpoint) -> None:
        if step is not Failpoint.AFTER_FILES:
            return
        if current_thread() is batch:
            begun.set()
            eventually(lambda: bool(ReplayNotices(lake.store).numbers()), 60)
        elif not batch.is_alive():
            batch.start()
            assert begun.wait(60)

    monkeypatch.setattr(Failpoints, "reach", reach)
    replayed = lake.run("replay")
    batch.join()
    lake.stop()

    table = table_of(NEW_GAME)
    assert {name: open_table(lake.location, name).count() for name in (table, SILVER)} == {table: 2, SILVER: 2}
    assert (replayed["rows"][table], replayed["rows"][SILVER]) == (1, 1)
    assert ReplayManifests(lake.store).unfinished() == []
