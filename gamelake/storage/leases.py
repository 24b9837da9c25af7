"""Leases with fencing tokens: one process at a time holds a lease and renews it for as long as it works.

Claims are numbered objects that are only ever created: of two processes that want the next number, the store gives it
to one. The number is the fencing token. No clocks are compared: a waiting process polls the holder's heartbeat, and
takes over when it has not changed for some time; at once if the holder was a process of the same machine and has ended.
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
from gamelake.storage.store import Store

_PROC = Path("/proc")
log = event_logger(__name__)


def process_mark(process: int) -> str:
    """A process's identity, which no other process ever has; empty if it doesn't run, or the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        state, *fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A zombie has ended; its parent has not read its exit code yet.
    return "" if state in "ZX" else f"{boot} {_namespace()} {process} {fields[18]}"


def process_has_ended(mark: str) -> bool:
    """Whether the process with a mark is known to have ended: never known of another machine's or container's."""
    parts, ours = mark.split(), process_mark(os.getpid()).split()
    is_near = bool(parts) and parts[:2] == ours[:2]
    return is_near and process_mark(int(parts[2])) != mark


def _namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """Times of a lease, in seconds.

    Attributes:
        renew: between two heartbeats of the holder.
        patience: after so long without a heartbeat another process takes over; a full machine or a slow store may
            delay one.
        poll: between two reads of the holder's heartbeat.
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
    """The exclusive right to do something, held until the end of the block.

    Attributes:
        token: greater than that of every holder before.
        took_over: whether the holder before has not released it: what it had begun may still reach the store.

    Args:
        folder: of the lease's objects.
        name: what is done, for messages.

    Raises:
        LeaseHeldError: another process holds it, and is alive.
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
        """Take the lease, also from a holder that has died."""
        latest = time.monotonic() + self._timing.wait
        process = os.getpid()
        claim = _Claim(str(uuid.uuid4()), f"process {process} on {socket.gethostname()}", process_mark(process))
        while newer := self._newer_than_own(claim, latest):
            # Another waiting process was faster.
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

        The heartbeat alone would not do: after a stall of the process its thread may be the last one to go on.

        Raises:
            LeaseLostError: another process has taken it over, as this one's heartbeat was late.
        """
        self._lost = self._lost or self._is_taken_over()
        if self._lost:
            raise LeaseLostError(
                f"another process has taken over {self._name}, as this one's heartbeat was late; it continues there"
            )

    def _newer_than_own(self, claim: _Claim, latest: float) -> int:
        """Claim the next number; gives the number of another process's claim that precludes this one, or 0."""
        self.took_over = False
        self.token = self._wait_for_former(latest) + 1
        if not self._store.put_new(self._path(self.token, "claim"), msgspec.json.encode(claim)):
            return self.token
        return self._withdraw_if_stale()

    def _withdraw_if_stale(self) -> int:
        """Take a claim back whose number was cleaned up before, and created again as this process had stalled.

        Returns:
            The number of the newer claim, or 0 where this process' claim is the newest.
        """
        if (newest := self._newest()) == self.token:
            return 0
        self._store.delete(self._path(self.token, "claim"))
        return newest

    def _wait_for_former(self, latest: float) -> int:
        """The number of the last claim, once its holder has released it or has died.

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
            except Exception as error:  # a store that fails once may answer the next time
                log.warning("lease_not_renewed", lease=self._name, error=error, action="tries again")

    def _is_taken_over(self) -> bool:
        # Later holders clean up: the next claim may be gone again, but then this one is gone too.
        following, own = (self._store.get(self._path(number, "claim")) for number in (self.token + 1, self.token))
        return following is not None or own is None

    def _clean_up(self) -> None:
        """Delete the objects of former holders, except of the last one, in ascending order.

        So at each moment a listing, which is not atomic, has a number that is at least the newest but one.
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
