"""The tables of `docs/gateway.md` have the gateway's statuses, reasons and limits, and no others."""

import re
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

from services.gateway import errors
from services.gateway.authentication import GameKey
from services.gateway.errors import Reason, RefusedError
from services.gateway.limits.memory_budget import VALUES_PER_EVENT
from services.gateway.settings import GatewaySettings

PAGE = Path("docs/gateway.md").read_text(encoding="utf-8")
# Responses of paths and methods that do not exist.
_OF_PATHS = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}


def first_cells(heading: str) -> list[str]:
    """The first cell of each row of a section's table."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [cell.strip(" `") for cell in re.findall(r"^\|([^|]+)\|", section, re.MULTILINE)][2:]


def test_every_reason_is_on_the_page_and_the_reverse() -> None:
    assert first_cells("Reasons") == [reason.value for reason in Reason]


def test_every_status_is_on_the_page_and_the_reverse() -> None:
    refusals = {
        each.status
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, RefusedError) and each is not RefusedError
    }

    assert first_cells("Statuses") == sorted(str(int(each)) for each in refusals | _OF_PATHS | {HTTPStatus.OK})


def test_the_limits_are_the_settings_own(tmp_path: Path) -> None:
    settings = GatewaySettings.from_env(
        {
            "GAMELAKE_BOOTSTRAP_SERVERS": "kafka:9092",
            "GAMELAKE_TOPIC": "events",
            "GAMELAKE_REGISTRY_URL": "http://registry:8080",
            "GAMELAKE_VAULT": str(tmp_path / "vault.db"),
            "GAMELAKE_VAULT_KEYS_FILE": str(tmp_path / "vault-keys"),
            "INGEST_KEYS_FILE": str(tmp_path / "ingest-keys"),
        }
    )

    assert (settings.body.size, settings.body.decompressed, settings.body.events) == (2**20, 2**23, 5000)
    assert (settings.body.timeout, settings.kafka_timeout) == (timedelta(seconds=10), timedelta(seconds=15))
    assert (settings.memory, VALUES_PER_EVENT * settings.body.events) == (104 * 2**20, 200_000)
    assert (settings.burst, settings.signature_window) == (timedelta(seconds=2), timedelta(minutes=5))
    assert GameKey(id="a", game="a", secrets=("0" * 32,)).rate == 20_000
    for text in (
        "1 MiB, 8 MiB",
        "5,000",
        "10 s",
        "15 s",
        "half of 104 MiB",
        "5,000, 200,000",
        "20,000 events/s",
        "5 minutes",
    ):
        assert text in PAGE
