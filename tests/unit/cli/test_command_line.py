"""The command line: its commands, their exit codes and output, as far as they need no stack."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gamelake.observability.health import HealthVerdict
from tests.support.programs import add_program
from tools.cli.__main__ import main, parser
from tools.cli.completion import SHELLS, script, words
from tools.cli.doctor import finding
from tools.cli.jobs import COMMANDS
from tools.cli.status import FiringAlert, ServiceStatus, Status, StreamStatus, as_text
from tools.stack import Container, PageResponse

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs/command-line.md").read_text(encoding="utf-8")
HEALTHY = ServiceStatus(service="kafka", state="healthy", is_healthy=True)
RUNNING = StreamStatus(query="ingest_events", runs=True, seconds_behind=1.25, records_per_second=4_999.6)


def program_of(name: str) -> str:
    """The code that parses the arguments of a job."""
    path = REPOSITORY / COMMANDS[name].module.replace(".", "/")
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "settings.py"
    return file.read_text(encoding="utf-8")


def gamelake(*arguments: str, folder: Path = REPOSITORY) -> "subprocess.CompletedProcess[str]":
    """Run it as a user does."""
    command = (sys.executable, "-m", "gamelake", *arguments)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    add_program(tmp_path / "docker", "#!/bin/sh\necho 'there is no engine' >&2\nexit 1\n")


@pytest.mark.parametrize("name", words(parser()))
def test_each_command_is_in_the_document(name: str) -> None:
    assert f"`gamelake {name}" in PAGE


def test_the_library_runs_the_command_line_of_its_checkout_from_any_folder(tmp_path: Path) -> None:
    shown = gamelake("--help", folder=tmp_path)

    assert shown.returncode == 0
    assert "usage: gamelake" in shown.stdout


def test_the_contracts_are_checked_without_a_stack(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == main(["check", "--json"]) == 0

    assert capsys.readouterr().out == "No mistake was found.\n[]\n"


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    command = (sys.executable, "-m", "gamelake", "completion", "bash")
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()

        assert running.stderr.read() == b""
        assert running.wait() == 0


@pytest.mark.parametrize(
    "arguments", [(), ("nothing",), ("load", "set", "0"), ("load", "set", "much"), ("completion",)]
)
def test_wrong_arguments_change_nothing_and_exit_with_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2


@pytest.mark.usefixtures("no_docker")
@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("credentials",),
        ("sql", "SELECT 1"),
        ("load", "stop"),
        ("fault",),
        ("verify",),
        ("restore", "--all"),
    ],
)
def test_without_a_running_stack_nothing_is_done_and_the_exit_code_is_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2

    assert "there is no engine" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["load --json set 5", "load set 5 --json", "fault on x --json", "fault --json on x"])
def test_json_may_stand_before_or_after_an_action(line: str) -> None:
    assert parser().parse_args(line.split()).json


@pytest.mark.parametrize("line", ["load", "load set 5", "fault off", "status", "doctor"])
def test_without_the_option_no_json_is_printed(line: str) -> None:
    assert not parser().parse_args(line.split()).json


def test_lines_of_the_machines_checks_are_findings() -> None:
    met = finding("PASS memory: the engine has 9 MiB; that is enough")
    unmet = finding("FAIL cores: the engine has 1; and that is little; give it more")

    assert (met.verdict, met.need, met.found, met.remedy) == (
        HealthVerdict.PASS,
        "memory",
        "the engine has 9 MiB; that is enough",
        "",
    )
    assert (unmet.verdict, unmet.need, unmet.found, unmet.remedy) == (
        HealthVerdict.FAIL,
        "cores",
        "the engine has 1; and that is little",
        "give it more",
    )


@pytest.mark.usefixtures("no_docker")
def test_doctor_prints_its_findings_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 1

    [finding] = json.loads(capsys.readouterr().out)["machine"]
    assert (finding["verdict"], finding["need"]) == ("FAIL", "engine")


def test_an_agent_of_an_unknown_user_is_not_served(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GAMELAKE_TRINO_URL", raising=False)

    assert main(["mcp", "--user", "unknown"]) == 2

    assert "compose/secrets/trino-unknown: make up makes it" in capsys.readouterr().err


def test_an_unknown_secret_is_refused_with_the_names_of_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["credentials", "../compose.yaml"]) == 2

    assert "there is no secret '../compose.yaml' in compose/secrets" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_job_gets_its_arguments_as_they_are_in_a_container_that_is_removed(name: str) -> None:
    command = COMMANDS[name].command_line(["--dry-run", "a b"], has_terminal=False)

    assert command[1:5] == ("run", "--rm", "--no-deps", "--no-TTY")
    assert command[-5:] == ("python", "-m", COMMANDS[name].module, "--dry-run", "a b")


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_an_option_of_each_job_also_of_those_that_print_nothing_else(name: str) -> None:
    command = COMMANDS[name].command_line(["--json"], has_terminal=False)

    has_option = '"--json"' in program_of(name)
    assert command[-1] == ("--json" if has_option else COMMANDS[name].module)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_job_of_a_command_exists(name: str) -> None:
    path = REPOSITORY / COMMANDS[name].module.replace(".", "/")

    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_actions_and_options(shell: str) -> None:
    made = script(shell, parser())

    assert subprocess.run(("/bin/bash", "-n"), input=made, text=True, check=False).returncode == 0
    for typed, found in (
        ("gamelake stat", "status"),
        ("gamelake load s", "set stop"),
        ("gamelake sql --u", "--user"),
        ("gamelake load set 5 --m", "--minutes"),
        ("gamelake fault on gateway", "gateway-down"),
        ("gamelake restore --j", "--json"),
    ):
        arguments = typed.split()
        ask = f'COMP_WORDS=({typed}); COMP_CWORD={len(arguments) - 1}; _gamelake; echo "${{COMPREPLY[@]}}"'
        # A shell without programmable completion has no `complete`; bash in a container may lack it.
        sourced = f"autoload() {{ :; }}\nbashcompinit() {{ :; }}\n{made}\n{ask}"
        answer = subprocess.run(("/bin/bash", "-c", sourced), capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == found


def test_many_alerts_of_one_kind_are_one_line_and_critical_ones_come_first() -> None:
    behind = [FiringAlert(alert="GoldTableBehind", severity="warning", about=f"gold/{name}") for name in "dbcae"]
    alerts = (*behind, FiringAlert(alert="GatewayDown", severity="critical", about=""))

    lines = as_text(Status(services=(HEALTHY,), streams=(RUNNING,), alerts=alerts)).splitlines()

    assert lines[-2:] == [
        "alerts     GatewayDown (critical)",
        "           GoldTableBehind (warning) gold/a, gold/b, gold/c and 2 more",
    ]


def test_a_stack_with_healthy_services_running_streams_and_no_alerts_is_healthy() -> None:
    status = Status(services=(HEALTHY,), streams=(RUNNING,))

    assert status.is_healthy
    assert as_text(status).splitlines() == [
        "services   1 of 1 healthy",
        "streams    ingest_events: 1.2 s behind, 5,000/s",
        "alerts     none",
    ]


def stack_of(monkeypatch: pytest.MonkeyPatch, *services: str) -> None:
    """A stack in which containers of these services run, and Prometheus responds with nothing."""
    found = [Container(id=name, service=name, state="running", health="healthy", project="x") for name in services]
    nothing = {"status": "success", "data": {"result": []}}
    monkeypatch.setattr("tools.cli.status.running_containers", lambda: found)
    monkeypatch.setattr("tools.cli.status.page", lambda *_: PageResponse(200, json.dumps(nothing)))


def test_a_healthy_stack_without_observability_is_healthy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack_of(monkeypatch, "kafka", "ingest")

    assert main(["status"]) == 0
    assert "streams    unknown: Prometheus is not part of this stack" in capsys.readouterr().out


def test_a_stack_whose_prometheus_is_gone_is_not_healthy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack_of(monkeypatch, "kafka", "ingest", "alertmanager")

    assert main(["status"]) == 1
    assert "its container is gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (
            Status(services=(HEALTHY, ServiceStatus(service="trino", state="exited", is_healthy=False))),
            "           trino: exited",
        ),
        (
            Status(
                services=(HEALTHY,),
                streams=(StreamStatus(query="live_ops", runs=False, seconds_behind=None, records_per_second=None),),
            ),
            "streams    live_ops: down",
        ),
        (
            Status(
                services=(HEALTHY,),
                streams=(RUNNING,),
                alerts=(FiringAlert(alert="GameSilent", severity="warning", about="ingest_events archery"),),
            ),
            "alerts     GameSilent (warning) ingest_events archery",
        ),
        (
            Status(services=(HEALTHY,), prometheus="Prometheus does not answer: refused"),
            "streams    unknown: Prometheus does not answer: refused",
        ),
    ],
)
def test_what_is_not_healthy_is_named(status: Status, line: str) -> None:
    assert not status.is_healthy
    assert line in as_text(status).splitlines()


def test_the_number_of_games_is_bounded_by_the_contract() -> None:
    with pytest.raises(SystemExit):
        main(["load", "set", "10", "--games", "31"])


def test_json_of_a_secret_is_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trino-analyst").write_text("user=analyst\npassword=x\n")
    monkeypatch.setattr("tools.cli.credentials.SECRETS", tmp_path)

    assert main(["credentials", "trino-analyst", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"trino-analyst": "user=analyst\npassword=x\n"}
