"""Assigns players to the variants of experiments: the same player always gets the same variant, without a request.

`contracts/experiment_vectors.json` has inputs and results, to test implementations in other languages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

BUCKETS = 10_000


def bucket(salt: str, purpose: str, player: str) -> int:
    """Return the bucket, 0 to 9,999, of a player.

    Args:
        salt: the experiment's salt.
        purpose: "enrolment" or "variant".
        player: the game's own name of the player.

    Raises:
        UnicodeEncodeError: the name has half of a surrogate pair.
    """
    digest = sha256(f"{salt}/{purpose}/{player}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % BUCKETS


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as far as its assignment needs it.

    Attributes:
        name: the experiment's name, for the exposure event.
        salt: part of each hash.
        enrolled: the number of buckets whose players are enrolled.
        variants: each variant and its number of buckets, in order; together `BUCKETS`.
        conditions: the allowed values of a player's `platform`, `country` or `app_version`, by name.
    """

    name: str
    salt: str
    enrolled: int
    variants: Sequence[tuple[str, int]]
    conditions: Mapping[str, Sequence[str]]

    def variant_of(self, player: str, context: Mapping[str, object] | None = None) -> str | None:
        """Return a player's variant, or None if the player is not in the experiment.

        Args:
            player: the game's own name of the player.
            context: the player's `platform`, `country` and `app_version`. A condition on a missing value is not met.
        """
        known = context or {}
        if any(known.get(name) not in allowed for name, allowed in self.conditions.items()):
            return None
        if bucket(self.salt, "enrolment", player) >= self.enrolled:
            return None
        place, end = bucket(self.salt, "variant", player), 0
        for variant, size in self.variants:
            end += size
            if place < end:
                return variant
        return None
