"""Rows 14 and 32 of the fault matrix: the query started twice, and no disk space for a batch."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from gamelake.ledger.manifests import Manifests
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender
from tests.embedded.small_disk import NoSmallDiskError, SmallDisk
from tests.support.eventually import eventually

ENOUGH_MIB = 64


@pytest.fixture
def disk(lakehouse: Lakehouse, missing_service: Callable[[str], NoReturn]) -> Iterator[SmallDisk]:
    """Where the lakehouse is, and nothing else."""
    try:
        with SmallDisk.mounted(lakehouse.directory / "lake", ENOUGH_MIB) as disk:
            yield disk
    except NoSmallDiskError as error:
        missing_service(str(error))


@pytest.mark.slow
def test_a_second_driver_is_rejected_and_the_reconciliation_has_no_differences(
    lakehouse: Lakehouse, sender: Sender
) -> None:
    sender.send_events(20, "Archery")
    drivers = [lakehouse.start()]
    try:
        lakehouse.await_rows("silver/events", sender.ledger.event_ids)
        drivers.append(lakehouse.start())

        def one_has_ended() -> bool:
            sender.send_events(20, "Bingo")
            return any(driver.process.poll() is not None for driver in drivers)

        eventually(one_has_ended, timeout=180)
        [ended] = [driver for driver in drivers if driver.process.poll() is not None]
        [other] = [driver for driver in drivers if driver is not ended]
        assert ended.wait() == 3
        sender.send_events(20, "Chess")
        lakehouse.await_rows("silver/events", sender.ledger.event_ids)
        assert other.terminate() == 0
    finally:
        for driver in drivers:
            driver.process.kill()
            driver.process.wait()

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []
    assert "two drivers run" in ended.log_text()


@pytest.mark.slow
def test_a_batch_without_disk_space_fails_whole_and_continues_with_space(
    lakehouse: Lakehouse, sender: Sender, disk: SmallDisk
) -> None:
    sender.send_events(20, "Archery")
    lakehouse.ingest_in_a_process()
    filler = disk.folder / "filler"
    filler.write_bytes(bytes(disk.free_bytes))
    sender.send_events(2_000, "Bingo")

    assert lakehouse.start("--available-now").wait() != 0
    assert len(lakehouse.event_ids()) == 20
    assert len(Manifests(lakehouse.store, "ingest_events").batches()) == 1
    filler.unlink()
    lakehouse.ingest_in_a_process()

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []
