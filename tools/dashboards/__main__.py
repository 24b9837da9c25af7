"""Writes Superset's dashboards: `python -m tools.dashboards --check|--write`.

They are generated from contracts/metrics.yaml, the tables of gold, the views and `tools/dashboards/pages.py`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gamelake.command import command_parser
from gamelake.model.errors import ContractError
from gamelake.program import OK, run
from tools.dashboards.assets import Assets
from tools.dashboards.datasets import declared
from tools.dashboards.pages import DATASETS, PAGES

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "compose/superset/assets"


def generate(root: Path = REPOSITORY) -> Mapping[str, str]:
    """Return the text of each file, by its path in the folder.

    Raises:
        ContractError: a chart names a table, column or metric that does not exist.
    """
    tables = declared(root / "contracts", root / "sql/views")
    datasets = {table: tables.dataset(table, wanted) for table, wanted in DATASETS.items()}
    return Assets(datasets, PAGES).files()


def written(folder: Path) -> Mapping[str, str]:
    """Return the text of each file in a folder, by its path there."""
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.yaml"))}


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write the files, and remove the others."""
    for path in written(folder).keys() - files.keys():
        (folder / path).unlink()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or compare them with the folder."""
    parser = command_parser(__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail if a file differs from the generated one")
    action.add_argument("--write", action="store_true", help="write the files")
    options = parser.parse_args(arguments)
    files = generate()
    if options.write:
        write(files, FOLDER)
    elif written(FOLDER) != files:
        raise ContractError(f"{FOLDER} differs from the generated files: run 'python -m tools.dashboards --write'")
    return OK


if __name__ == "__main__":
    run(main, is_command=True)
