"""The scan finds planted terms in each kind of place and each encoding, and prints places, never terms."""

import base64
import gzip
import json
import os
import sqlite3
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelake.model.errors import SettingsError
from gamelake.privacy.scan import Scan, Scanner, UnreadableError, decompressed
from gamelake.scans.search_terms import Hit, SearchTerms, TermEncoding
from tests.unit.privacy.privacy_jobs import PrivacyJobs

SECRET = "anna+archer@example.org"  # noqa: S105 # not a password
OTHER = "Änne from the woods"


def scanned(path: Path, *secrets: str) -> Scan:
    scanner = Scanner(SearchTerms(secrets or (OTHER, SECRET)))
    scanner.folder(path)
    return scanner.scan


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (TermEncoding.UTF_8, SECRET.encode()),
        (TermEncoding.UTF_16, SECRET.encode("utf-16-le")),
        (TermEncoding.UTF_16, SECRET.encode("utf-16-be")),
        (TermEncoding.HEXADECIMAL, SECRET.encode().hex().encode()),
        (TermEncoding.HEXADECIMAL, SECRET.encode().hex().upper().encode()),
        *((TermEncoding.BASE64, base64.b64encode(bytes(k) + SECRET.encode() + b"after")) for k in range(7)),
        *((TermEncoding.BASE64, base64.urlsafe_b64encode(bytes(k) + SECRET.encode())) for k in range(3)),
        (TermEncoding.PERCENT, b"anna%2Barcher%40example.org"),
    ],
)
def test_a_text_is_found_in_each_form(form: TermEncoding, written: bytes) -> None:
    terms = SearchTerms([OTHER, SECRET])

    assert terms.in_bytes(os.urandom(999) + written + os.urandom(7)) == {Hit(2, form)}


def test_a_text_is_found_behind_the_escapes_of_json() -> None:
    assert SearchTerms([SECRET, OTHER]).in_bytes(json.dumps({"name": OTHER}).encode()) == {Hit(2, TermEncoding.JSON)}


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_a_text_is_found_wherever_it_stands_also_across_parts(size: int) -> None:
    terms = SearchTerms([SECRET])
    for place in (0, 1, 500, 977):
        data = bytes(place) + SECRET.encode() + bytes(1000 - place)
        assert terms.in_stream(data[at : at + size] for at in range(0, len(data), size)) == {Hit(1, TermEncoding.UTF_8)}


def test_a_text_on_the_seam_of_two_blocks_is_found() -> None:
    for place in range((1 << 20) - 30, (1 << 20) + 2):
        assert SearchTerms([SECRET]).in_bytes(bytes(place) + SECRET.encode()) == {Hit(1, TermEncoding.UTF_8)}


def test_a_text_that_differs_in_its_last_character_is_not_found() -> None:
    assert SearchTerms([SECRET]).in_bytes(SECRET[:-1].encode() + b"h") == set()


def test_ten_thousand_terms_are_searched_at_once() -> None:
    texts = [f"secret-{number:05d}-{base64.b32encode(os.urandom(10)).decode()}" for number in range(10_000)]
    terms = SearchTerms(texts)
    data = os.urandom(4 << 20) + texts[4711].encode()

    started = time.process_time()
    found = terms.in_bytes(data)

    assert found == {Hit(4712, TermEncoding.UTF_8)}
    assert time.process_time() - started < 2, "under 2 MiB/s: each text costs a pass of its own"


@pytest.mark.parametrize("texts", [[], ["short"], [SECRET, "x"]])
def test_terms_that_would_be_found_anywhere_are_rejected(texts: list[str]) -> None:
    with pytest.raises(SettingsError):
        SearchTerms(texts)


def plant_parquet(file: Path) -> None:
    nested = pa.array([{"texts": [SECRET]}, None], pa.struct([("texts", pa.list_(pa.string()))]))
    pq.write_table(pa.table({"n": nested, "i": [1, 2]}), file, compression="zstd", write_statistics=False)


def plant_map(file: Path) -> None:
    attributes = pa.array([[("k", SECRET)]], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"m": attributes}), file, compression="gzip", write_statistics=False)


def plant_binary(file: Path) -> None:
    table = pa.table({"value": [b"\x00" + SECRET.encode()], "d": pa.array(["x"]).dictionary_encode()})
    pq.write_table(table, file, compression="zstd", write_statistics=False)


def plant_manifest(file: Path) -> None:
    file.write_bytes(pa.compress(json.dumps({"least": SECRET}).encode(), "zstd", asbytes=True))


def plant_old_log(file: Path) -> None:
    file.write_bytes(gzip.compress(b"INFO all is good\nWARNING " + SECRET.encode()))


def plant_log(file: Path) -> None:
    file.write_bytes(os.urandom(5_000_000) + SECRET.encode())


def plant_database(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE players (name TEXT, data BLOB)")
        # On a page of its own, and then across pages.
        database.execute("INSERT INTO players VALUES (?, ?)", ("x" * 4000, b"y" * 4070 + SECRET.encode() + b"z" * 9000))
    database.close()


PLANTED = (plant_parquet, plant_map, plant_binary, plant_manifest, plant_old_log, plant_log, plant_database)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_is_planted_is_found(tmp_path: Path, plant: object) -> None:
    assert callable(plant)
    plant(tmp_path / "file")

    scan = scanned(tmp_path)

    assert {found.term for found in scan.found} == {2}
    assert (scan.files, scan.unscanned) == (1, [])
    assert plant is plant_log or any(found.place.endswith("decompressed") for found in scan.found)
    assert SECRET not in repr(scan)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_where_nothing_is_planted_nothing_is_found(tmp_path: Path, plant: object) -> None:
    assert callable(plant)
    plant(tmp_path / "file")

    scan = scanned(tmp_path, OTHER)

    assert (scan.found, scan.unscanned) == ([], [])


def test_a_files_name_is_scanned_and_not_printed(tmp_path: Path) -> None:
    (tmp_path / SECRET).write_bytes(b"nothing")

    scan = scanned(tmp_path)

    assert scan.findings == 1
    assert SECRET not in repr(scan)


def test_what_can_not_be_decompressed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + os.urandom(100))

    assert scanned(tmp_path).unscanned == [f"{tmp_path}/broken.parquet: ArrowInvalid"]
    with pytest.raises(UnreadableError):
        list(decompressed(b"\x1f\x8b" + os.urandom(50)))


def test_the_job_says_where_it_stands_by_its_number_and_ends_with_one(tmp_path: Path) -> None:
    jobs = PrivacyJobs.furnish(tmp_path)
    plant_manifest(tmp_path / "manifest.json.zst")
    (tmp_path / "lake").mkdir()

    ends = [
        jobs.run(
            "--lakehouse", str(tmp_path / "manifest.json.zst"), job="prove_erasure", reported=f"{OTHER}\n{SECRET}\n"
        ),
        jobs.run("--lakehouse", str(tmp_path / "nowhere"), job="prove_erasure", reported=SECRET),
    ]

    assert [end.returncode for end in ends] == [1, 2]
    assert {each["term"] for each in json.loads(ends[0].stdout)["found"]} == {2}
    assert all(SECRET not in end.stdout + end.stderr for end in ends)
