"""A store that refuses one object harms that object; a store that refuses everything stops the task, and no file."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gamelake.model.errors import StoreError, StoreUnavailableError
from gamelake.objects.store import Store, require_put_if_absent
from tests.embedded.memory_store import Answer, Answering, MemoryStore, Request
from tests.unit.streaming_files.contract import line
from tests.unit.streaming_files.task_runs import FileRuns, notification

_OBJECTS = {"plain.json": line(event_id="plain"), "odd.json": line(event_id="odd")}


def refusing(refusals: Mapping[str, tuple[int, str]]) -> Answering:
    """Refuse some keys, each with a status and the code of the error."""

    def answer(request: Request, right: Callable[[], Answer]) -> Answer:
        refused = refusals.get(request.key)
        return Answer.refusal(*refused) if refused else right()

    return answer


def notifications() -> list[bytes]:
    return [notification(key, len(content)) for key, content in _OBJECTS.items()]


@pytest.mark.parametrize(
    "refused", [(403, "InvalidObjectState"), (403, "AccessDenied"), (400, "InvalidRequest"), (405, "MethodNotAllowed")]
)
def test_an_archived_object_or_one_under_another_key_is_a_dead_letter(tmp_path: Path, refused: tuple[int, str]) -> None:
    with MemoryStore(_OBJECTS, refusing({"odd.json": refused})).served() as landing:
        run = FileRuns(tmp_path).run(*notifications(), landing=landing)

    assert run.outcomes() == {"plain.json": "taken", "odd.json": "dead_letter"}
    assert run.letters()[-1] == ("unreadable_file", notifications()[1])


def test_without_the_right_to_list_the_bucket_an_object_that_was_read_shows_that_the_store_answers(
    tmp_path: Path,
) -> None:
    # To a program that may not list the bucket, S3 says 403 for an object that does not exist.
    store = MemoryStore(_OBJECTS, refusing({"odd.json": (403, "InvalidObjectState")}), missing=(403, "AccessDenied"))
    with store.served() as landing:
        run = FileRuns(tmp_path).run(*notifications(), landing=landing)

    assert run.outcomes() == {"plain.json": "taken", "odd.json": "dead_letter"}


def test_an_object_larger_than_its_notification_says_is_read_whole(tmp_path: Path) -> None:
    with MemoryStore(_OBJECTS).served() as landing:
        run = FileRuns(tmp_path).run(notification("plain.json", 10), landing=landing)

    assert run.outcomes() == {"plain.json": "taken"}


def test_a_store_that_has_no_conditional_puts_is_refused_within_seconds_with_the_remedy() -> None:
    puts = list[Request]()

    def answer(request: Request, right: Callable[[], Answer]) -> Answer:
        if "if-none-match" not in request.headers:
            return right()
        puts.append(request)
        return Answer.refusal(501, "NotImplemented")

    with (
        MemoryStore({}, answer).served("lake") as lake,
        pytest.raises(StoreError, match="Use a store with conditional"),
    ):
        require_put_if_absent(Store(lake))

    # The client's pauses, of some tenths of a second, double from one attempt to the next.
    assert len(puts) <= 3


def test_revoked_credentials_stop_the_task_and_make_no_dead_letters(tmp_path: Path) -> None:
    denied = (403, "InvalidAccessKeyId")
    store = MemoryStore(_OBJECTS, refusing(dict.fromkeys(_OBJECTS, denied)), missing=denied)

    with store.served() as landing, pytest.raises(StoreUnavailableError, match="landing"):
        FileRuns(tmp_path).run(*notifications(), landing=landing)


@pytest.mark.parametrize("key", ["incoming//a.json", "/a.json", "a\tb.json", "a\x7fb.json", "a b//+%2F?#.json"])
def test_the_events_of_a_file_with_an_odd_key_are_rows(tmp_path: Path, key: str) -> None:
    others = {"a.json": line(event_id="other"), "incoming/a.json": line(event_id="other")}
    with MemoryStore({**_OBJECTS, **others, key: line(event_id="odd")}).served() as landing:
        run = FileRuns(tmp_path).run(notifications()[0], notification(key, 10), landing=landing)

    assert run.outcomes() == {"plain.json": "taken", key: "taken"}
    assert sorted(map(str, run.event_ids())) == ["odd", "plain"]


@pytest.mark.parametrize("key", ["a/../b.json", "..", "a/./b.json"])
def test_a_key_that_no_client_can_ask_for_is_a_dead_letter(tmp_path: Path, key: str) -> None:
    # A client of HTTP resolves these segments before it sends the path, and would ask for another object.
    with MemoryStore({**_OBJECTS, "b.json": line(), key: line()}).served() as landing:
        run = FileRuns(tmp_path).run(notifications()[0], notification(key, 10), landing=landing)

    assert run.outcomes() == {"plain.json": "taken", key: "dead_letter"}
    assert [reason for reason, _ in run.letters()] == ["unreadable_file"]


@pytest.mark.parametrize("refused", [(403, "InvalidObjectState"), (400, "InvalidRequest"), (405, "MethodNotAllowed")])
def test_a_refused_object_with_an_odd_key_is_a_dead_letter_though_it_is_alone(
    tmp_path: Path, refused: tuple[int, str]
) -> None:
    with MemoryStore(_OBJECTS, refusing({"a//b.json": refused})).served() as landing:
        run = FileRuns(tmp_path).run(notification("a//b.json", 10), landing=landing)

    assert run.outcomes() == {"a//b.json": "dead_letter"}


@pytest.mark.parametrize("key", ["plain.json", "a//b.json"])
@pytest.mark.parametrize("code", ["NoSuchBucket", "", "a proxy's page"])
def test_a_404_that_does_not_say_that_the_object_is_missing_is_an_outage(tmp_path: Path, key: str, code: str) -> None:
    store = MemoryStore({}, missing=(404, code))

    with store.served() as landing, pytest.raises(StoreUnavailableError, match="landing"):
        FileRuns(tmp_path).run(notification(key, 10), landing=landing)


@pytest.mark.parametrize("key", ["gone.json", "a//gone.json"])
@pytest.mark.parametrize("code", ["NoSuchKey", "NoSuchVersion"])
def test_a_missing_object_is_a_missing_file(tmp_path: Path, key: str, code: str) -> None:
    with MemoryStore(_OBJECTS, missing=(404, code)).served() as landing:
        run = FileRuns(tmp_path).run(notification(key, 10), landing=landing)

    assert [reason for reason, _ in run.letters()] == ["missing_file"]
