"""The index of players finds each player's number, whatever the key is and however often players were added."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from gamelake.serving.kpis.numbers import KnownPlayers
from tests.unit.properties import examples

LARGEST = 2**63 - 1
KEYS = st.one_of(st.integers(0, LARGEST), st.integers(0, 40), st.sampled_from([2**59 - 1, 2**59, LARGEST]))


@examples(100)
@given(added=st.lists(st.lists(KEYS, unique=True), max_size=8), asked=st.lists(KEYS))
@example(added=[], asked=[0, LARGEST])
@example(added=[[0, LARGEST, 2**59]], asked=[LARGEST, 1, 0])
def test_each_player_keeps_the_number_of_the_first_appearance(added: list[list[int]], asked: list[int]) -> None:
    known, numbers = KnownPlayers(), dict[int, int]()
    for keys in added:
        new = [key for key in keys if key not in numbers]
        numbers.update(zip(new, known.number("chess", np.array(new, np.int64)).tolist(), strict=True))
        wanted = [*asked, *numbers]

        found, is_known = known.find(np.array(wanted, np.int64))

        assert found.tolist() == [numbers.get(key, 0) for key in wanted]
        assert is_known.tolist() == [key in numbers for key in wanted]
    assert sorted(numbers.values()) == list(range(len(numbers)))
