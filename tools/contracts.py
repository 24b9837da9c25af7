"""Checks what contracts, rules, views and questions declare: prints each error with its file and line.

`make lint` and `gamelake check` run it. `--write` writes what is generated from contracts/metrics.yaml and the games'
time zones: the macros of the dbt project.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gamelake.command import command_parser
from gamelake.contract.access import load_access
from gamelake.contract.experiments import EXPERIMENTS_FILE, load_experiments
from gamelake.contract.games import load_games
from gamelake.contract.located_yaml import load_located, raise_first
from gamelake.contract.metrics import METRICS_FILE, load_metrics
from gamelake.contract.money import load_money
from gamelake.contract.schedule import load_schedule
from gamelake.model.errors import ContractError, GamelakeError
from gamelake.observability.faults import load_faults
from gamelake.program import FAILED, OK, run
from gamelake.quality.rules import load_rules
from gamelake.schemas.event_schemas import load_schemas, newest_submitted
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.money.rates import read_rates
from gamelake.serving.players.contract import SEGMENTS_FILE, load_segments
from gamelake.serving.sql.questions import load_questions
from gamelake.serving.sql.views import load_views
from gamelake.streaming.message_mapping import load_event_contract
from services.provision import declarations

REPOSITORY = Path(__file__).parents[1]
MACROS = Path("sql/dbt/macros/metrics.sql")
_MACRO = """\
{{%- macro {kind}(name) -%}}
{{%- set sql = {{
{entries}
}} -%}}
{{{{ sql.get(name) or exceptions.raise_compiler_error(name ~ " is not in contracts/metrics.yaml") }}}}
{{%- endmacro -%}}
"""
_DAY_MACRO = """\
{{%- macro ReportingDate() -%}}
{sql}
{{%- endmacro -%}}
"""


def problems(root: Path, *, contracts_only: bool = False) -> Iterator[str]:
    """Yield all problems of the declarations of a repository, each with file and line.

    Args:
        root: the repository.
        contracts_only: check only what the gateway and the jobs read at their start.
    """
    contracts = _contract_checks(root / "contracts")
    for check in contracts if contracts_only else (*contracts, *_checks(root)):
        try:
            check()
        except GamelakeError as error:
            yield str(error)


def dbt_macros(contracts: Path) -> str:
    """Return the macros `Metric`, `Dimension` and `ReportingDate` of dbt: the same SQL and names as in views.

    Raises:
        ContractError: the metrics contract or the games contract is wrong; names file and line.
    """
    terms = load_metrics(contracts / METRICS_FILE).terms
    macros = ["{#- Of contracts/metrics.yaml and games.yaml, by `python -m tools.contracts --write`. -#}\n"]
    for kind in ("Metric", "Dimension"):
        named = {
            term.removeprefix(f"{kind}('").removesuffix("')"): terms[term].sql
            for term in terms
            if term.startswith(kind)
        }
        entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(sql)}" for name, sql in named.items())
        macros.append(_MACRO.format(kind=kind, entries=entries))
    zones = load_games(contracts / "games.yaml").zones
    return "".join([*macros, _DAY_MACRO.format(sql=zones.trino_sql("event_time", in_utc="event_date"))])


def _contract_checks(contracts: Path) -> Iterator[Callable[[], object]]:
    yield partial(load_gold, contracts / "games.yaml")
    yield partial(load_event_contract, contracts / "games.yaml")
    yield lambda: load_schemas(contracts, newest_submitted(contracts).version)


def _checks(root: Path) -> Iterator[Callable[[], object]]:
    contracts, compose = root / "contracts", root / "compose"
    games = contracts / "games.yaml"
    yield lambda: load_access(contracts / "access.yaml", load_games(games))
    yield partial(load_money, contracts / "money.yaml")
    yield partial(_check_rates, contracts / "rates.csv")
    yield lambda: load_experiments(
        contracts / EXPERIMENTS_FILE, load_games(games), load_metrics(contracts / METRICS_FILE)
    )
    yield lambda: load_segments(contracts / SEGMENTS_FILE, load_games(games))
    yield partial(load_schedule, contracts / "schedule.yaml")
    yield partial(load_schedule, contracts / "validation_schedule.yaml")
    yield partial(load_rules, root / "quality/rules")
    yield partial(load_views, root / "sql/views", games)
    yield partial(_check_view_names, root)
    yield partial(load_questions, root / "sql/questions")
    yield partial(_check_macros, root)
    yield partial(load_faults, root / "monitoring/faults.yaml")
    yield partial(declarations.load_topics, compose / "kafka/topics.yaml")
    yield partial(declarations.load_buckets, compose / "object-store/buckets.yaml")
    yield partial(declarations.load_databases, compose / "postgres/databases.yaml")
    yield partial(declarations.load_subjects, compose / "registry/subjects.yaml")


def _check_rates(file: Path) -> None:
    with file.open(encoding="utf-8") as lines:
        read_rates(lines, str(file))


def _check_view_names(root: Path) -> None:
    """Require that no table has the name of a view: in Trino one name is one of them."""
    games_file = root / "contracts/games.yaml"
    contract = load_games(games_file)
    views = {view.name.replace(".", "/", 1) for view in load_views(root / "sql/views", games_file)}
    tables = {f"$.games[{index}].name": {game.table} for index, game in enumerate(contract.games)}
    for index, aggregate in enumerate(contract.aggregates):
        tables[f"$.aggregates[{index}].name"] = {aggregate.table(game.name) for game in contract.games}
    taken = [
        (place, f"the table {table} would have the name of a view of sql/views; rename one")
        for place, names in tables.items()
        for table in sorted(names & views)
    ]
    raise_first(taken, load_located(games_file))


def _check_macros(root: Path) -> None:
    file = root / MACROS
    if not file.exists() or file.read_text(encoding="utf-8") != dbt_macros(root / "contracts"):
        raise ContractError(
            f"{file}:1: is not what {METRICS_FILE} and the games' zones mean: run 'python -m tools.contracts --write'"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong, or write what is generated."""
    parser = command_parser(__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {MACROS}")
    parser.add_argument("--contracts-only", action="store_true", help="check only what programs read at their start")
    options = parser.parse_args(arguments)
    if options.write:
        (REPOSITORY / MACROS).write_text(dbt_macros(REPOSITORY / "contracts"), encoding="utf-8")
        return OK
    # One broken file is named once, however many checks read it.
    found = list(dict.fromkeys(problems(REPOSITORY, contracts_only=options.contracts_only)))
    for problem in found:
        print(problem, file=sys.stderr)
    return FAILED if found else OK


if __name__ == "__main__":
    run(main, is_command=True)
