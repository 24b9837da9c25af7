"""Makes a backup, and puts one back."""

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

import msgspec

from gamelake.model.errors import BackupError
from gamelake.recovery.backup_records import BackupRecord, BackupRecords
from gamelake.recovery.manifest_recovery import RebuiltManifest, rebuild_manifests
from gamelake.recovery.state_copy import RestoredState, StateCopy
from gamelake.storage.store import Store
from tools.backup.archive import Contents, NewBackup, check, prune, whole_backups
from tools.backup.platform import Platform

STATE = "lakehouse"
Tell = Callable[[str], None]


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a backup that was put back: each part's account, and the batches that came after it was made."""

    name: str
    parts: dict[str, str]
    state: RestoredState | None = None
    checkpoints: RestoredState | None = None
    recollected: tuple[RebuiltManifest, ...] = ()


def make(platform: Platform, parent: Path, keep: int, made_at: datetime, tell: Tell) -> Path:
    """Save everything as a new folder; the oldest backups go once there are more than so many.

    Raises:
        BackupError: a part can't be saved; nothing is left of the attempt.
    """
    store = Store(platform.lakehouse)
    copy = StateCopy(store, Path())
    if copy.is_empty():
        raise BackupError(f"no stream has written to {store.location.uri} yet: there is nothing to back up")
    former = whole_backups(parent)[-1:] if parent.is_dir() else []
    backup = NewBackup.under(parent, made_at)
    try:
        for part in platform.parts:
            part.save(backup.folder)
            tell(f"{part.name} is saved")
        last = former[0] / STATE if former else None
        objects = StateCopy(store, backup.folder / STATE, last).save()
        tell(f"the lakehouse's state is saved, {objects:,} objects")
        place, contents = backup.close((*(part.name for part in platform.parts), STATE), dict(platform.left_out))
    except BaseException:
        backup.discard()
        raise
    records = BackupRecords(store)
    records.note(
        BackupRecord(name=contents.name, made_at=contents.made_at, files=len(contents.files), bytes=contents.bytes)
    )
    for name in prune(parent, keep):
        records.forget(name)
        tell(f"{name} was one too many, and is deleted")
    return place


def put_back(platform: Platform, folder: Path, anyway: Collection[str], tell: Tell) -> Restored:
    """Put a backup into an empty platform; `anyway` names parts that may have something already.

    Raises:
        BackupError: the backup is not whole, or a part is not empty; nothing was changed then.
    """
    contents = check(folder)
    require_empty(platform, contents, anyway)
    store, told = Store(platform.lakehouse), {}
    # The state first: the vault asks it who was to be forgotten. Checkpoints after all that they are held against.
    copy = StateCopy(store, folder / STATE)
    state = copy.restore()
    recollected = tuple(rebuild_manifests(store))
    checkpoints = copy.restore_checkpoints()
    tell("the lakehouse's state is back")
    for part in (each for each in platform.parts if each.name in contents.parts):
        told[part.name] = part.put_back(folder)
        tell(f"{part.name} is back: {told[part.name]}")
    return Restored(name=contents.name, parts=told, state=state, checkpoints=checkpoints, recollected=recollected)


def require_empty(platform: Platform, contents: Contents, anyway: Collection[str]) -> None:
    """See that nothing would be put beside something else without a person's word.

    Raises:
        BackupError: a part has something already.
    """
    full = [part.name for part in platform.parts if part.name in contents.parts and not part.is_empty()]
    full += [] if StateCopy(Store(platform.lakehouse), Path()).is_empty() else [STATE]
    if asked := sorted(set(full) - set(anyway)):
        raise BackupError(
            f"the {asked[0]} is not empty: nothing was changed. What is there stays, and only what is missing is put "
            f"back, if you say --into {asked[0]} (make: INTO={asked[0]})"
        )
