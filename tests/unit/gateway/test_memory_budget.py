"""The games share one budget of bytes, and none can take what the others need."""

from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.model.errors import SettingsError
from services.gateway.errors import OverMemoryError
from services.gateway.limits.memory_budget import MemoryBudget
from services.gateway.settings import GatewaySettings
from tests.unit.properties import examples

TOTAL = 1_200


def fill(budget: MemoryBudget, held: ExitStack, game: str) -> int:
    """Reserve bytes of a game one by one until the budget refuses one. Return their number."""
    for count in range(budget.total + 1):
        try:
            held.enter_context(budget.reserve(game, 1))
        except OverMemoryError:
            return count
    raise AssertionError


def test_a_game_alone_gets_half_and_each_further_game_gets_something() -> None:
    budget = MemoryBudget(TOTAL)

    with ExitStack() as held:
        shares = [fill(budget, held, game) for game in ("a", "b", "c", "d")]

    assert shares == [600, 300, 150, 75]
    assert budget.reserved == 0


def test_a_request_over_the_budget_may_be_sent_again() -> None:
    with pytest.raises(OverMemoryError) as refused:
        MemoryBudget(TOTAL).reserve("a", 601)

    assert refused.value.retry_after is not None


def test_a_request_that_fails_returns_its_memory() -> None:
    budget = MemoryBudget(TOTAL)

    with pytest.raises(ZeroDivisionError), budget.reserve("a", 600):
        raise ZeroDivisionError

    assert budget.reserved == 0


def test_a_reservation_grows_to_what_is_there_and_keeps_its_size_if_there_is_less() -> None:
    budget = MemoryBudget(TOTAL)

    with budget.reserve("a", 100) as memory, budget.reserve("b", 400):
        assert memory.largest == 400
        memory.resize(400)
        with pytest.raises(OverMemoryError):
            memory.resize(401)
        assert budget.reserved == 800
        memory.resize(50)
        assert budget.reserved == 450


@examples(200)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 700), st.integers(0, 700)), max_size=40))
def test_the_budget_is_never_exceeded_and_a_game_never_holds_more_than_what_is_left(
    requests: list[tuple[str, int, int]],
) -> None:
    budget, by_game = MemoryBudget(TOTAL), dict.fromkeys("abc", 0)

    with ExitStack() as held:
        for game, size, later in requests:
            with suppress(OverMemoryError):
                memory = held.enter_context(budget.reserve(game, size))
                by_game[game] += size
                assert not size or by_game[game] <= TOTAL - budget.reserved
                memory.resize(later)
                by_game[game] += later - size
                assert later <= size or by_game[game] <= TOTAL - budget.reserved
            assert budget.reserved == sum(by_game.values())
    assert budget.reserved == 0


def test_a_budget_that_is_too_small_for_the_largest_body_is_an_error_of_the_settings() -> None:
    required = {
        "GAMELAKE_BOOTSTRAP_SERVERS": "kafka:9092",
        "GAMELAKE_TOPIC": "events",
        "GAMELAKE_REGISTRY_URL": "http://registry:8080",
        "GAMELAKE_VAULT": "vault.db",
        "GAMELAKE_VAULT_KEYS_FILE": "vault-keys",
        "INGEST_KEYS_FILE": "ingest-keys",
        "INGEST_MEMORY_BYTES": "33554432",
    }

    with pytest.raises(SettingsError, match="set it to 105541632"):
        GatewaySettings.from_env(required).check_memory()
    smaller = {"INGEST_MAX_EVENTS": "500", "INGEST_MAX_DECOMPRESSED_BYTES": "1048576"}
    GatewaySettings.from_env(required | smaller).check_memory()
