"""Wraps all players' keys with the current key-encryption key, while the gateway runs.

Only the wrapped key of a player changes: pseudonym and data stay.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gamelake.privacy.vault.secrecy import TamperedError, VaultKeys
from gamelake.privacy.vault.vault import Rewrapping, StoredPlayer, Vault

_AT_ONCE = 500
Progress = Callable[[int], None]


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rotation: rewrapped players, pseudonyms of unreadable ones, and the number of players by key."""

    current: str
    rewrapped: int
    unreadable: tuple[str, ...]
    wrapped_by: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """True if only the current key is needed."""
        return set(self.wrapped_by) <= {self.current}


def rewrap_all(vault: Vault, keys: VaultKeys, progress: Progress) -> Rotation:
    """Rewrap until a pass finds no player: a process that has not read the new key yet may still add some.

    Raises:
        VaultUnavailableError: the vault is unavailable; what was rewrapped stays.
    """
    rewrapped = 0
    while True:
        before = rewrapped
        rewrapped, unreadable = _one_pass(vault, keys, progress, before)
        if rewrapped == before:
            wrapped_by = vault.players_by_key()
            return Rotation(
                current=keys.current, rewrapped=rewrapped, unreadable=tuple(unreadable), wrapped_by=wrapped_by
            )


def _one_pass(vault: Vault, keys: VaultKeys, progress: Progress, rewrapped: int) -> tuple[int, list[str]]:
    unreadable: list[str] = []
    last = b""
    while players := vault.wrapped_otherwise(keys.current, _AT_ONCE, after=last):
        changes, failed = _rewrapped(players, keys)
        unreadable += failed
        rewrapped += vault.rewrap(changes)
        progress(rewrapped)
        last = players[-1].token
    return rewrapped, unreadable


def _rewrapped(players: Sequence[StoredPlayer], keys: VaultKeys) -> tuple[list[Rewrapping], list[str]]:
    changes: list[Rewrapping] = []
    failed: list[str] = []
    for player in players:
        try:
            changes.append(Rewrapping(before=player, after=keys.rewrapped(player)))
        except TamperedError:
            failed.append(player.pseudonym)
    return changes, failed
