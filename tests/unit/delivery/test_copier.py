"""The delivery service's files and its memory before the first record."""

import subprocess
import sys

import zstandard

from gamelake.schemas import framing
from services.delivery import copier
from services.delivery.copier import PartitionFile


def test_the_header_is_the_framings() -> None:
    assert (copier.MAGIC, copier.HEADER_BYTES) == (framing.MAGIC, framing.HEADER_BYTES)


def test_a_file_has_the_records_bodies_with_their_lengths() -> None:
    file = PartitionFile(0, 7, 0, 0.0)

    file.add(7, framing.frame_header(1) + b"x" * 300)
    file.add(8, None)
    file.add(9, b"no frame")

    assert (file.events, file.skipped, file.next_offset, file.decompressed) == (1, 2, 10, 302)
    content = zstandard.ZstdDecompressor().decompressobj().decompress(file.finish())
    assert content == b"\xac\x02" + b"x" * 300


def test_the_service_imports_no_arrow_which_would_take_half_of_its_memory() -> None:
    check = "import sys, services.delivery.__main__ as _; print({'pyarrow', 'pandas', 'duckdb'} & sys.modules.keys())"

    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "set()"
