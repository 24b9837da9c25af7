"""Which files of a table are to become one: small ones of the same partition, packed up to the size aimed at.

A file that is good stays as it is, so that a second round finds nothing to do. Days that are over come first: they are
written once more and never again. A day that is still written is left alone until it has many small files.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from gamelake.storage.delta_log import FileEntry

# A file of so much of the size aimed at is good; packing it again would write much and gain little.
_GOOD_SHARE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRule:
    """What a round aims at.

    Attributes:
        target_bytes: size of a good file.
        hot_files: so many small files a partition may have while its day lasts.
        today: days before it are over.
        most_bytes: what the files of a bin take at most, where memory is short; None for no bound.
    """

    target_bytes: int
    hot_files: int
    today: date
    most_bytes: int | None = None

    def within(self, most_bytes: int) -> "CompactionRule":
        """The same for who has the memory for bins of so much: they aim at files of no more."""
        return replace(self, target_bytes=min(self.target_bytes, most_bytes), most_bytes=most_bytes)


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that become one file, or a few."""

    partition: Mapping[str, str | None]
    files: tuple[FileEntry, ...]

    @property
    def bytes(self) -> int:
        """What they take now."""
        return sum(file.size for file in self.files)


def bins(files: Iterable[FileEntry], rule: CompactionRule) -> list[Bin]:
    """All bins of a table; those of days that are over first, then those of the partitions with the most files."""
    small: dict[tuple[str | None, ...], list[FileEntry]] = defaultdict(list)
    for file in files:
        if file.size < _GOOD_SHARE * rule.target_bytes:
            small[tuple(file.partition.values())].append(file)
    closed = [each for each in small.values() if _is_closed(each[0], rule.today)]
    hot = [each for each in small.values() if not _is_closed(each[0], rule.today) and len(each) > rule.hot_files]
    order = [*sorted(closed, key=lambda each: -len(each)), *sorted(hot, key=lambda each: -len(each))]
    return [found for of_partition in order for found in _packed(of_partition, rule)]


def _is_closed(file: FileEntry, today: date) -> bool:
    """Whether no event of its day is likely to come any more; a table without days has none that end."""
    try:
        return date.fromisoformat(next(iter(file.partition.values()), None) or "") < today
    except ValueError:
        return False


def _packed(files: Sequence[FileEntry], rule: CompactionRule) -> list[Bin]:
    """Smallest first, so that the many small ones go into few bins; one file alone is no bin."""
    packed: list[list[FileEntry]] = [[]]
    filled = 0
    for file in sorted(files, key=lambda each: (each.size, each.path)):
        if filled >= rule.target_bytes or (rule.most_bytes is not None and filled + file.size > rule.most_bytes):
            packed.append([])
            filled = 0
        packed[-1].append(file)
        filled += file.size
    return [Bin(each[0].partition, tuple(each)) for each in packed if len(each) > 1]
