"""The table of retentions says what the contract, the compose files and the constants say."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.contract.games import load_games
from gamelake.maintenance.retentions import RetentionKind, applicable, contradictions
from gamelake.streaming.dedup.window import DedupLimits
from services.provision.declarations import TopicSpec, load_topics

_PAGE = Path("docs/reference/storage.md").read_text(encoding="utf-8")
_SECTION = _PAGE.split("## What is kept, and for how long\n")[1].split("\n## ")[0]
_POLICY = load_games(Path("contracts/games.yaml")).maintenance
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400}
_SPARKS_DEFAULT = timedelta(days=30)


def _kept(what: str) -> str:
    """The second cell of the row whose first one begins so."""
    [row] = [line for line in _SECTION.splitlines() if line.startswith(f"| {what}")]
    return row.split("|")[2].strip()


def _span(text: str) -> timedelta:
    """The first span that a text names."""
    number, unit = re.findall(r"([\d,]+) (seconds|minutes|hours|days)", text)[0]
    return timedelta(seconds=int(number.replace(",", "")) * _UNITS[unit])


def _topic(name: str) -> TopicSpec:
    [topic] = [each for each in load_topics(Path("compose/kafka/topics.yaml")).topics if each.name == name]
    return topic


@pytest.mark.parametrize("name", ["events", "live-ops.signals", "audit.queries", "audit.support-calls"])
def test_the_retention_of_a_topic_is_the_declared_one(name: str) -> None:
    assert _span(_kept(f"Kafka: `{name}`")) == timedelta(hours=_topic(name).retention_hours)


def test_what_a_partition_holds_at_most_is_the_declared_size() -> None:
    assert "at most 1 GiB a partition" in _kept("Kafka: `events`")
    assert _topic("events").settings["retention.bytes"] == str(2**30)


def test_the_states_of_players_are_compacted() -> None:
    assert _topic("live-ops.player-state").config["cleanup.policy"] == "compact"
    assert _kept("Kafka: `live-ops.player-state`").endswith("for ever")
    assert _topic("live-ops.segments").config["cleanup.policy"] == "compact"
    assert _kept("Kafka: `live-ops.segments`").endswith("for ever")


@pytest.mark.parametrize("what", ["files that compaction", "a table's history", "manifests", "released leases"])
def test_what_follows_the_tables_retention_says_so(what: str) -> None:
    assert _span(_kept(what)) == _POLICY.retention


def test_old_checkpoints_follow_it_too() -> None:
    assert _span(_kept("Spark's checkpoints")) == _POLICY.retention


def test_the_other_figures_of_the_policy_are_the_contracts() -> None:
    assert _span(_kept("restore window")) == timedelta(days=_POLICY.restore_window_days)
    assert _span(_kept("longest query")) == timedelta(hours=_POLICY.longest_query_hours)
    assert _kept("backups") == f"{_POLICY.backups_kept} of them, one every {_POLICY.backup_every_hours:g} hours"


def test_the_windows_of_the_streams_are_the_settings() -> None:
    assert _span(_kept("state: ids of recent events")) == DedupLimits().window


def test_all_of_them_fit_together() -> None:
    spans = {
        RetentionKind.KAFKA: _span(_kept("Kafka: `events`")),
        RetentionKind.TABLES: _span(_kept("files that compaction")),
        RetentionKind.LOGS: min(_span(_kept("a table's history")), _SPARKS_DEFAULT),
        RetentionKind.BACKUPS: _POLICY.backups_reach,
        RetentionKind.BACKUP_INTERVAL: _POLICY.backup_interval,
        RetentionKind.RESTORE_WINDOW: _span(_kept("restore window")),
        RetentionKind.LONGEST_QUERY: _span(_kept("longest query")),
    }

    assert len(applicable(spans)) > 0
    assert contradictions(spans) == []
