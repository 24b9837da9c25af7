"""The command line `gamelake`: state, addresses, SQL, load and recoveries of the running stack."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gamelake.command import as_json, whole
from gamelake.model.errors import GamelakeError, StartupError
from gamelake.observability.faults import fault_named, load_faults
from gamelake.program import FAILED, OK, run
from tools import contracts
from tools.cli import agents, credentials, doctor, experiments, faults, portal, status, switchboard
from tools.cli.completion import SHELLS, complete_with, script
from tools.cli.jobs import COMMANDS
from tools.cli.load import GAMES, MINUTES, load, set_load
from tools.embedded.service import REPOSITORY
from tools.stack import COMPOSE, running_containers

_NOTHING_DONE = 2
_LONGEST_MINUTES = 24 * 60
_EXIT_CODES = (
    "Exit codes: 0 success, 1 failed or not healthy, 2 nothing was done: wrong arguments, or the stack does not run."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given and given[0] in COMMANDS:
            # These have options of their own, which are theirs to parse.
            return COMMANDS[given[0]].run(given[1:])
        options = parser().parse_args(given)
        return int(options.command(options))
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return _NOTHING_DONE if isinstance(error, StartupError) else FAILED


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    whole = argparse.ArgumentParser(prog="gamelake", description=__doc__, epilog=_EXIT_CODES)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, summary: str, action: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=summary, description=summary, epilog=_EXIT_CODES)
        made.set_defaults(command=action, json=False)
        return made

    _with_json(
        command("status", "Show services, streams and firing alerts; exits with 1 if one is not healthy.", _status)
    )
    shown = _with_json(command("credentials", "Show addresses and users, or one secret by its name.", _credentials))
    secret = shown.add_argument("secret", nargs="?", metavar="SECRET", help="a file of compose/secrets: trino-analyst")
    complete_with(secret, credentials.secret_names())
    opened = _with_json(command("portal", "Open the portal in a browser, by an address that is valid once.", _portal))
    opened.add_argument("--no-browser", action="store_true", help="only print the address")
    asked = _with_json(command("sql", "Query Trino, or open its command line.", _sql))
    asked.add_argument("statement", nargs="?", metavar="SQL")
    asked.add_argument("--user", default="analyst", help="of contracts/access.yaml; default: analyst")
    served = command("mcp", "Serve an agent by the Model Context Protocol, with the rights of a user of Trino.", _mcp)
    served.add_argument("--user", default="analyst", help="of contracts/access.yaml; default: analyst")
    _with_json(command("check", "Check contracts, rules, views and questions; needs no stack.", _check))
    _add_experiments(
        command("experiments", "Sign a game's experiments for offline clients; needs no stack.", _experiments)
    )
    _add_load(command("load", "Show, set or stop the load of simulated players.", _load))
    _add_fault(command("fault", "List faults to practise with, and switch them on and off.", _fault))
    command("switchboard", "Put switches for load and faults on the portal, until Ctrl-C.", _switchboard)
    _with_json(command("doctor", "Check the machine and the lakehouse, with a remedy for each problem.", _doctor))
    completion = command("completion", "Print a script for a shell, which completes the commands.", _completion)
    completion.add_argument("shell", choices=SHELLS)
    for name, each in COMMANDS.items():
        # Only for the list and for completion: `main` passes their arguments on.
        _with_json(commands.add_parser(name, help=f"{each.summary} Its --help shows more."))
    return whole


def _with_json(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    # Not set where it is not given: `load --json set` and `load set --json` mean the same.
    command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    return command


def _add_load(command: argparse.ArgumentParser) -> None:
    _with_json(command)
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    begun = _with_json(actions.add_parser("set", help="start a load, or replace the one that runs"))
    begun.add_argument("rate", type=whole(1, 1_000_000), metavar="RATE", help="events per second")
    begun.add_argument("--games", type=whole(1, 30), default=GAMES, help="games that are played; default: %(default)s")
    begun.add_argument(
        "--minutes",
        type=whole(1, _LONGEST_MINUTES),
        default=MINUTES,
        help="after which it ends by itself; default: %(default)s",
    )
    _with_json(actions.add_parser("stop", help="end the load"))


def _add_experiments(command: argparse.ArgumentParser) -> None:
    _with_json(command)
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    published = _with_json(actions.add_parser("publish", help="write a signed file with a game's experiments"))
    published.add_argument("game", metavar="GAME", help="the game's name in contracts/games.yaml")
    published.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")
    published.add_argument(
        "--days",
        type=whole(1, experiments.MOST_DAYS),
        default=experiments.DAYS,
        help="how long clients accept the file; default: %(default)s",
    )
    created = _with_json(actions.add_parser("new-key", help="create a signing key and print its public key"))
    shown = _with_json(actions.add_parser("public-key", help="print the public key that clients need"))
    for action in (published, created, shown):
        action.add_argument("--key", type=Path, required=True, metavar="FILE", help="the signing key's file")


def _add_fault(command: argparse.ArgumentParser) -> None:
    _with_json(command)
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    for name, summary in (
        ("on", "switch a fault on, and show which alert and panel to expect"),
        ("off", "switch a fault off; without a name, all of them"),
        ("show", "show what a fault does, and its remedy"),
    ):
        action = _with_json(actions.add_parser(name, help=summary))
        named = action.add_argument("fault", nargs="?" if name == "off" else None, metavar="NAME")
        complete_with(named, load_faults(faults.FAULTS))


def _status(options: argparse.Namespace) -> int:
    found = status.current()
    _print(found if options.json else status.as_text(found))
    return OK if found.is_healthy else FAILED


def _credentials(options: argparse.Namespace) -> int:
    if options.secret is None:
        running_containers()
        found = credentials.addresses()
        _print(found if options.json else credentials.as_text(found))
    else:
        content = credentials.secret(options.secret)
        _print({options.secret: content} if options.json else content.rstrip("\n"))
    return OK


def _portal(options: argparse.Namespace) -> int:
    address = portal.new_address()
    _print({"address": address} if options.json else address)
    if not options.no_browser and portal.open_in_browser(address):
        print("The browser opens it.", file=sys.stderr)
    return OK


def _sql(options: argparse.Namespace) -> int:
    form = "JSON" if options.json else "ALIGNED"
    running_containers()
    asked = () if options.statement is None else (f"--output-format={form}", f"--execute={options.statement}")
    command = (str(COMPOSE / "sql.sh"), options.user, *asked)
    source = None if options.statement is None else subprocess.DEVNULL
    return OK if subprocess.run(command, cwd=REPOSITORY, check=False, stdin=source).returncode == 0 else FAILED


def _mcp(options: argparse.Namespace) -> int:
    # The process is the server's: its standard input and output are those of the agent's client.
    command = (sys.executable, "-m", "services.agents")
    os.chdir(REPOSITORY)
    os.execve(command[0], command, agents.environment(options.user))  # noqa: S606 # a program of our own


def _check(options: argparse.Namespace) -> int:
    found = list(dict.fromkeys(contracts.problems(REPOSITORY)))
    if options.json:
        _print(found)
    else:
        _print("\n".join(found) or "No mistake was found.")
    return FAILED if found else OK


def _experiments(options: argparse.Namespace) -> int:
    if options.action == "publish":
        written = experiments.write_file(options.game, options.key, options.out, options.days)
        _print({"file": str(written)} if options.json else str(written))
        return OK
    act = experiments.new_key if options.action == "new-key" else experiments.public_key
    key = act(options.key)
    _print(key if options.json else f"{key.key}: {key.public}")
    return OK


def _load(options: argparse.Namespace) -> int:
    running_containers()
    if options.action == "set":
        set_load(options.rate, options.games, options.minutes)
    elif options.action == "stop":
        set_load(0)
    rate = load()
    if options.json:
        _print({"events_per_second": rate or 0})
    else:
        _print("no load" if rate is None else f"{rate:,} events/s")
    return OK


def _fault(options: argparse.Namespace) -> int:
    known = load_faults(faults.FAULTS)
    name = getattr(options, "fault", None)
    chosen = list(known.values()) if name is None else [fault_named(known, name)]
    running = running_containers()
    if options.action in {"on", "off"}:
        for fault in chosen:
            faults.switch(fault, running, on=options.action == "on")
        running = running_containers()
    states = [faults.state_of(fault, running) for fault in chosen]
    _print(states if options.json else faults.as_text(states))
    return OK


def _switchboard(_: argparse.Namespace) -> int:
    switchboard.serve()
    return OK


def _doctor(options: argparse.Namespace) -> int:
    if options.json:
        found = doctor.examine()
        _print(found)
        return FAILED if found.any_failed else OK
    checks = (doctor.MACHINE, doctor.LAKEHOUSE)
    codes = [subprocess.run((check,), cwd=REPOSITORY, check=False).returncode for check in checks]
    return FAILED if any(codes) else OK


def _completion(options: argparse.Namespace) -> int:
    _print(script(options.shell, parser()))
    return OK


def _print(found: object) -> None:
    text = found if isinstance(found, str) else as_json(found)
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # What reads it, such as `head`, has read enough. Python would report it again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    run(main, is_command=True)
