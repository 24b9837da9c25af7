"""Leases with fencing tokens: one process at a time holds a lease and renews it for as long as it works.

A claim is an object with a number, created with a conditional put: if two processes want the next number, only one put
succeeds. The number is the fencing token. No clocks are compared. A waiting process polls the holder's heartbeat and
takes over if it has not changed for `LeaseTiming.patience` seconds. If the holder was a process of the same machine and
has ended, the waiting process takes over at once.
"""

import os
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

import msgspec

from gamelake.model.errors import LeaseHeldError, LeaseLostError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store

_PROC = Path("/proc")
log = event_logger(__name__)


def process_mark(process: int) -> str:
    """Return an identity that no other process ever has: boot, namespace, process id and start time.

    Returns:
        The identity, or "" if the process doesn't run, or if the system has no `/proc`.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        state, *fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A zombie has ended; its parent has not read its exit code yet.
    return "" if state in "ZX" else f"{boot} {_namespace()} {process} {fields[18]}"


def process_has_ended(mark: str) -> bool:
    """Return True if the process with a mark has certainly ended.

    Args:
        mark: see `process_mark`. A mark of another machine or container is never certain, so the result is False.
    """
    parts, ours = mark.split(), process_mark(os.getpid()).split()
    is_near = bool(parts) and parts[:2] == ours[:2]
    return is_near and process_mark(int(parts[2])) != mark


def _namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """Times of a lease, in seconds.

    Attributes:
        renew: time between two heartbeats of the holder.
        patience: another process takes over after this time without a heartbeat. An overloaded machine or a slow store
            may delay a heartbeat.
        poll: time between two reads of the holder's heartbeat.
        wait: how long to wait for a holder that is alive.
    """

    renew: float = 2.0
    patience: float = 12.0
    poll: float = 0.5
    wait: float = 0.0


class _Claim(msgspec.Struct, frozen=True):
    holder: str
    where: str
    process: str = ""


class Lease:
    """The exclusive right to do something, held until the end of the `with` block.

    One thread enters and leaves the block. A daemon thread renews the heartbeat between. A renewal that fails is logged
    and tried again. Call `require` before each step that must not run after another process has taken over.

    Attributes:
        token: the fencing token, greater than that of every former holder.
        took_over: True if the former holder has not released the lease. Its last requests may still reach the store.

    Args:
        folder: the folder of the lease's objects.
        name: the protected work, for messages.
        timing: see `LeaseTiming`; None for its defaults.

    Raises:
        LeaseHeldError: on entry, another process that is alive holds the lease.

    Example:
        >>> with Lease(Store(location), "_gamelake/leases/compaction", "compaction") as lease:
        ...     lease.require()
        ...     lease.token
        1
    """

    def __init__(self, store: Store, folder: str, name: str, timing: LeaseTiming | None = None) -> None:
        self._store = store
        self._folder = folder
        self._name = name
        self._timing = timing or LeaseTiming()
        self._ended = Event()
        self._lost = False
        self._beats = 0
        self._thread = Thread(target=self._renew, name=f"lease of {name}", daemon=True)
        self.token = 0
        self.took_over = False

    def __enter__(self) -> Self:
        """Take the lease, if necessary from a holder that has died."""
        latest = time.monotonic() + self._timing.wait
        process = os.getpid()
        claim = _Claim(str(uuid.uuid4()), f"process {process} on {socket.gethostname()}", process_mark(process))
        while newer := self._newer_than_own(claim, latest):
            # Another waiting process has claimed the number first.
            if time.monotonic() >= latest:
                raise LeaseHeldError(self._refusal(newer))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lease."""
        self._ended.set()
        self._thread.join()
        if not self._lost:
            self._store.put(self._path(self.token, "end"), b"")
            self._clean_up()

    def require(self) -> None:
        """Check with the store that this process still holds the lease.

        The heartbeat alone is not enough: after the process has stalled, the heartbeat's thread may be the last one to
        continue.

        Raises:
            LeaseLostError: another process has taken the lease over because this one's heartbeat was late.
        """
        self._lost = self._lost or self._is_taken_over()
        if self._lost:
            raise LeaseLostError(
                f"another process has taken over {self._name} because this one's heartbeat was late; it continues there"
            )

    def _newer_than_own(self, claim: _Claim, latest: float) -> int:
        """Claim the next number.

        Returns:
            0 if this process has the lease, else the number of another process's claim that prevents it.
        """
        self.took_over = False
        self.token = self._wait_for_former(latest) + 1
        if not self._store.put_new(self._path(self.token, "claim"), msgspec.json.encode(claim)):
            return self.token
        return self._withdraw_if_stale()

    def _withdraw_if_stale(self) -> int:
        """Delete this process's claim if its number had been cleaned up while this process stalled.

        Returns:
            The number of the newer claim, or 0 if this process's claim is the newest.
        """
        if (newest := self._newest()) == self.token:
            return 0
        self._store.delete(self._path(self.token, "claim"))
        return newest

    def _wait_for_former(self, latest: float) -> int:
        """Wait until the holder of the last claim has released it or has died; return the claim's number.

        Raises:
            LeaseHeldError: a holder is alive at the monotonic time `latest`.
        """
        number = self._newest()
        if not number or self._is_over(number):
            return number
        if self._has_died(number):
            self.took_over = True
            return number
        log.info("lease_held", lease=self._name, holder=self._where(number), action="checks whether it is alive")
        sign, alive_at = self._sign(number), time.monotonic()
        while not self._is_over(number):
            time.sleep(self._timing.poll)
            newest, standing, now = self._newest(), self._sign(number), time.monotonic()
            if (newest, standing) != (number, sign):
                if now >= latest:
                    raise LeaseHeldError(self._refusal(newest))
                number, sign, alive_at = newest, self._sign(newest), now
            elif now - alive_at >= self._timing.patience:
                self.took_over = True
                return number
        return number

    def _renew(self) -> None:
        while not self._ended.wait(self._timing.renew):
            try:
                if self._is_taken_over():
                    self._lost = True
                    return
                self._beats += 1
                self._store.put(self._path(self.token, "sign"), str(self._beats).encode())
            except Exception as error:  # a store that fails once may respond the next time
                log.warning("lease_not_renewed", lease=self._name, error=error, action="tries again")

    def _is_taken_over(self) -> bool:
        # Later holders clean up: the next claim may be deleted already, but then this one is deleted too.
        following, own = (self._store.get(self._path(number, "claim")) for number in (self.token + 1, self.token))
        return following is not None or own is None

    def _clean_up(self) -> None:
        """Delete the objects of former holders except the last one, in ascending order.

        A listing is not atomic. This order makes sure that it has the newest number or the one before.
        """
        for path in sorted(self._store.paths(self._folder), key=_number_of):
            if _number_of(path) < self.token - 1:
                self._store.delete(path)

    def _newest(self) -> int:
        return max(map(_number_of, self._store.paths(self._folder)), default=0)

    def _is_over(self, number: int) -> bool:
        return self._store.get(self._path(number, "end")) is not None

    def _sign(self, number: int) -> bytes | None:
        return self._store.get(self._path(number, "sign"))

    def _has_died(self, number: int) -> bool:
        claim = self._claim(number)
        return claim is not None and process_has_ended(claim.process)

    def _where(self, number: int) -> str:
        claim = self._claim(number)
        return claim.where if claim else "another process"

    def _claim(self, number: int) -> _Claim | None:
        content = self._store.get(self._path(number, "claim"))
        # Not every local file system writes a file atomically.
        return msgspec.json.decode(content, type=_Claim) if content else None

    def _refusal(self, number: int) -> str:
        return (
            f"{self._name} is held by {self._where(number)}, which is alive; nothing was read or written. "
            "Try again when it has ended"
        )

    def _path(self, number: int, kind: str) -> str:
        return f"{self._folder}/{number:012d}.{kind}"


def _number_of(path: str) -> int:
    return int(path.rsplit("/", 1)[-1].split(".", maxsplit=1)[0])
