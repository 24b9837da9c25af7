"""Backups of the vault as one file, and their restore: ciphertext, wrapped keys and erasures, from either database.

A file of JSON lines, compressed with zstd: a head, players with their data, erasures, and a foot with their counts, so
that a truncated file is detected. Erased players stay erased, however old the backup is.
"""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa

from gamelake.model.errors import BackupError
from gamelake.privacy.vault.secrecy import TamperedError, VaultKeys
from gamelake.privacy.vault.vault import Erasure, PlayerRecord, Vault

_AT_ONCE = 500
_FORMAT = 1
_OWNER_ALONE = 0o600
Progress = Callable[[int], None]


class _Head(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="head"):
    """The head; `found_by` is a digest of the index key, which must be the same at the restore."""

    format: int
    made_at: datetime
    found_by: bytes


class _PlayerLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="player"):
    record: PlayerRecord


class _ErasureLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="erasure"):
    erasure: Erasure


class BackupContents(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="foot"):
    """The counts of a backup."""

    players: int = 0
    data: int = 0
    erasures: int = 0


_Line = _Head | _PlayerLine | _ErasureLine | BackupContents


class RestoredPlayers(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a restore.

    `unreadable` players were restored, and need a key that is missing in the file of keys.
    """

    restored: int = 0
    skipped: int = 0
    unreadable: int = 0
    erased_again: int = 0


def back_up(vault: Vault, keys: VaultKeys, file: Path, progress: Progress) -> BackupContents:
    """Write the content of the vault to a new file; nothing is locked meanwhile.

    Raises:
        BackupError: the file exists, or can't be written.
        VaultUnavailableError: the vault is unavailable.
    """
    return _write(file, keys, _players(vault, progress), vault)


def export_erasures(vault: Vault, keys: VaultKeys, file: Path) -> BackupContents:
    """Write the erasures alone: a small file, to be written often and kept for ever.

    Raises:
        BackupError: the file exists, or can't be written.
        VaultUnavailableError: the vault is unavailable.
    """
    return _write(file, keys, iter(()), vault)


def check_backup(file: Path, keys: VaultKeys) -> BackupContents:
    """Read a backup from its first to its last byte.

    Raises:
        BackupError: it is incomplete, or was made with another index key.
    """
    lines = _read(file)
    head = next(lines, None)
    if not isinstance(head, _Head) or head.format != _FORMAT:
        raise BackupError(f"'{file}' is not a backup of a vault, or is one of another version")
    if head.found_by != _found_by(keys):
        raise BackupError(f"'{file}' was made with another index key: with these keys no player in it could be found")
    players = data = erasures = 0
    for line in lines:
        match line:
            case _PlayerLine():
                players, data = players + 1, data + len(line.record.data)
            case _ErasureLine():
                erasures += 1
            case BackupContents() if line == BackupContents(players=players, data=data, erasures=erasures):
                return line
            case _:
                break
    raise BackupError(f"'{file}' is truncated: its end is missing or its counts don't match")


def erasures_in(file: Path) -> Iterator[Erasure]:
    """Yield the erasures of a backup that was checked."""
    return (line.erasure for line in _read(file) if isinstance(line, _ErasureLine))


def restore(vault: Vault, keys: VaultKeys, file: Path, progress: Progress) -> RestoredPlayers:
    """Restore players that are missing and not erased; first record all erasures in the vault (`Vault.enforce`).

    Raises:
        VaultUnavailableError: the vault is unavailable; the next attempt continues.
    """
    seen = restored = unreadable = 0
    for records in _batches(line.record for line in _read(file) if isinstance(line, _PlayerLine)):
        seen += len(records)
        unreadable += sum(not _readable(each, keys) for each in records)
        restored += vault.restore(records)
        progress(seen)
    return RestoredPlayers(restored=restored, skipped=seen - restored, unreadable=unreadable)


def _players(vault: Vault, progress: Progress) -> Iterator[PlayerRecord]:
    after, written = b"", 0
    while records := vault.records(after, _AT_ONCE):
        yield from records
        after = records[-1].player.token
        written += len(records)
        progress(written)


def _write(file: Path, keys: VaultKeys, records: Iterator[PlayerRecord], vault: Vault) -> BackupContents:
    encode = msgspec.json.Encoder().encode
    players = data = 0
    with _new(file) as out:
        out.write(encode(_Head(format=_FORMAT, made_at=datetime.now(UTC), found_by=_found_by(keys))) + b"\n")
        for record in records:
            out.write(encode(_PlayerLine(record=record)) + b"\n")
            players, data = players + 1, data + len(record.data)
        # Read after the players: a player that was erased meanwhile is in the file, and in this list.
        erasures = vault.erasures_after(0)
        for erasure in erasures:
            out.write(encode(_ErasureLine(erasure=erasure)) + b"\n")
        foot = BackupContents(players=players, data=data, erasures=len(erasures))
        out.write(encode(foot) + b"\n")
    return foot


@contextmanager
def _new(file: Path) -> Iterator[pa.NativeFile]:
    """A new file that exists complete or not at all."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.unlink(missing_ok=True)
        with _created(part) as raw, pa.CompressedOutputStream(raw, "zstd") as out:
            yield out
        os.link(part, file)
    except FileExistsError:
        raise BackupError(f"'{file}' exists already") from None
    except OSError as error:
        raise BackupError(f"'{file}' can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _created(part: Path) -> Iterator[BinaryIO]:
    """A file with mode 600, synced when it is closed."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE)
    with os.fdopen(descriptor, "wb", closefd=False) as raw:
        yield raw
    os.fsync(descriptor)
    os.close(descriptor)


def _read(file: Path) -> Iterator[_Line]:
    decode = msgspec.json.Decoder(_Line).decode
    try:
        with pa.input_stream(str(file), compression="zstd") as stream:
            for line in io.BufferedReader(stream):
                yield decode(line)
    except (OSError, msgspec.DecodeError) as error:
        raise BackupError(f"'{file}' is truncated or damaged: it can't be read to its end") from error


def _batches(records: Iterator[PlayerRecord]) -> Iterator[Sequence[PlayerRecord]]:
    batch: list[PlayerRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _readable(record: PlayerRecord, keys: VaultKeys) -> bool:
    try:
        keys.unwrap(record.player)
    except TamperedError:
        return False
    return True


def _found_by(keys: VaultKeys) -> bytes:
    return keys.token("", "")
