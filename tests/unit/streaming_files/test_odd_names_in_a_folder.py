"""A file is found, listed and read whatever its name is, and the files next to it are too."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import obstore
import pytest
from obstore.store import LocalStore

from gamelake.model.errors import StoreUnavailableError
from gamelake.objects.store import Location
from gamelake.streaming.files.arrivals.any_names import FolderOfAnyNames
from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.arrivals.reconciliation import (
    BucketReconciliation,
    MissingNotifications,
    missing_notifications,
)
from services.notifier.folder import Folder
from tests.support.eventually import eventually
from tests.unit.streaming_files.contract import line
from tests.unit.streaming_files.task_runs import FileRuns, notification

ODD_NAMES = ("a\tb.json", "a\nb.json", "a\x7fb.json", "a b+c%2F.json", "\U0001f3ae.json", "x" * 250 + ".json")


def listed(runs: FileRuns, prefix: str = "") -> MissingNotifications:
    """What a reconciliation of the folder finds."""
    landing = LandingBucket(Location(uri=runs.landing.as_uri()))
    return missing_notifications(runs.lakehouse, landing, prefix, timedelta(0), datetime.now(UTC) + timedelta(days=1))


def test_a_listing_finds_files_with_odd_names_and_all_others(runs: FileRuns) -> None:
    for name in (*ODD_NAMES, "good.json", "folder/good.json", ".hidden", "half.tmp"):
        runs.write(name, line())

    found = listed(runs)

    expected = {*ODD_NAMES, "good.json", "folder/good.json"}
    assert {change.key for change in found.changes()} == expected
    assert found.summary.named == found.summary.listed == len(expected)


def test_the_events_of_files_with_odd_names_are_rows(runs: FileRuns) -> None:
    values = [runs.write(name, line(event_id=f"event-{number}")) for number, name in enumerate(ODD_NAMES)]

    run = runs.run(*values)

    assert set(run.outcomes().values()) == {"taken"}
    assert sorted(map(str, run.event_ids())) == [f"event-{number}" for number in range(len(ODD_NAMES))]


@pytest.mark.parametrize("key", ["../secret.json", "folder/../good.json", "folder//good.json", "/good.json"])
def test_a_name_of_another_file_reads_no_file(runs: FileRuns, key: str) -> None:
    runs.write("good.json", line())
    runs.write("folder/good.json", line())
    (runs.folder / "secret.json").write_bytes(line())

    run = runs.run(notification(key, 10))

    assert run.event_ids() == []
    assert [reason for reason, _ in run.letters()] == ["unreadable_file"]


def test_names_that_no_notification_can_have_are_counted_and_shown(runs: FileRuns) -> None:
    runs.write("good.json", line())
    Path(os.fsdecode(os.fsencode(runs.landing) + b"/\xff\xfe.json")).write_bytes(line())
    runs.write("/".join(["x" * 250] * 5), line())

    found = listed(runs)

    assert [change.key for change in found.changes()] == ["good.json"]
    summary: BucketReconciliation = found.summary
    assert (summary.listed, summary.named, summary.known, summary.unnameable) == (3, 1, 0, 2)
    assert r"'\udcff\udcfe.json'" in summary.unnameable_examples


def test_the_notifier_names_a_file_with_an_odd_name_as_a_listing_does(runs: FileRuns) -> None:
    for name in (*ODD_NAMES, "good.json"):
        runs.write(name, line())
    folder = Folder(runs.landing)

    assert {change.key: change for change in listed(runs).changes()} == {
        name: folder.change(name) for name in (*ODD_NAMES, "good.json")
    }


def test_a_file_whose_name_is_not_text_stops_no_notifications(runs: FileRuns) -> None:
    stop, keys = Event(), list[str]()
    folder = Folder(runs.landing)

    def watch() -> None:
        for group in folder.changes(stop):
            keys.extend(change.key for change in group)

    def notified(name: str) -> bool:
        # Again and again, as the watch begins at some moment.
        runs.write(name, line())
        return name in keys or watching.done()

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            eventually(lambda: notified("before.json"))
            Path(os.fsdecode(os.fsencode(runs.landing) + b"/\xff.json")).write_bytes(line())
            eventually(lambda: notified("after.json"))
        finally:
            stop.set()
        watching.result()
    assert set(keys) == {"before.json", "after.json"}


def test_the_etag_is_that_of_the_client_that_reads_files(runs: FileRuns) -> None:
    runs.write("good.json", line())

    found = FolderOfAnyNames(runs.landing).find("good.json")

    assert found is not None
    assert f'"{found.name.etag}"' == obstore.head(LocalStore(runs.landing), "good.json")["e_tag"]


def test_an_overwritten_file_with_an_odd_name_is_superseded(runs: FileRuns) -> None:
    runs.write("a\tb.json", line())
    change = Folder(runs.landing).change("a\tb.json")
    assert change is not None
    runs.write("a\tb.json", line() + b"\n")

    run = runs.run(notification("a\tb.json", change.size).replace(b'"eTag": ""', f'"eTag": "{change.etag}"'.encode()))

    assert run.outcomes() == {"a\tb.json": "superseded"}


def test_a_linked_folder_is_listed_once_though_it_leads_back(runs: FileRuns) -> None:
    runs.write("folder/good.json", line())
    (runs.landing / "folder/back").symlink_to(runs.landing)
    other = runs.folder / "other"
    other.mkdir()
    (other / "more.json").write_bytes(line())
    (runs.landing / "linked").symlink_to(other)

    assert {change.key for change in listed(runs).changes()} == {"folder/good.json", "linked/more.json"}
    assert {change.key for change in listed(runs, "li").changes()} == {"linked/more.json"}


def test_a_folder_that_is_gone_is_an_outage_and_no_missing_file(runs: FileRuns) -> None:
    value = runs.write("good.json", line())
    (runs.landing / "good.json").unlink()
    runs.landing.rmdir()

    with pytest.raises(StoreUnavailableError, match="landing, in which files arrive, does not exist"):
        runs.run(value)
