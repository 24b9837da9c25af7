"""Compiles metrics of contracts/metrics.yaml with MetricFlow, in the environment of the engines that users bring.

`python tests/support/metricflow_sql.py FILE METRIC...` writes a JSON object with one statement for each engine that the
platform also has; the statements compute the metrics by day and game. If MetricFlow's validation fails, the program
ends with exit code 1. It imports nothing of the platform, because this environment lacks the platform's packages.
"""

import json
import sys
from pathlib import Path

import yaml
from metricflow.engine.metricflow_engine import MetricFlowEngine, MetricFlowQueryRequest
from metricflow.protocols.sql_client import SqlEngine
from metricflow.sql.render.duckdb_renderer import DuckDbSqlPlanRenderer
from metricflow.sql.render.sql_plan_renderer import SqlPlanRenderer
from metricflow.sql.render.trino import TrinoSqlPlanRenderer
from metricflow_semantic_interfaces.parsing.dir_to_model import parse_yaml_files_to_validation_ready_semantic_manifest
from metricflow_semantic_interfaces.parsing.objects import YamlConfigFile
from metricflow_semantic_interfaces.validations.semantic_manifest_validator import SemanticManifestValidator
from metricflow_semantics.model.semantic_manifest_lookup import SemanticManifestLookup

RENDERERS = {SqlEngine.DUCKDB: DuckDbSqlPlanRenderer(), SqlEngine.TRINO: TrinoSqlPlanRenderer()}
# Windows of days would be counted along such a table; nothing here has one.
TIME_SPINE: dict[str, object] = {
    "project_configuration": {
        "time_spines": [
            {
                "node_relation": {"schema_name": "gold", "alias": "days"},
                "primary_column": {"name": "day", "time_granularity": "day"},
            }
        ]
    }
}


class Client:
    """What MetricFlow asks of a database before it runs anything."""

    def __init__(self, engine: SqlEngine, renderer: SqlPlanRenderer) -> None:
        self.sql_engine_type = engine
        self.sql_plan_renderer = renderer


def documents(path: Path) -> str:
    """The file as MetricFlow's parser takes it: a document for each model and metric."""
    declared = yaml.safe_load(path.read_text(encoding="utf-8"))
    found: list[dict[str, object]] = [TIME_SPINE]
    for model in declared["semantic_models"]:
        schema, _, alias = model.pop("model").partition(".")
        found.append({"semantic_model": {**model, "node_relation": {"schema_name": schema, "alias": alias}}})
    for metric in declared["metrics"]:
        parameters = metric["type_params"]
        # dbt takes a name where MetricFlow wants a mapping.
        metric["type_params"] = {
            key: {"name": name} if key in {"numerator", "denominator"} else name for key, name in parameters.items()
        }
        found.append({"metric": metric})
    return yaml.safe_dump_all(found)


def main() -> None:
    """Validate the file, and write what its metrics compile to."""
    path, *metrics = sys.argv[1:]
    parsed = parse_yaml_files_to_validation_ready_semantic_manifest(
        [YamlConfigFile(filepath=path, contents=documents(Path(path)))], raise_issues_as_exceptions=False
    )
    issues = [*parsed.issues.all_issues]
    if not issues:
        issues = [*SemanticManifestValidator().validate_semantic_manifest(parsed.semantic_manifest).all_issues]
    if issues:
        sys.exit("\n".join(issue.message for issue in issues))
    lookup = SemanticManifestLookup(parsed.semantic_manifest)
    request = MetricFlowQueryRequest.create(
        metric_names=metrics, group_by_names=["metric_time__day", "event__game_name"]
    )
    compiled = {
        engine.value: MetricFlowEngine(lookup, Client(engine, renderer)).explain(request).sql_statement.sql
        for engine, renderer in RENDERERS.items()
    }
    sys.stdout.write(json.dumps(compiled))


if __name__ == "__main__":
    main()
