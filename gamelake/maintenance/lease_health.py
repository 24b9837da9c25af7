"""Who holds a lease of a lakehouse, and does each holder still give signs of life?"""

from collections import defaultdict
from datetime import datetime, timedelta

from gamelake.lake.store import Store, StoredObject
from gamelake.maintenance.findings import Finding, passed, warned

_NEED = "leases"
_FOLDERS = ("_gamelake/leases", "_gamelake/kpis/driver", "_gamelake/upkeep/lease")
# Five times what a holder may be kept from giving a sign.
_SILENT = timedelta(minutes=1)


def examine_leases(store: Store, now: datetime) -> list[Finding]:
    """One line for all that is well, one for each holder that was killed or hangs."""
    held = silent = 0
    findings = []
    for folder, newest in _newest_claims(store).items():
        kinds = {each.path.rsplit(".", 1)[-1] for each in newest}
        if "end" in kinds:
            continue
        held += 1
        age = now - max(each.written_at for each in newest)
        if age > _SILENT:
            silent += 1
            remedy = "nothing need be done: whoever needs it next takes it over"
            told = f"{folder.removeprefix('_gamelake/')} is held, and its holder has given no sign for {age}"
            findings.append(warned(_NEED, told.partition(".")[0], remedy))
    return [passed(_NEED, f"{held - silent} are held, and their holders are alive"), *findings]


def _newest_claims(store: Store) -> dict[str, list[StoredObject]]:
    """What there is of the newest claim of each lease."""
    claims: defaultdict[str, defaultdict[str, list[StoredObject]]] = defaultdict(lambda: defaultdict(list))
    for found in (each for folder in _FOLDERS for each in store.objects(folder)):
        folder, name = found.path.rsplit("/", 1)
        claims[folder][name.partition(".")[0]].append(found)
    return {folder: numbers[max(numbers)] for folder, numbers in sorted(claims.items())}
