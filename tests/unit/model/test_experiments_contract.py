"""The experiments contract: what it may say, and that an error names file and line."""

from datetime import date
from pathlib import Path

import pytest

from gamelake.contract.experiments import ExperimentsContract, Outcome, load_experiments, outcomes
from gamelake.contract.games import load_games
from gamelake.contract.metrics import load_metrics
from gamelake.model.errors import ContractError

CONTRACTS = Path("contracts")
GAMES = load_games(CONTRACTS / "games.yaml")
METRICS = load_metrics(CONTRACTS / "metrics.yaml")
TEXT = """\
experiments:
  - name: new_shop
    game: kart_rumble
    description: Does the new shop sell more?
    variants:
      - { name: control, share: 0.5 }
      - { name: new_shop, share: 0.5 }
    start: 2026-11-01
    end: 2026-11-14
    eligibility: { share: 0.2, platforms: [android] }
    primary: bookings
    guardrails: { sessions_begun: must_not_fall }
"""


def load(folder: Path, text: str = TEXT) -> ExperimentsContract:
    file = folder / "experiments.yaml"
    file.write_text(text)
    return load_experiments(file, GAMES, METRICS)


def test_a_good_contract_is_read(tmp_path: Path) -> None:
    [experiment] = load(tmp_path).experiments

    assert experiment.control == "control"
    assert experiment.metrics == ("bookings", "sessions_begun")
    assert [experiment.is_running(date(2026, 11, day)) for day in (1, 14, 15)] == [True, True, False]


def test_a_game_with_a_time_zone_can_have_experiments(tmp_path: Path) -> None:
    assert load(tmp_path, TEXT.replace("kart_rumble", "neon_runner")).experiments


def test_an_experiment_without_an_end_counts_92_days(tmp_path: Path) -> None:
    [experiment] = load(tmp_path, TEXT.replace("    end: 2026-11-14\n", "")).experiments

    assert (experiment.last_day - experiment.start).days == 91


def test_the_metrics_of_experiments_are_the_columns_of_player_days_and_the_players_with_one() -> None:
    found = outcomes(GAMES, METRICS)

    assert found["bookings"] == Outcome("bookings", is_share=False)
    assert found["payers"] == Outcome("purchase_count", is_share=True)
    assert "arpdau" not in found
    assert "median_purchase" not in found


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("share: 0.5 }", "share: 0.4 }", 5, "the shares of 'new_shop' add up to 0.9, not to 1"),
        ("share: 0.5 }", "share: 0.50001 }", 6, "must be a multiple of 0.0001"),
        ("name: control", "name: new_shop", 7, "'new_shop' is listed twice"),
        ("kart_rumble", "cart_rumble", 3, "games.yaml does not have the game 'cart_rumble'"),
        ("primary: bookings", "primary: arpdau", 11, "'arpdau' is not a metric of players' days; use one of: "),
        ("sessions_begun: must_not_fall", "bookings: must_not_fall", 12, "'bookings' is the primary metric"),
        ("must_not_fall", "must_not_drop", 12, "Invalid enum value 'must_not_drop'"),
        ("end: 2026-11-14", "end: 2026-10-31", 9, "must end 0 to 91 days after its start"),
        ("end: 2026-11-14", "end: 2027-11-14", 9, "must end 0 to 91 days after its start"),
        ("eligibility: { share: 0.2,", "eligibility: { share: 0.2, condition: x,", 10, "unknown key 'condition'"),
        ("start: 2026-11-01", "start: soon", 8, "Invalid RFC3339 encoded date"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, problem: str) -> None:
    assert old in TEXT

    with pytest.raises(ContractError) as raised:
        load(tmp_path, TEXT.replace(old, new, 1))

    assert f"experiments.yaml:{line}: " in str(raised.value)
    assert problem in str(raised.value)


def test_two_experiments_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"experiments.yaml:13: 'new_shop' is listed twice"):
        load(tmp_path, TEXT + TEXT.removeprefix("experiments:\n"))
