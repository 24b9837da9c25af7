"""A simulated world for the platform's own code: its processes, their threads, a clock, and who is next to run.

Each operation on the simulated store, each sleep and each wait is a point at which the world decides what happens next:
the same thread continues (the default), another runs, the process stalls or is killed, or the reply to the operation
is lost. A schedule is the list of the decisions that differ from the default, so a short one can be read and kept.

Only one thread runs at any time, and nothing depends on real time or chance: a schedule always gives the same run.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")

# A run that takes longer than this many points never ends.
_MOST_POINTS = 20_000


class KilledError(BaseException):
    """Raised in the threads of a process that was killed: its `finally` blocks have no effect on the world any more."""


class ReplyLostError(OSError):
    """The store has done what was asked, and the reply never came."""


class EndlessRunError(AssertionError):
    """A run that never ends: all threads wait, or they continue for ever."""


class UnknownOptionError(LookupError):
    """The schedule is one of another case: at a point it wants an option that there is not."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A decision that differs from the default: at a point (counted from 0), the number of the option that is taken."""

    point: int
    option: int


Schedule = tuple[Deviation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What may happen to processes, and how often in one run.

    Attributes:
        kills: SIGKILLs; the operation under way has an effect, or has none.
        late_requests: whether the last write of a killed process may also have its effect at any later time.
        stalls: pauses of a whole process.
        lost_replies: writes that succeed although their process gets an error.
        stall_seconds: the length of a pause, by the world's clock.
        clock_jumps: how often the time of day of a process's machine changes; its monotonic clock continues.
        jump_seconds: by how much, forwards or backwards.
    """

    kills: int = 0
    late_requests: bool = True
    stalls: int = 0
    lost_replies: int = 0
    stall_seconds: float = 30.0
    clock_jumps: int = 0
    jump_seconds: float = 300.0


@dataclass(eq=False, slots=True)
class _Task:
    """A thread of a process. `wakes` is when it advances by itself; `is_due` says whether it can continue already."""

    process: "Process"
    name: str
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    wakes: float | None = None
    is_due: Callable[[], bool] | None = None
    writes: Callable[[], object] | None = None
    loses_reply: bool = False
    has_ended: bool = False


@dataclass(eq=False, slots=True)
class Process:
    """A process of the world; a supervisor starts it again after a kill, or an error, as often as `restarts` says.

    `skew` is by how many seconds the time of day of its machine differs from the world's clock.
    """

    name: str
    body: Callable[[], object]
    restarts: int
    skew: float = 0.0
    tasks: list[_Task] = field(default_factory=list)
    is_dead: bool = False
    stalled_until: float = 0.0


class _Option(NamedTuple):
    """What may happen next: to whom, what, and how."""

    name: str
    what: str
    take: Callable[[], _Task | None]


class World:
    """Runs processes by a schedule.

    Attributes:
        now: the world's clock, in seconds; all processes share it, except for the time of day.
        errors: what processes ended with, in order; the names of killed ones with None.
        trace: what was decided at the deviations, and each operation, for people.
        widths: how many options each point had, for those that enumerate schedules.
    """

    def __init__(self, schedule: Schedule = (), faults: Faults | None = None) -> None:
        self.now = 0.0
        self.errors: list[tuple[str, BaseException | None]] = []
        self.trace: list[str] = []
        self.widths: list[int] = []
        self._deviations: Mapping[int, int] = {each.point: each.option for each in schedule}
        faults = faults or Faults()
        self._kills, self._stalls, self._lost = faults.kills, faults.stalls, faults.lost_replies
        self._jumps, self._jump_seconds = faults.clock_jumps, faults.jump_seconds
        self._stall_text = f"stalls for {faults.stall_seconds:g} s"
        self._stall_seconds, self._late_requests = faults.stall_seconds, faults.late_requests
        self._tasks: list[_Task] = []
        self._late: list[tuple[str, Callable[[], object]]] = []
        self._done = threading.Semaphore(0)
        self._problem: BaseException | None = None

    # What tests call

    def start(self, name: str, body: Callable[[], object], restarts: int = 0, skew: float = 0.0) -> Process:
        """Add a process, which runs once `run` is called, or at once if another process starts it."""
        process = Process(name, body, restarts, skew)
        self._add(process, name, lambda: self._main(process))
        return process

    def run(self) -> None:
        """Run until all processes have ended.

        Raises:
            EndlessRunError: they never do.
            UnknownOptionError: the schedule is one of another case.
        """
        first = self._next(None)
        if first is not None:
            first.gate.release()
            self._done.acquire()
        self._unwind()
        if self._problem is not None:
            raise self._problem

    # What the simulated store, clock and threads call

    def perform(self, label: str, effect: Callable[[], Result], *, is_write: bool = False) -> Result:
        """Carry out an operation of the calling thread, at the time that the schedule gives it.

        Raises:
            ReplyLostError: the operation was carried out, and its reply was lost.
        """
        task = self._calling()
        task.writes = effect if is_write else None
        self._pause(task, label)
        loses_reply, task.loses_reply, task.writes = task.loses_reply, False, None
        result = effect()
        if loses_reply:
            raise ReplyLostError(f"{label}: the reply was lost")
        return result

    def sleep(self, seconds: float) -> None:
        """Let the calling thread sleep, by the world's clock."""
        task = self._calling()
        task.wakes = self.now + seconds
        self._pause(task, f"sleep {seconds:g}")

    def wait(self, is_due: Callable[[], bool], timeout: float | None = None) -> bool:
        """Let the calling thread wait for a condition. Return True if it is true."""
        task = self._calling()
        task.is_due = is_due
        task.wakes = None if timeout is None else self.now + timeout
        self._pause(task, "wait")
        return is_due()

    def time_of_day(self) -> float:
        """The world's clock as the machine of the calling process has it, in seconds."""
        return self.now + self._calling().process.skew

    def spawn(self, name: str, body: Callable[[], object]) -> Callable[[], bool]:
        """Start a thread in the calling process. Return a function that says whether it has ended."""
        process = self._calling().process
        task = self._add(process, name, body)
        return lambda: task.has_ended

    # Threads

    def _add(self, process: Process, name: str, body: Callable[[], object]) -> _Task:
        task = _Task(process, name)
        process.tasks.append(task)
        self._tasks.append(task)
        _run_in_thread(lambda: self._run_task(task, body))
        return task

    def _run_task(self, task: _Task, body: Callable[[], object]) -> None:
        _local.world, _local.task = self, task
        task.gate.acquire()
        try:
            if task.process.is_dead:
                return
            body()
        except KilledError:
            return
        except BaseException as error:  # the test has to see it, and the others have to continue
            self._problem = self._problem or error
        task.has_ended = True
        self._hand_over(task)

    def _main(self, process: Process) -> None:
        error = None
        try:
            process.body()
        except Exception as raised:
            error = raised
        # As a program's daemon threads end with it.
        process.is_dead = True
        if error is not None:
            self.errors.append((process.name, error))
            self._restart(process)

    def _restart(self, process: Process) -> None:
        if process.restarts:
            self.start(_next_name(process.name), process.body, process.restarts - 1, process.skew)

    def _unwind(self) -> None:
        """End the threads of processes that were killed or have ended."""
        for task in self._tasks:
            task.process.is_dead = True
        for task in self._tasks:
            task.gate.release()

    def _calling(self) -> _Task:
        task: _Task = _local.task
        if task.process.is_dead:
            raise KilledError
        return task

    def _pause(self, task: _Task, label: str) -> None:
        if len(self.trace) < _MOST_POINTS:
            self.trace.append(f"{self.now:7.2f} {task.process.name}: {label}")
        self._hand_over(task)
        if task.process.is_dead:
            raise KilledError
        task.wakes = task.is_due = None

    def _hand_over(self, task: _Task) -> None:
        """Let the next thread run; returns when it is the turn of this one again, or at once if it has ended."""
        try:
            following = self._next(task)
        except BaseException as error:  # as in _run_task
            self._problem = self._problem or error
            following = None
        if following is task:
            return
        if following is None:
            self._done.release()
        else:
            following.gate.release()
        if not task.has_ended:
            task.gate.acquire()

    # Decisions

    def _next(self, current: _Task | None) -> _Task | None:
        while True:
            self._advance_if_idle()
            ready = [task for task in self._tasks if self._is_ready(task)]
            if current in ready:
                ready.remove(current)
                ready.insert(0, current)
            others = self._options(current if current in ready else None)
            width = len(ready) + len(others)
            if not width:
                return None
            number = self._chosen(width)
            if not number and ready:
                return ready[0]
            if number < len(ready):
                task = ready[number]
                self._note(f"{task.process.name} ({task.name}) continues")
                return task
            name, what, take = others[number - len(ready)]
            if number:
                self._note(f"{name} {what}")
            taken = take()
            if taken is not None:
                return taken

    def _chosen(self, width: int) -> int:
        """Return the number of the option that the schedule takes at the next point, which has `width` options."""
        point = len(self.widths)
        if point >= _MOST_POINTS:
            raise EndlessRunError(f"no end after {_MOST_POINTS} points")
        self.widths.append(width)
        number = self._deviations.get(point, 0)
        if number >= width:
            raise UnknownOptionError(f"point {point} has {width} options, and the schedule wants number {number}")
        return number

    def _note(self, what: str) -> None:
        self.trace.append(f"{self.now:7.2f} -- {what}")

    def _options(self, task: _Task | None) -> list[_Option]:
        """What can happen next, besides that a thread continues; `task` is the one that may have a fault."""
        options = [
            _Option(name, "was killed, and its request arrives", partial(self._arrive, number))
            for number, (name, _) in enumerate(self._late)
        ]
        if task is None:
            return options
        name, writes = task.process.name, task.writes is not None
        if self._kills:
            options.append(_Option(name, "is killed", partial(self._kill, task, late=False)))
            if writes and self._late_requests:
                what = "is killed, its request is under way"
                options.append(_Option(name, what, partial(self._kill, task, late=True)))
        if self._stalls:
            options.append(_Option(name, self._stall_text, partial(self._stall, task)))
        if self._lost and writes:
            options.append(_Option(name, "gets no reply", partial(self._lose_reply, task)))
        if self._jumps:
            options += [
                _Option(name, f"has its clock jump by {seconds:g} s", partial(self._jump, task, seconds))
                for seconds in (self._jump_seconds, -self._jump_seconds)
            ]
        return options

    def _is_ready(self, task: _Task) -> bool:
        if task.has_ended or task.process.is_dead or self.now < task.process.stalled_until:
            return False
        if task.is_due is not None and task.is_due():
            return True
        if task.wakes is not None:
            return self.now >= task.wakes
        return task.is_due is None

    def _advance_if_idle(self) -> None:
        alive = [task for task in self._tasks if not (task.has_ended or task.process.is_dead)]
        while alive and not any(map(self._is_ready, alive)):
            times = [max(task.wakes or 0.0, task.process.stalled_until) for task in alive if self._will_go_on(task)]
            if not any(time > self.now for time in times):
                names = ", ".join(f"{task.process.name} ({task.name})" for task in alive)
                raise EndlessRunError(f"deadlock: {names}")
            self.now = min(time for time in times if time > self.now)

    def _will_go_on(self, task: _Task) -> bool:
        return task.wakes is not None or task.is_due is None or task.is_due()

    def _arrive(self, number: int) -> None:
        _, effect = self._late.pop(number)
        # A copy of a file that is gone by then; the process that would get the error is dead.
        with suppress(FileNotFoundError):
            effect()

    def _kill(self, task: _Task, *, late: bool) -> None:
        process = task.process
        if late and task.writes is not None:
            self._late.append((process.name, task.writes))
        self._kills -= 1
        process.is_dead = True
        self.errors.append((process.name, None))
        self._restart(process)

    def _stall(self, task: _Task) -> None:
        self._stalls -= 1
        task.process.stalled_until = self.now + self._stall_seconds

    def _jump(self, task: _Task, seconds: float) -> _Task:
        self._jumps -= 1
        task.process.skew += seconds
        return task

    def _lose_reply(self, task: _Task) -> _Task:
        self._lost -= 1
        task.loses_reply = True
        return task


def calling_process() -> str:
    """The name of the simulated process that calls."""
    task: _Task = _local.task
    return task.process.name


def calling_world() -> World:
    """The world in which the calling thread runs."""
    world: World = _local.world
    return world


def _next_name(name: str) -> str:
    stem, _, number = name.partition("#")
    return f"{stem}#{int(number or 1) + 1}"


_local = threading.local()
_idle: list[SimpleQueue[Callable[[], None]]] = []


def _run_in_thread(body: Callable[[], None]) -> None:
    """Run in a thread that is kept for the next one: to start threads takes longer than most runs."""
    if _idle:
        _idle.pop().put(body)
        return
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
    queue.put(body)
    threading.Thread(target=_work, args=(queue,), daemon=True).start()


def _work(queue: "SimpleQueue[Callable[[], None]]") -> None:
    while True:
        queue.get()()
        _idle.append(queue)
