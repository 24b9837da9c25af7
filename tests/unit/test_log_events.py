"""Each log line is an event: a name in snake_case, fields by name, and a row in docs/reference/log-events.md."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}
TITLES = {"Errors": "error", "Warnings": "warning", "Information": "info"}
# Keys of every line, and what chooses how a line is rendered.
RESERVED = {"time", "level", "logger", "event", "exception", "message"}
SDK = ROOT / "services" / "sdk"
_NAME = re.compile(r"[a-z]+(_[a-z]+)+")
_ROW = re.compile(r"^\| `([a-z_]+)` \| ([^|]+) \|$", re.MULTILINE)
_NAMED = re.compile(r"`([a-z]+(?:_[a-z]+)+)`(?=[,.])")
_OTHER_LEVEL = {"; or information |": "info", "; or a warning |": "warning"}


@dataclass
class Event:
    """An event of the code, with all its levels."""

    levels: set[str] = field(default_factory=set)


def modules() -> Iterator[Path]:
    for folder in ("gamelake", "services", "jobs", "tools"):
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if SDK not in path.parents)


def log_calls(source: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=name)) if name in LEVELS:
                yield node


def problems_of(call: ast.Call) -> list[str]:
    """What a log call does that keeps its lines from being counted."""
    found = []
    match call.args:
        case [ast.Constant(value=str(name))]:
            if not _NAME.fullmatch(name):
                found.append(f"'{name}' is not an event name in snake_case")
        case [_]:
            found.append("its event is not a literal")
        case _:
            found.append("its fields have no names")
    found += [f"'{each.arg}' is a key of every line" for each in call.keywords if each.arg in RESERVED]
    return found


def events_of_the_code() -> dict[str, Event]:
    found: dict[str, Event] = {}
    for path in modules():
        for call in log_calls(path.read_text(encoding="utf-8")):
            assert isinstance(call.args[0], ast.Constant)
            assert isinstance(call.func, ast.Attribute)
            event = found.setdefault(str(call.args[0].value), Event())
            event.levels.add(LEVELS[call.func.attr])
    return found


def rows() -> list[tuple[str, set[str], str]]:
    """The page's events with their levels: the one of the table, and another that the row names."""
    page = (ROOT / "docs" / "reference" / "log-events.md").read_text(encoding="utf-8")
    found = []
    for title, level in TITLES.items():
        table, _, others = page.split(f"### {title}\n")[1].split("\n##")[0].partition("\nAlso:")
        for name, meaning in _ROW.findall(table):
            also = {other for text, other in _OTHER_LEVEL.items() if f"{meaning} |".endswith(text)}
            found.append((name, {level, *also}, meaning))
        found += [(name, {level}, "its name says it") for name in _NAMED.findall(others)]
    return found


def test_every_log_call_has_an_event_and_named_fields() -> None:
    problems = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {problem}"
        for path in modules()
        for call in log_calls(path.read_text(encoding="utf-8"))
        for problem in problems_of(call)
    ]

    assert problems == []


def test_a_log_call_that_cannot_be_counted_is_found() -> None:
    source = 'log.info("lease %s", name)\nlog.error(text)\nlog.warning("Lease lost")\nlog.info("lease_lost", time=1)\n'

    found = [problems_of(call) for call in log_calls(source)]

    assert [len(problems) for problems in found] == [1, 1, 1, 1]


def test_programs_log_by_events_alone() -> None:
    """The SDK, which runs in a customer's process, logs by the standard library as its host has set that up."""
    plain = re.compile(r"^(?:\w+ = |from )logging(?:\.getLogger| import)", re.MULTILINE)
    ours = ROOT / "gamelake" / "model" / "logs.py"

    assert [path for path in modules() if path != ours and plain.search(path.read_text(encoding="utf-8"))] == []


def test_every_event_is_documented_and_the_reverse() -> None:
    names = [name for name, *_ in rows()]

    assert sorted(names) == sorted(events_of_the_code())


def test_an_events_levels_are_those_of_the_page() -> None:
    events = events_of_the_code()
    for name, levels, meaning in rows():
        assert levels == events[name].levels, name
        assert meaning.strip(), name
