"""The gateway serves experiments as flags over HTTP, and reads them again without a restart."""

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from services.sdk import Experiment
from tests.embedded.gateway import Gateway
from tests.support.eventually import eventually

PLAYER = {"context": {"targetingKey": "player/1 ü"}}


def experiments(name: str, primary: str = "bookings") -> str:
    return json.dumps(
        {
            "experiments": [
                {
                    "name": name,
                    "game": "archery_duel",
                    "description": "?",
                    "variants": [{"name": "control", "share": 0.5}, {"name": "offer", "share": 0.5}],
                    "start": time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86_400)),
                    "primary": primary,
                }
            ]
        }
    )


def test_a_changed_file_changes_answers_without_a_restart_and_a_wrong_one_changes_nothing(
    open_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    file = tmp_path / "experiments.yaml"
    file.write_text(experiments("first"))
    gateway = open_gateway(INGEST_EXPERIMENTS_FILE=str(file))
    variant = Experiment("first", "first", 10_000, [("control", 5_000), ("offer", 5_000)], {}).variant_of("player/1 ü")

    one, every = gateway.evaluate(PLAYER, "first"), gateway.evaluate(PLAYER)
    assert (one.status, json.loads(one.body)["value"]) == (HTTPStatus.OK, variant)
    assert json.loads(every.body) == {"flags": [json.loads(one.body)]}
    assert gateway.evaluate(PLAYER, if_none_match=every.headers["etag"]).status == HTTPStatus.NOT_MODIFIED

    file.write_text(experiments("second"))
    eventually(lambda: gateway.evaluate(PLAYER, "second").status == HTTPStatus.OK)
    assert gateway.evaluate(PLAYER, "first").status == HTTPStatus.NOT_FOUND

    file.write_text(experiments("third", primary="unknown"))
    eventually(lambda: b"experiments_rejected" in gateway.log())
    assert gateway.evaluate(PLAYER, "second").status == HTTPStatus.OK
    assert b"player/1" not in gateway.log()
    assert b'gamelake_ingest_flag_evaluations_total{game="archery_duel",result="not_found"} ' in gateway.metrics()
