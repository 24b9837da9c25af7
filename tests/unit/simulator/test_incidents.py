"""Simulated incidents change the events that they name, and no others."""

from collections import Counter
from datetime import UTC, datetime, time

import numpy as np
import pytest

from gamelake.model.errors import SettingsError
from tests.unit.simulator.builders import GAMES, Sent, a_run, events
from tools.simulator.incidents import Incident, IncidentKind

# The runs of these tests cover five minutes before noon.
WHEN = "11:57/11:59"


def played(*incidents: str) -> list[Sent]:
    return list(events(a_run(incidents=tuple(Incident.parse(each) for each in incidents), events=12_000, seed=3)))


def within(sent: Sent) -> bool:
    moment: datetime = sent.event.event_time.ToDatetime(UTC)
    return datetime(2026, 1, 1, 11, 57, tzinfo=UTC) <= moment < datetime(2026, 1, 1, 11, 59, tzinfo=UTC)


def names(run: list[Sent], game: str) -> Counter[str]:
    return Counter(sent.event.event_name for sent in run if sent.event.game_name == game and within(sent))


def test_broken_purchases_are_store_errors_in_one_game_during_the_incident() -> None:
    usual, broken = played(), played(f"broken_purchases/{GAMES[0]}/{WHEN}")

    # An event that waited in its device happened a moment before it was its turn.
    assert names(usual, GAMES[0])["purchase"] > 10
    assert names(broken, GAMES[0])["purchase"] <= 2
    assert names(broken, GAMES[0])["error"] > names(usual, GAMES[0])["error"]
    assert names(broken, GAMES[1]) == names(usual, GAMES[1])
    assert len(broken) == len(usual)


def test_a_silent_game_sends_nothing_and_the_others_go_on() -> None:
    usual, silent = played(), played(f"silence/{GAMES[1]}/{WHEN}")

    assert names(usual, GAMES[1]).total() > 100
    assert names(silent, GAMES[1]).total() < 0.1 * names(usual, GAMES[1]).total()
    assert names(silent, GAMES[0]) == names(usual, GAMES[0])


def test_a_version_that_crashes_does_so_in_all_games_and_no_other_version() -> None:
    def fatal(run: list[Sent], version: str) -> int:
        return sum(
            sent.event.event_params.app_version == version and sent.event.event_name == "error" and within(sent)
            for sent in run
        )

    usual, crashing = played(), played(f"crashes/4.3.0/{WHEN}")

    assert fatal(crashing, "4.3.0") > 3 * max(fatal(usual, "4.3.0"), 1)
    assert fatal(crashing, "4.2.0") == fatal(usual, "4.2.0")


def test_an_incident_may_go_past_midnight() -> None:
    incident = Incident(kind=IncidentKind.SILENCE, subject="x", begins=time(23), ends=time(1))
    hours = [datetime(2026, 1, 1, hour, 30, tzinfo=UTC).timestamp() * 1_000_000 for hour in (22, 23, 0, 1)]

    assert incident.is_on(np.array(hours, np.int64)).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "text", ["", "fire/Archery Duel/14:00/15:00", "silence/Archery Duel/14:00", "silence/Archery Duel/25:00/26:00"]
)
def test_a_malformed_incident_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--incident is"):
        Incident.parse(text)


@pytest.mark.parametrize("text", ["silence/Unheard Of/14:00/15:00", f"crashes/{GAMES[0]}/14:00/15:00"])
def test_an_incident_with_an_unknown_subject_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="which is none of"):
        a_run(incidents=(Incident.parse(text),))
