"""The gateway evaluates experiments as flags, as OFREP says, and keeps nothing of a player."""

import logging
import re
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from services.gateway.flags.endpoint import FLAGS_PATH
from services.gateway.flags.experiments import ExperimentFlags
from services.gateway.flags.messages import Context
from services.sdk import Experiment
from tests.support.logged import logged
from tests.unit.gateway.flag_requests import (
    CONDITIONAL,
    EXPERIMENTS,
    FUTURE,
    GAME,
    GAMES_FILE,
    OTHER_GAME,
    OVER,
    RUNNING,
    SLOW_KEY,
    SUPPORT_KEY,
    Flags,
    answer_of,
    context,
    experiment,
    write_experiments,
)
from tests.unit.properties import examples

SDK = Experiment(RUNNING, RUNNING, 10_000, [("control", 5_000), ("offer", 5_000)], {})
MARK = "anna@example.org"


@pytest.fixture
def flags(tmp_path: Path) -> Flags:
    return Flags.open(tmp_path)


def evaluations(result: str) -> float:
    labels = {"game": GAME, "result": result}
    return REGISTRY.get_sample_value("gamelake_ingest_flag_evaluations_total", labels) or 0


def test_a_player_of_a_running_experiment_gets_the_variant_that_the_sdk_computes(flags: Flags) -> None:
    for player in map("player-{}".format, range(50)):
        variant = SDK.variant_of(player)

        assert answer_of(flags.post(RUNNING, context(player))) == {
            "key": RUNNING,
            "value": variant,
            "variant": variant,
            "reason": "SPLIT",
            "metadata": {"exposure": True},
        }


@pytest.mark.parametrize(
    ("flag", "attributes", "reason"),
    [
        (OVER, {}, "DISABLED"),
        (FUTURE, {}, "DISABLED"),
        (CONDITIONAL, {}, "DEFAULT"),
        (CONDITIONAL, {"platform": "web"}, "DEFAULT"),
        (CONDITIONAL, {"platform": ["ios"]}, "DEFAULT"),
    ],
)
def test_other_players_get_the_control_and_cause_no_exposure(
    flags: Flags, flag: str, attributes: dict[str, object], reason: str
) -> None:
    answer = answer_of(flags.post(flag, context(**attributes)))

    assert (answer["value"], answer["variant"], answer["reason"], answer["metadata"]) == (
        "control",
        "control",
        reason,
        {},
    )


def test_a_player_who_meets_the_conditions_is_in_the_experiment(flags: Flags) -> None:
    assert answer_of(flags.post(CONDITIONAL, context(platform="ios", level=3, tags=[{}])))["reason"] == "SPLIT"


def test_a_request_without_a_flag_gets_all_flags_of_the_keys_game(flags: Flags) -> None:
    response = flags.post(None, context())

    assert [each["key"] for each in answer_of(response)["flags"]] == [RUNNING, OVER, FUTURE, CONDITIONAL]
    assert [each["key"] for each in answer_of(flags.post(None, context(), key=OTHER_GAME))["flags"]] == [
        "of_another_game"
    ]


def test_all_flags_have_a_tag_by_which_the_same_answer_is_not_sent_again(flags: Flags) -> None:
    first = flags.post(None, context())
    tag = dict(first.headers)["etag"]

    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = flags.post(None, context(), if_none_match=known)
        assert (again.status, again.body, dict(again.headers)["etag"]) == (HTTPStatus.NOT_MODIFIED, b"", tag)
    write_experiments(flags.file, [experiment(RUNNING, salt="another_salt"), *EXPERIMENTS[1:], experiment("new")])
    flags.endpoint.experiments.refresh()
    assert flags.post(None, context(), if_none_match=tag).status == HTTPStatus.OK


@pytest.mark.parametrize(
    ("flag", "body", "status", "code"),
    [
        (RUNNING, b"", 400, "PARSE_ERROR"),
        (RUNNING, b"{", 400, "PARSE_ERROR"),
        (RUNNING, b"[]", 400, "PARSE_ERROR"),
        (RUNNING, b"[" * 9_000, 400, "PARSE_ERROR"),
        (RUNNING, b'{"context": ' + b"[" * 9_000, 400, "PARSE_ERROR"),
        (RUNNING, b'{"context": {"targetingKey": "\xff"}}', 400, "PARSE_ERROR"),
        (RUNNING, b'{"context": {"targetingKey": "\\ud800"}}', 400, "PARSE_ERROR"),
        (RUNNING, {"context": [MARK]}, 400, "INVALID_CONTEXT"),
        (RUNNING, context({"name": MARK}), 400, "INVALID_CONTEXT"),
        (RUNNING, {}, 400, "TARGETING_KEY_MISSING"),
        (RUNNING, {"context": {}}, 400, "TARGETING_KEY_MISSING"),
        (RUNNING, context(None), 400, "TARGETING_KEY_MISSING"),
        (RUNNING, context(""), 400, "TARGETING_KEY_MISSING"),
        ("unknown", context(MARK), 404, "FLAG_NOT_FOUND"),
        ("of_another_game", context(MARK), 404, "FLAG_NOT_FOUND"),
        (None, b"{", 400, "PARSE_ERROR"),
        (None, {}, 400, "TARGETING_KEY_MISSING"),
    ],
)
def test_a_request_without_an_answer_gets_the_error_code_of_the_protocol(
    flags: Flags, flag: str | None, body: object, status: int, code: str
) -> None:
    response = flags.post(flag, body)

    answer = answer_of(response)
    assert (response.status, answer["errorCode"], answer.get("key")) == (status, code, flag)
    assert MARK not in response.body.decode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"gamelake_signature": "0" * 64}, 401),
        ({"gamelake_key": "nobody"}, 401),
        ({"gamelake_timestamp": "1"}, 401),
        ({"content_type": "text/plain"}, 415),
        ({"content_encoding": "gzip"}, 415),
        ({"content_length": "16385"}, 413),
    ],
)
def test_a_request_that_is_refused_says_why_in_the_protocols_form(
    flags: Flags, headers: dict[str, str], status: int
) -> None:
    response = flags.post(RUNNING, context(MARK), **headers)

    assert (response.status, answer_of(response)["errorCode"]) == (status, "GENERAL")
    assert MARK not in response.body.decode()


def test_a_key_of_support_staff_evaluates_nothing(flags: Flags) -> None:
    assert flags.post(RUNNING, context(), key=SUPPORT_KEY).status == HTTPStatus.FORBIDDEN


def test_only_post_is_a_method_of_the_paths(flags: Flags) -> None:
    for flag in (None, RUNNING):
        path = FLAGS_PATH if flag is None else f"{FLAGS_PATH}/{flag}"
        response = flags.send("GET", path, {}, b"")

        assert (response.status, dict(response.headers)["allow"]) == (HTTPStatus.METHOD_NOT_ALLOWED, "POST")
        assert (answer_of(response)["errorCode"], answer_of(response).get("key")) == ("GENERAL", flag)


def test_a_key_over_its_rate_gets_429_with_the_time_to_wait(flags: Flags) -> None:
    responses = [flags.post(RUNNING, context(), key=SLOW_KEY) for _ in range(4)]

    refused = responses[-1]
    assert refused.status == HTTPStatus.TOO_MANY_REQUESTS
    assert int(dict(refused.headers)["retry-after"]) >= 1


def test_a_game_that_holds_too_much_memory_gets_503_with_the_time_to_wait(tmp_path: Path) -> None:
    response = Flags.open(tmp_path, memory=2**14).post(RUNNING, context())

    assert response.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "retry-after" in dict(response.headers)


def test_a_changed_file_is_read_again_and_an_error_in_it_keeps_the_former_experiments(
    flags: Flags, caplog: pytest.LogCaptureFixture
) -> None:
    write_experiments(flags.file, [experiment("new")])
    flags.endpoint.experiments.refresh()
    assert flags.post("new", context()).status == HTTPStatus.OK
    assert flags.post(RUNNING, context()).status == HTTPStatus.NOT_FOUND

    write_experiments(flags.file, [experiment("new", primary="unknown")])
    flags.endpoint.experiments.refresh()
    flags.endpoint.experiments.refresh()
    assert flags.post("new", context()).status == HTTPStatus.OK
    [line] = logged(caplog, "experiments_rejected")
    assert re.search(r"experiments\.yaml:\d+: 'unknown' is not a metric", str(line["error"]))

    flags.file.unlink()
    flags.endpoint.experiments.refresh()
    assert answer_of(flags.post(None, context())) == {"flags": []}


def test_a_file_that_cant_be_read_keeps_the_previous_experiments_until_it_can(
    flags: Flags, caplog: pytest.LogCaptureFixture
) -> None:
    flags.file.unlink()
    flags.file.mkdir()
    flags.endpoint.experiments.refresh()
    flags.endpoint.experiments.refresh()
    assert flags.post(RUNNING, context()).status == HTTPStatus.OK
    [line] = logged(caplog, "experiments_rejected")
    assert "experiments.yaml" in str(line["error"])

    flags.file.rmdir()
    write_experiments(flags.file, [experiment("new")])
    flags.endpoint.experiments.refresh()
    assert flags.post("new", context()).status == HTTPStatus.OK


def test_a_gateway_starts_although_the_file_cant_be_read(tmp_path: Path) -> None:
    # Docker makes a folder where a mounted file is missing.
    (tmp_path / "experiments.yaml").mkdir()

    assert Flags.open(tmp_path, None).post(RUNNING, context()).status == HTTPStatus.SERVICE_UNAVAILABLE


def test_without_a_good_file_no_player_gets_a_wrong_variant(tmp_path: Path) -> None:
    response = Flags.open(tmp_path, [experiment("new", primary="unknown")]).post("new", context())

    assert response.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "retry-after" in dict(response.headers)


def test_a_refresh_reads_an_unchanged_file_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for file in ("experiments.yaml", "missing.yaml"):
        write_experiments(tmp_path / "experiments.yaml", EXPERIMENTS)
        experiments = ExperimentFlags(tmp_path / file, GAMES_FILE)
        caplog.clear()
        experiments.refresh()
        experiments.refresh()

        assert len(logged(caplog, "experiments_loaded")) == 1


def test_each_evaluation_is_counted_by_its_result(flags: Flags) -> None:
    before = {each: evaluations(each) for each in ("split", "default", "disabled", "not_found", "invalid")}

    flags.post(None, context())
    flags.post("unknown", context())
    flags.post(RUNNING, {})

    assert {each: evaluations(each) - former for each, former in before.items()} == {
        "split": 1,
        "default": 1,
        "disabled": 2,
        "not_found": 1,
        "invalid": 1,
    }


def test_an_experiment_starts_at_midnight_of_the_games_time_zone(tmp_path: Path) -> None:
    file = tmp_path / "experiments.yaml"
    write_experiments(file, [experiment("in_tokyo", "neon_runner", start="2026-12-01")])
    experiments = ExperimentFlags(file, GAMES_FILE)
    experiments.refresh()
    flag = experiments.find("neon_runner", "in_tokyo")
    assert flag is not None

    midnight = datetime(2026, 11, 30, 15, tzinfo=UTC).timestamp()
    assert [flag.evaluate("player-1", {}, midnight - ago).reason for ago in (1, 0)] == ["DISABLED", "SPLIT"]


def test_a_context_in_a_traceback_shows_no_player() -> None:
    assert MARK not in repr(Context(MARK, {"country": MARK}))


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just(MARK),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["targetingKey", "context", MARK]), inner),
)


@pytest.fixture(scope="module")
def shared_flags(tmp_path_factory: pytest.TempPathFactory) -> Flags:
    return Flags.open(tmp_path_factory.mktemp("flags"))


@examples(200)
@given(body=st.binary() | _VALUES | _VALUES.map(context), flag=st.sampled_from([None, RUNNING, CONDITIONAL, "", "x/y"]))
def test_any_body_gets_an_answer_without_the_player_and_frees_its_memory(
    shared_flags: Flags, body: object, flag: str | None
) -> None:
    response = shared_flags.post(flag, body)

    assert response.status in {200, 400, 404, 413, 429}
    assert MARK not in response.body.decode()
    assert shared_flags.endpoint.memory.reserved == 0
