"""Programs start after those that they need, start again after an end or a change, and all of them are stopped."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from gamelake.model.errors import StartupError
from tests.support.eventually import eventually
from tools.dev.load import DevSwitches, LoadDial
from tools.dev.programs import DevProgram
from tools.dev.supervisor import LONGEST_PAUSE, PATIENCE, ProgramState, SupervisedProgram, Supervisor
from tools.embedded.process import Program
from tools.embedded.service import REPOSITORY, EmbeddedService

CONTRACT = REPOSITORY / "contracts" / "games.yaml"
UNTIL_STOPPED = "exec sleep 600"


class Script(EmbeddedService):
    """A line of the shell, healthy once a file exists."""

    name = "script"
    deadline = timedelta(seconds=60)

    def __init__(self, directory: Path, code: str) -> None:
        super().__init__(directory)
        self.code = code

    @property
    def ready(self) -> Path:
        return self.directory / "ready"

    def program(self) -> Program:
        return Program(name=self.name, command=("/bin/sh", "-c", self.code), log_file=self.directory / "log")

    def is_healthy(self) -> bool:
        """Return True if the file exists."""
        return self.ready.exists()


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., DevProgram]:
    """Makes a program of a name, healthy as soon as it runs."""

    def make(name: str, code: str = UNTIL_STOPPED, *, needs: tuple[str, ...] = (), is_ours: bool = True) -> DevProgram:
        service = Script(tmp_path / name, code)
        service.directory.mkdir()
        service.ready.touch()
        return DevProgram(name=name, service=service, needs=needs, modules=("jobs.gold",) if is_ours else ())

    return make


def states(supervisor: Supervisor) -> dict[str, ProgramState]:
    """The state of each program after a poll."""
    supervisor.poll()
    return {each.name: each.state for each in supervisor.status()}


def test_a_program_starts_once_those_that_it_needs_are_healthy(script: Callable[..., DevProgram]) -> None:
    store, job = script("store"), script("job", needs=("store",))
    service = store.service
    assert isinstance(service, Script)
    service.ready.unlink()
    supervisor = Supervisor([store, job], print)

    assert states(supervisor) == states(supervisor) == {"store": "starting", "job": "waiting"}
    service.ready.touch()
    eventually(lambda: states(supervisor) == {"store": "running", "job": "running"})

    assert supervisor.are_all_running
    supervisor.stop()
    assert not store.service.process.is_running()
    assert not job.service.process.is_running()


def test_an_ended_program_is_named_and_starts_again_with_growing_pauses(script: Callable[..., DevProgram]) -> None:
    program, lines, now = script("job", "exit 4"), list[str](), [0.0]
    job = SupervisedProgram(program, lines.append, lambda: now[0])
    service = program.service
    assert isinstance(service, Script)
    service.ready.unlink()

    def has_ended(times: int) -> bool:
        job.poll([])
        return len(lines) == times

    for times in range(1, 8):
        now[0] += LONGEST_PAUSE
        eventually(partial(has_ended, times))

    assert [line.partition(" after ")[2].partition(";")[0] for line in lines] == [
        "1 s", "2 s", "4 s", "8 s", "16 s", "30 s", "30 s",
    ]  # fmt: skip
    assert lines[0] == f"job: ended with exit code 4; starts again after 1 s; its log is {service.directory / 'log'}"
    assert job.status().restarts == 6
    job.stop()


def test_the_reason_of_an_end_is_named_and_that_of_an_earlier_start_is_not(script: Callable[..., DevProgram]) -> None:
    error = "2026-11-29T20:00:00Z ERROR gamelake.program program_failed exit_code=2 error_type=ContractError error="
    program, lines, now = script("gateway", ""), list[str](), [0.0]
    service = program.service
    assert isinstance(service, Script)
    service.ready.unlink()
    service.code = f"printf '%s' '{error}' >&2; echo '\"games.yaml:3: unknown key\"' >&2; exit 2"
    gateway = SupervisedProgram(program, lines.append, lambda: now[0])

    def has_ended(times: int) -> bool:
        gateway.poll([])
        return len(lines) == times

    eventually(partial(has_ended, 1))
    service.code = "exit 2"
    now[0] = LONGEST_PAUSE
    eventually(partial(has_ended, 2))

    assert lines[0].startswith(
        "gateway: ended with exit code 2: games.yaml:3: unknown key; starts again after 1 s; its log is "
    )
    assert lines[1].startswith("gateway: ended with exit code 2; starts again after 2 s")
    gateway.stop()


def test_a_start_is_waited_for_as_long_as_it_makes_progress(script: Callable[..., DevProgram]) -> None:
    program, lines, now = script("serving", "echo Loading >&2; exec sleep 600"), list[str](), [0.0]
    service = program.service
    assert isinstance(service, Script)
    service.ready.unlink()
    serving = SupervisedProgram(program, lines.append, lambda: now[0])
    serving.poll([])
    serving.poll([])
    log = service.process.program.log_file
    eventually(lambda: log.read_text() == "Loading\n")

    # A busy machine takes an hour for it.
    for minute in range(60):
        now[0] = minute * (PATIENCE - 1)
        with log.open("a") as file:
            file.write(f"Loading {minute}\n")
        serving.poll([])
    assert serving.status().state is ProgramState.STARTING
    assert serving.status().detail == "Loading 59"
    assert lines[-1] == f"serving: starting for {now[0]:.0f} s; Loading 59"

    now[0] += PATIENCE + 1
    serving.poll([])
    assert serving.status().state is ProgramState.PAUSED
    assert f"made no progress for {PATIENCE + 1:.0f} s" in lines[-1]
    serving.stop()


def test_cpu_time_of_any_process_of_a_start_is_progress(script: Callable[..., DevProgram]) -> None:
    program = script("job", "(while :; do :; done) & wait")
    program.service.launch()

    eventually(lambda: program.service.process.cpu_seconds() > 0.1)
    program.service.stop()


def test_a_waiting_program_names_what_it_waits_for(script: Callable[..., DevProgram]) -> None:
    job = SupervisedProgram(script("job", needs=("store", "kafka")), print)

    job.poll(["kafka"])

    assert (job.status().state, job.status().detail) == (ProgramState.WAITING, "waits for store")


def test_a_program_waits_for_its_pause(script: Callable[..., DevProgram]) -> None:
    program, now = script("job"), [0.0]
    job = SupervisedProgram(program, lambda _: None, lambda: now[0])
    job.poll([])
    job.poll([])
    program.service.kill()

    job.poll([])
    now[0] = 0.9
    job.poll([])
    paused = job.status()
    now[0] = 1.0
    job.poll([])

    assert (paused.state, job.status().state) == (ProgramState.PAUSED, ProgramState.STARTING)
    assert paused.detail.startswith("was killed by signal 9; starts again after 1 s")
    job.stop()


def test_a_change_restarts_the_programs_that_it_is_a_part_of(script: Callable[..., DevProgram]) -> None:
    lines: list[str] = []
    job, store = script("job"), script("store", is_ours=False)
    supervisor = Supervisor([job, store], lines.append)
    eventually(lambda: set(states(supervisor).values()) == {ProgramState.RUNNING})
    pid = job.service.process.pid

    supervisor.restart_changed({REPOSITORY / "services" / "gateway" / "app.py", REPOSITORY / "jobs" / "live_ops.py"})
    assert job.service.process.pid == pid
    supervisor.restart_changed({REPOSITORY / "gamelake" / "serving" / "gold" / "refresh.py"})
    second = job.service.process.pid
    supervisor.restart_changed({CONTRACT})

    assert len({pid, second, job.service.process.pid}) == 3
    assert [line for line in lines if "starts again" in line] == [
        "job: starts again, as refresh.py changed",
        "job: starts again, as games.yaml changed",
    ]
    assert store.service.process.is_running()
    supervisor.stop()


def test_a_program_that_is_not_wanted_is_off_until_it_is(script: Callable[..., DevProgram]) -> None:
    dial = LoadDial(0)
    players = replace(script("players"), is_wanted=dial.is_on)
    supervisor = Supervisor([players], print)
    switches = DevSwitches(dial, supervisor)

    assert states(supervisor) == {"players": "off"}
    assert supervisor.are_all_running

    switches.set_load(50)
    eventually(lambda: states(supervisor) == {"players": "running"})
    first = players.service.process.pid
    switches.set_load(200)
    eventually(lambda: states(supervisor) == {"players": "running"} and players.service.process.pid != first)

    switches.set_load(0)
    assert states(supervisor) == {"players": "off"}
    assert not players.service.process.is_running()
    assert switches.states().load == 0


def test_a_fault_of_the_stack_is_refused_by_name() -> None:
    with pytest.raises(StartupError, match="make dev has no fault 'gateway-down'"):
        DevSwitches(LoadDial(0), Supervisor([], print)).switch("gateway-down", on=True)


class _NotRead(tuple[str, ...]):
    """Modules that no one may iterate over: to find their files takes a second."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        raise AssertionError


def test_while_nothing_changes_no_source_file_is_read(script: Callable[..., DevProgram]) -> None:
    program = replace(script("job"), modules=_NotRead(("jobs.gold",)))

    assert not program.is_changed_by(set())
    with pytest.raises(AssertionError):
        program.is_changed_by({REPOSITORY / "jobs" / "gold.py"})
