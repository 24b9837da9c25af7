"""Code, documents, metrics and messages use the field's terms: a reader who knows Kafka, Spark and Delta knows ours.

`AVOID` holds the words of an older vocabulary, each with what to write in its place;
`constructions.py` does the same for sentences.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.prose import Passage, passages
from tests.unit.constructions import CONSTRUCTIONS, Construction

REPOSITORY = Path(__file__).resolve().parents[2]

AVOID = {
    r"bookkeeping|books": "reconciliation",
    r"upkeep|upkept": "maintenance",
    r"tidy|tidies|tidied|tidying": "log cleanup, remove",
    r"looks at|looked at|look at|last look": "poll, refresh, read",
    r"told|tells": "report, notify, emit, describe",
    r"beside": "concurrent, next to, with",
    r"siblings?": "concurrent stream",
    r"elsewhere": "in another source, in another place",
    r"twins?": "duplicates across sources",
    r"both ways in": "all sources",
    r"whoever|nobody|somebody|anybody": "the process, the service, no client",
    r"front doors?": "ingest gateway",
    r"needles?": "search terms",
    r"packed|repacked|unpacked|packing": "compacted, encoded, decompressed",
    r"set back|brought back|put right|puts right|putting right": "restored, replayed, corrected",
    r"mend|mends|mended|mending": "repair",
    r"set aside|sets aside": "dead-lettered, quarantined",
    r"happenings?": "events",
    r"at a desk|desks?": "locally",
    r"keeps? it up|is well": "runs continuously, is healthy",
    r"superfluous|strangers?|belongings|parcels?|outlooks?": "unreferenced, unknown, batch, plan",
    r"unobserved|unruled": "no-op",
}
_WORDS = {re.compile(rf"(?<![a-z])(?:{words})(?![a-z])"): instead for words, instead in AVOID.items()}
_ANY = re.compile(rf"(?<![a-z])(?:{'|'.join(AVOID)})(?![a-z])")
# Names that belong to others, file names of decision pages, keys of results, and ordinary English.
_KEPT = re.compile(
    r"decisions/\d{4}[\w-]+|\]\(\d{4}-[\w-]+\.md|TidyHistory|TidyTheStreamsOwnState"
    r"|packed_(?:files|bytes)|tidied_files|fan_out_30_beside_packing|\"elsewhere\"|/elsewhere"
    r"|DELTA_BINARY_PACKED|packed = true|\.unpacked|[Uu]npacked"
    r"|well known|well formed|well_formed|runs as nobody|\"nobody\""
    r"|in the minutes that were looked at"
)
# Licences, results, generated pages and the patterns themselves are not our prose.
_SKIPPED = (*("LICENSE", "benchmarks/results/"), *("tests/unit/test_words.py", "tests/unit/constructions.py"))
_PROSE = frozenset({".py", ".md", ".yaml", ".yml", ".sh", ".sql", ".toml", ".proto", ".java", ".rs"})
_TEXT = frozenset(
    {".py", ".md", ".yaml", ".yml", ".sh", ".sql", ".toml", ".proto", ".java", ".xml", ".json", ".ipynb", ""}
)


def _files() -> list[str]:
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        name
        for name in listed
        if not name.startswith(_SKIPPED) and Path(name).suffix in _TEXT and (REPOSITORY / name).is_file()
    ]


def _plain(line: str) -> str:
    """A line with its identifiers as words, in lower case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", _KEPT.sub("", line)).lower()


def _found(name: str, text: str) -> list[str]:
    lines = [(number, _plain(line)) for number, line in enumerate(text.splitlines(), start=1)]
    return [
        f"{name}:{number}: '{match[0]}'; write {instead}"
        for number, line in lines
        if _ANY.search(line)
        for word, instead in _WORDS.items()
        for match in word.finditer(line)
    ]


def test_code_and_documents_use_the_terms_of_the_field() -> None:
    found = [line for name in _files() for line in _found(name, (REPOSITORY / name).read_text(encoding="utf-8"))]

    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "def is_told(): ...",
        "class FrontDoor:",
        "# nobody looks at it",
        "gamelake_upkeep_runs",
        "secrets: [kafka-upkeep]",
    ],
)
def test_a_word_of_the_list_is_found_in_an_identifier_too(line: str) -> None:
    assert _found("x.py", line) != []


@pytest.mark.parametrize("line", ["the notebooks", "indoors", "it is well known"])
def test_stored_names_and_other_words_are_not_found(line: str) -> None:
    assert _found("x.py", line) == []


def _constructions(name: str, text: str) -> list[str]:
    return [
        f"{name}:{passage.line(found.start())}: '{found[0].strip()}'; write {construction.instead}"
        for passage in passages(Path(name).suffix, text)
        for construction in CONSTRUCTIONS
        for found in construction.search(passage)
    ]


def test_sentences_are_built_as_a_native_engineer_builds_them() -> None:
    names = [name for name in _files() if Path(name).suffix in _PROSE]
    found = [line for name in names for line in _constructions(name, (REPOSITORY / name).read_text(encoding="utf-8"))]

    assert found == []


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=lambda construction: construction.found)
def test_a_construction_finds_its_example_and_not_plain_english(construction: Construction) -> None:
    assert list(construction.search(_sentence(construction.found)))
    assert not list(construction.search(_sentence(construction.kept)))


def _sentence(text: str) -> Passage:
    return Passage(text, starts=(0,), lines=(1,), docstring=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.py", 'def f():\n    """Read it.\n\n    It goes\n    on."""'),
        ("x.py", "x = 1\n# The job\n# goes on.\n"),
        ("x.py", "raise Error(\n    f'{name} goes '\n    'on')\n"),
        ("x.md", "# Title\n\nA table\ngoes on with `x`.\n"),
        ("x.yaml", "alert: A\nsummary: the job\n  goes on\n"),
        ("x.sh", 'x=1\necho "the job goes on"\n'),
        ("x.java", "int x;\n\n// It goes on.\n"),
    ],
)
def test_a_construction_is_found_across_wrapped_lines(name: str, text: str) -> None:
    (found,) = _constructions(name, text)

    assert found.startswith(f"{name}:{text[: text.index('goes')].count(chr(10)) + 1}: 'goes on'")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.py", "goes, on = 1, 2\n"),
        ("x.md", "```sh\nit goes on\n```\n"),
        ("x.md", "The command `goes on`.\n"),
        ("x.yaml", "goes: 1\non: 2\n"),
    ],
)
def test_code_is_not_prose(name: str, text: str) -> None:
    assert _constructions(name, text) == []
