"""stub."""
from pathlib import Path
from benchmarks.results import Results
def write_report(results: Results, docs: Path) -> None:
    """Stub."""
