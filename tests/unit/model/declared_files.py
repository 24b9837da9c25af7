"""The declarations that programs read, and damaged ones: each is read, or refused with its file and a line."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gamelake.contract import access, experiments, games, metrics, schedule
from gamelake.model.errors import ContractError
from gamelake.observability import faults
from gamelake.quality import rules
from gamelake.serving.players import contract as segments
from gamelake.streaming import message_mapping
from services.provision import declarations

GAMES = games.load_games(Path("contracts/games.yaml"))
METRICS = metrics.load_metrics(Path("contracts/metrics.yaml"))
LOADERS: dict[Callable[..., Any], tuple[str, tuple[object, ...]]] = {
    games.load_games: ("contracts/games.yaml", ()),
    message_mapping.load_event_contract: ("contracts/games.yaml", ()),
    access.load_access: ("contracts/access.yaml", (GAMES,)),
    experiments.load_experiments: ("contracts/experiments.yaml", (GAMES, METRICS)),
    segments.load_segments: ("contracts/segments.yaml", (GAMES,)),
    schedule.load_schedule: ("contracts/schedule.yaml", ()),
    faults.load_faults: ("monitoring/faults.yaml", ()),
    declarations.load_topics: ("compose/kafka/topics.yaml", ()),
    declarations.load_buckets: ("compose/object-store/buckets.yaml", ()),
    declarations.load_databases: ("compose/postgres/databases.yaml", ()),
    declarations.load_subjects: ("compose/registry/subjects.yaml", ()),
    rules.load_rules: ("quality/rules/all_games.yaml", ()),
}
RULES = Path("quality/rules/all_games.yaml").read_bytes()
EXTREMES = {
    "nothing": b"",
    "another encoding": RULES + "# f\u00fcr alle".encode("latin-1"),
    "two bytes a character": RULES.decode().encode("utf-16"),
    "a control character": RULES + b"# \x07",
    "a list as a key": b"? [a, b]\n: c\n",
    "a day that does not exist": b"rules:\n  - name: 2026-02-30\n",
    "deep nesting": b"[" * 2000 + b"]" * 2000,
    "an alias of itself": b"rules: &a [*a]\n",
    "aliases that double": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (n, n, n - 1, n - 1) for n in range(98, 123)),
    "two documents": RULES + b"---\n" + RULES,
    "a tag of another type": b"rules: !!int abc\n",
    "a merge of a number": b"<<: 5\n",
    "a tag of Python": b"rules: !!python/object/apply:os.getcwd []\n",
    "a huge number": b"rules: 1" + b"0" * 10_000,
    "a huge file": b"#" * (5 * 2**20),
    "bytes and sets": b"rules: [!!binary aGk=, !!set {a, b}, !!timestamp 2026-01-01]\n",
}


def refused_or_read(load: Callable[..., Any], path: Path) -> str:
    """Why a file is refused, with its name and a line; empty if it is read."""
    given_path = path.parent if load is rules.load_rules else path
    try:
        load(given_path, *LOADERS[load][1])
    except ContractError as error:
        refusal = str(error)
    else:
        return ""
    assert re.search(rf"{re.escape(path.name)}:\d+: .", refusal), refusal
    return refusal


# What can stand for a value, a key or a line.
_VALUES = (
    b"", b"~", b"[]", b"{}", b"-1", b"0x7fffffffffffffffff", b"1e999", b".nan", b"2026-02-30", b"12:61:61", b"no",
    b"*missing", b"&a [*a]", b"!!binary aGk=", b"!!set {a, b}", b"!!python/name:os.system", b"'", b'"\\u0000"',
    b"? [a]",
    b"<<: *a", b"- ", b"\t", b"#", b"%TAG ! x", b"---", b"...", b"|", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"'; drop table x; --", b"(" * 3_000, b"a." * 3_000, b"not " * 3_000, b"x" * 70_000, "\u202e\U0001f600".encode(),
)  # fmt: skip
_SOME = st.one_of(
    st.sampled_from(range(len(_VALUES))).map(_VALUES.__getitem__),
    st.binary(max_size=8),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")),
)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file's content with any bytes, lines, values or keys changed, or in another encoding."""
    if draw(st.integers(0, 9)) == 0:
        return EXTREMES[draw(st.sampled_from(list(EXTREMES)))]
    for _ in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from((_with_bytes, _with_lines, _with_value)))(draw, content)
    return content


def _with_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, min(len(content), start + 40)))
    return content[:start] + draw(_SOME) + content[end:]


def _with_lines(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.split(b"\n")
    at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    line = draw(
        st.sampled_from([b"", lines[at] + b"\n" + lines[at], b"  " + lines[at], lines[other], lines[at].strip()])
    )
    return b"\n".join([*lines[:at], line, *lines[at + 1 :]])


def _with_value(draw: st.DrawFn, content: bytes) -> bytes:
    """Another value of a key, or another key of a value."""
    lines = content.split(b"\n")
    with_keys = [number for number, line in enumerate(lines) if b": " in line and not line.lstrip().startswith(b"#")]
    if not with_keys:
        return content
    at = draw(st.sampled_from(with_keys))
    key, _, value = lines[at].partition(b": ")
    space = key[: len(key) - len(key.lstrip(b" -"))]
    lines[at] = draw(st.sampled_from([key + b": " + draw(_SOME), space + draw(_SOME) + b": " + value]))
    return b"\n".join(lines)
