"""Makes a backup, and restores one."""

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

import msgspec

from gamelake.model.errors import BackupError
from gamelake.objects.store import Store
from gamelake.recovery.backup_records import BackupRecord, BackupRecords
from gamelake.recovery.manifest_recovery import RebuiltManifest, rebuild_manifests
from gamelake.recovery.state_copy import RestoredState, StateCopy
from tools.backup.archive import BackupManifest, NewBackup, check, complete_backups, prune
from tools.backup.platform import BackupPlatform

STATE = "lakehouse"
Report = Callable[[str], None]


class BackupRestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a restore: a text for each part, and the batches that were committed after the backup."""

    name: str
    parts: dict[str, str]
    state: RestoredState | None = None
    checkpoints: RestoredState | None = None
    recollected: tuple[RebuiltManifest, ...] = ()


def make(platform: BackupPlatform, parent: Path, keep: int, made_at: datetime, report: Report) -> Path:
    """Make a backup in a new folder under `parent`, and delete the platform's oldest ones beyond `keep`.

    Raises:
        BackupError: a part can't be saved; the incomplete backup is deleted.
    """
    store = Store(platform.lakehouse)
    copy = StateCopy(store, Path())
    if copy.is_empty():
        raise BackupError(f"no stream has written to {store.location.uri} yet: there is nothing to back up")
    former = complete_backups(parent)[-1:] if parent.is_dir() else []
    backup = NewBackup.under(parent, made_at)
    try:
        for part in platform.parts:
            part.save(backup.folder)
            report(f"{part.name} is saved")
        last = former[0] / STATE if former else None
        objects = StateCopy(store, backup.folder / STATE, last).save()
        report(f"the lakehouse's state is saved, {objects:,} objects")
        parts = (*(part.name for part in platform.parts), STATE)
        place, contents = backup.close(platform.lakehouse.uri, parts, dict(platform.left_out))
    except BaseException:
        backup.discard()
        raise
    records = BackupRecords(store)
    records.add(
        BackupRecord(name=contents.name, made_at=contents.made_at, files=len(contents.files), bytes=contents.bytes)
    )
    for name in prune(parent, keep, contents):
        records.delete(name)
        report(f"{name} is deleted: more than {keep} backups of this platform")
    return place


def restore(
    platform: BackupPlatform, folder: Path, allow_existing: Collection[str], report: Report
) -> BackupRestoreResult:
    """Restore a backup into an empty platform; `allow_existing` names parts that need not be empty.

    Raises:
        BackupError: the backup is incomplete, or a part is not empty; nothing was changed.
    """
    contents = check(folder)
    require_empty(platform, contents, allow_existing)
    store, restored = Store(platform.lakehouse), {}
    # State first: the vault's restore reads the erasures from it, and checkpoints are checked against it.
    copy = StateCopy(store, folder / STATE)
    state = copy.restore()
    recollected = tuple(rebuild_manifests(store))
    checkpoints = copy.restore_checkpoints()
    report("the lakehouse's state is restored")
    for part in (each for each in platform.parts if each.name in contents.parts):
        restored[part.name] = part.restore(folder)
        report(f"{part.name} is restored: {restored[part.name]}")
    return BackupRestoreResult(
        name=contents.name, parts=restored, state=state, checkpoints=checkpoints, recollected=recollected
    )


def require_empty(platform: BackupPlatform, contents: BackupManifest, allow_existing: Collection[str]) -> None:
    """Check that the parts of a backup are empty on the platform, except those in `allow_existing`.

    Raises:
        BackupError: a part is not empty.
    """
    full = [part.name for part in platform.parts if part.name in contents.parts and not part.is_empty()]
    full += [] if StateCopy(Store(platform.lakehouse), Path()).is_empty() else [STATE]
    if refused := sorted(set(full) - set(allow_existing)):
        raise BackupError(
            f"the {refused[0]} is not empty: nothing was changed. With --into {refused[0]} (make: INTO={refused[0]}) "
            "existing content stays and only missing content is restored"
        )
