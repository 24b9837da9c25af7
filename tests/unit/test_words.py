"""Code, documents, metrics and messages use the field's terms: a reader who knows Kafka, Spark and Delta knows ours.

`AVOID` holds the words of an older vocabulary, each with what to write in its place.
"""

import re
import subprocess
from pathlib import Path

import pytest

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
# Names that are stored or belong to others: users, secrets and paths of stacks and lakehouses that exist, file names of
# decision pages, keys of records on disk and of results, and ordinary English.
_KEPT = re.compile(
    r"(?:kafka|object-store)-upkeep|_gamelake/upkeep|upkeep/lease|`upkeep/`|upkeep\.json|User:upkeep|decisions/\d{4}[\w-]+"
    r"|(?:object_store|kafka)_users=.*|observers: \[upkeep\]|writers: \[object-store, upkeep\]|(?:name|policy): upkeep"
    r"|\"upkeep\"|TidyHistory|TidyTheStreamsOwnState|TidyItsTables|KeepTheKpiQuerysStateAndTidyItsTables"
    r"|packed_(?:files|bytes)|tidied_files|fan_out_30_beside_packing|front_door|\"elsewhere\"|/elsewhere"
    r"|DELTA_BINARY_PACKED|packed = true|\.unpacked|[Uu]npacked"
    r"|well known|well formed|well_formed|runs as nobody|\"nobody\""
    r"|first minute of what was looked at|in the minutes that were looked at"
)
# Decision pages and the changelog are history; licences, results and this file are no prose of ours.
_SKIPPED = ("docs/decisions/", "CHANGELOG.md", "LICENSE", "tests/unit/test_words.py", "benchmarks/results/")
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
    "line", ["def is_told(): ...", "class FrontDoor:", "# nobody looks at it", "gamelake_upkeep_runs"]
)
def test_a_word_of_the_list_is_found_in_an_identifier_too(line: str) -> None:
    assert _found("x.py", line) != []


@pytest.mark.parametrize("line", ["secrets: [kafka-upkeep]", "the notebooks", "indoors", "it is well known"])
def test_stored_names_and_other_words_are_not_found(line: str) -> None:
    assert _found("x.py", line) == []
