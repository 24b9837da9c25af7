"""What Helm renders is valid for the Kubernetes API, is locked down, and alerts as the stack does."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from jsonschema import Draft7Validator

from gamelake.contract.schedule import parse_cadence
from monitoring.addresses import RUNBOOKS
from tests.unit.chart.conftest import assembled
from tests.unit.chart.rendering import (
    EXAMPLES,
    HELM,
    NAMESPACE,
    REPOSITORY,
    containers,
    helm,
    of_kind,
    rendered,
    template,
)


@pytest.fixture(autouse=True, scope="module")
def helm_is_there(missing_service: Callable[[str], NoReturn]) -> None:
    if not HELM:
        missing_service("helm is missing; make chart-check builds it")


SCHEMAS = Path(__file__).parent / "schemas"
# Everything that is off by default.
ALL_ON = (
    "trial.enabled=true",
    "monitoring.serviceMonitors=true",
    "monitoring.rules=true",
    "monitoring.dashboards=true",
    "gateway.autoscaling.enabled=true",
    "gateway.ingress.enabled=true",
    "gateway.ingress.host=events.example.com",
    "gateway.ingress.tlsSecret=ingress-tls",
    "gateway.certificateSecret=gateway-tls",
    "metricsTls.secret=metrics-tls",
    "trust.secret=authorities",
    "monitoring.prometheusSecret=prometheus-tls",
    "imagePullSecrets={pull}",
    "drivers.gold.executors.max=2",
    "portal.enabled=true",
    "portal.prometheusUrl=https://prometheus.monitoring:9090",
    "portal.certificateSecret=portal-tls",
    "portal.ingress.enabled=true",
    "portal.ingress.host=gamelake.example.com",
    "portal.ingress.tlsSecret=ingress-tls",
    "portal.links.Grafana=https://grafana.example.com",
)
# The portal without a certificate.
PORTAL = "portal.enabled=true,portal.prometheusUrl=http://prometheus.monitoring:9090"
MIXES: dict[str, tuple[str, ...]] = {
    "defaults": (),
    **{each.stem: ("--values", str(each)) for each in EXAMPLES},
    "all": ("--set", ",".join(ALL_ON)),
    "portal": ("--set", PORTAL),
}
mixes = pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)


def _strict(schema: Any) -> Any:  # noqa: ANN401 # JSON
    """A schema that refuses unknown fields, as `kubectl apply` does."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(each) for name, each in schema.items()}
    if isinstance(strict.get("properties"), dict) and "additionalProperties" not in strict:
        strict["additionalProperties"] = False
    if strict.get("format") == "int-or-string" or strict.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    return strict


def _quantities(definitions: dict[str, Any]) -> dict[str, Any]:
    """Kubernetes' schema has quantities as strings; its API takes numbers too."""
    changed = deepcopy(definitions)
    changed["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    return changed


@cache
def _validators() -> Callable[[str, str], Draft7Validator]:
    definitions = _strict(_quantities(json.loads((SCHEMAS / "kubernetes.json").read_text(encoding="utf-8"))))
    operator = _strict(json.loads((SCHEMAS / "prometheus-operator.json").read_text(encoding="utf-8")))

    def validator(api_version: str, kind: str) -> Draft7Validator:
        if api_version == "monitoring.coreos.com/v1":
            schema = deepcopy(operator[kind])
            schema["properties"]["metadata"] = {"type": "object"}
            return Draft7Validator(schema)
        group, _, version = api_version.rpartition("/")
        name = f"io.k8s.api.{(group or 'core').split('.')[0]}.{version}.{kind}"
        return Draft7Validator({"$ref": f"#/definitions/{name}", "definitions": definitions})

    return cache(validator)


def _problems(each: dict[str, Any]) -> list[str]:
    name = f"{each['kind']}/{each['metadata']['name']}"
    errors = _validators()(each["apiVersion"], each["kind"]).iter_errors(each)
    return [f"{name} {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in errors]


@mixes
def test_every_object_is_valid_for_the_api(chart: Path, mix: tuple[str, ...]) -> None:
    objects = rendered(chart, *mix)

    assert [problem for each in objects for problem in _problems(each)] == []
    assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects)


def test_the_pod_of_an_executor_is_valid_too(chart: Path) -> None:
    maps = of_kind(rendered(chart, *MIXES["all"]), "ConfigMap").values()
    pods = [yaml.safe_load(each["data"]["executor.yaml"]) for each in maps if "executor.yaml" in each["data"]]

    assert len(pods) == 3
    for pod in pods:
        # Spark gives it its name and its image.
        assert _problems({**pod, "metadata": {**pod["metadata"], "name": "executor"}}) == []


def test_a_field_that_the_api_lacks_is_found() -> None:
    assert _problems({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"port": 1}}) == [
        "Service/a spec: Additional properties are not allowed ('port' was unexpected)"
    ]


@mixes
def test_every_container_is_limited_locked_down_and_watched(chart: Path, mix: tuple[str, ...]) -> None:
    found = list(containers(rendered(chart, *mix)))

    assert found
    for each in found:
        assert len({volume["name"] for volume in each.pod_spec["volumes"]}) == len(each.pod_spec["volumes"]), each.pod
        security = {**each.pod_spec["securityContext"], **each.raw["securityContext"]}
        assert security["runAsNonRoot"], each.pod
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, each.pod
        assert security["readOnlyRootFilesystem"], each.pod
        assert not security["allowPrivilegeEscalation"], each.pod
        assert security["capabilities"] == {"drop": ["ALL"]}, each.pod
        assert {"limits"} <= each.raw["resources"].keys(), each.pod
        if not each.is_task:
            assert each.raw["resources"]["limits"]["memory"], each.pod
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= each.raw.keys(), each.pod


@mixes
def test_only_drivers_with_executors_have_a_token_of_the_api_and_rights_to_pods_alone(
    chart: Path, mix: tuple[str, ...]
) -> None:
    objects = rendered(chart, *mix)
    with_token = {each.pod for each in containers(objects) if each.pod_spec["automountServiceAccountToken"]}
    roles, bindings = of_kind(objects, "Role"), of_kind(objects, "RoleBinding")

    assert with_token == roles.keys() == bindings.keys()
    assert of_kind(objects, "ClusterRole") == {}
    for role in roles.values():
        assert {resource for rule in role["rules"] for resource in rule["resources"]} == {"pods", "configmaps"}
        assert all(rule["apiGroups"] == [""] for rule in role["rules"])
    for name, binding in bindings.items():
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]


@mixes
def test_secrets_are_files_and_a_pod_has_no_other_pods_key(chart: Path, mix: tuple[str, ...]) -> None:
    objects = rendered(chart, *mix)
    keys: dict[str, set[str]] = {}
    for each in containers(objects):
        assert all("secretKeyRef" not in json.dumps(variable) for variable in each.raw.get("env", ()))
        sources = [volume["projected"]["sources"] for volume in each.pod_spec["volumes"] if "projected" in volume]
        keys[each.pod] = {item["key"] for source in sources for one in source for item in one["secret"]["items"]}

    assert of_kind(objects, "Secret") == {}
    assert "vault-keys" in keys["gamelake-gateway"]
    assert [pod for pod, own in keys.items() if "vault-keys" in own] == ["gamelake-gateway"]


@mixes
def test_a_pod_with_the_vault_names_the_authorities_that_its_server_is_checked_by(
    chart: Path, mix: tuple[str, ...]
) -> None:
    """Without a file, libpq connects to no server with verify-full: its default is in a home folder that no pod has."""
    variables = [each.environment for each in containers(rendered(chart, *mix)) if "GAMELAKE_VAULT" in each.environment]
    base = (REPOSITORY / "compose/base/Dockerfile").read_text(encoding="utf-8")

    assert variables
    for found in variables:
        file = found["PGSSLROOTCERT"]
        if "REQUESTS_CA_BUNDLE" in found:
            assert file == found["REQUESTS_CA_BUNDLE"]
        else:
            assert f"SSL_CERT_FILE={file}" in base, "the authorities of the image"


@mixes
def test_every_pod_is_under_a_network_policy_and_long_running_ones_under_a_disruption_budget(
    chart: Path, mix: tuple[str, ...]
) -> None:
    objects = rendered(chart, *mix)
    policies = [each["spec"]["podSelector"]["matchLabels"] for each in of_kind(objects, "NetworkPolicy").values()]
    budgets = of_kind(objects, "PodDisruptionBudget")
    trial = {"kafka", "registry", "object-store", "postgres"}

    for name, deployment in of_kind(objects, "Deployment").items():
        labels = deployment["spec"]["template"]["metadata"]["labels"].items()
        assert any(policy.items() <= labels for policy in policies), name
        assert (name in budgets) is (name not in trial)
    for name, task in of_kind(objects, "CronJob").items():
        labels = task["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"].items()
        assert any(policy.items() <= labels for policy in policies), name


def test_each_task_of_the_schedule_is_a_cron_job_of_its_time(chart: Path) -> None:
    tasks = yaml.safe_load((REPOSITORY / "contracts/schedule.yaml").read_text(encoding="utf-8"))["tasks"]
    jobs = of_kind(rendered(chart), "CronJob")
    commands = {json.dumps(each.raw["args"]): each.pod for each in containers(rendered(chart)) if each.pod in jobs}

    assert len(jobs) == len(tasks)
    for task in tasks:
        job = jobs[commands[json.dumps(["python", "-m", "jobs.maintenance", "--once", task["name"]])]]
        at = parse_cadence(task["when"]).one
        schedule, zone = job["spec"]["schedule"], job["spec"]["timeZone"]
        assert zone == "Etc/UTC"
        if task["when"].startswith(("daily", "weekly")):
            day = "*" if task["when"].startswith("daily") else str(at.isoweekday() % 7)
            assert schedule == f"{at.minute} {at.hour} * * {day}"
        else:
            assert schedule == "*/30 * * * *"


def test_a_task_that_is_left_out_has_no_cron_job(chart: Path) -> None:
    jobs = of_kind(rendered(chart, "--set", "maintenance.without={reconcile_files}"), "CronJob")

    assert "gamelake-task-compact-hot" in jobs
    assert "gamelake-task-reconcile-files" not in jobs


def test_pods_are_replaced_when_the_content_of_their_secrets_changes(chart: Path) -> None:
    """Helm upgrade looks the secrets up; here, without a cluster, their names and keys are all there is."""
    tls = "gateway.certificateSecret=gateway-tls"
    plain, with_certificate = (of_kind(rendered(chart, *options), "Deployment") for options in ((), ("--set", tls)))
    checksums = [
        {name: each["spec"]["template"]["metadata"]["annotations"]["checksum/secrets"] for name, each in found.items()}
        for found in (plain, with_certificate)
    ]

    assert {name for name, checksum in checksums[0].items() if checksums[1][name] != checksum} == {"gamelake-gateway"}


def test_the_alerts_are_those_of_the_stack(chart: Path) -> None:
    objects = rendered(
        chart,
        "--set",
        "monitoring.rules=true,monitoring.grafanaUrl=https://g.example,monitoring.runbookUrl=https://r.example/",
    )
    ours = [group for each in of_kind(objects, "PrometheusRule").values() for group in each["spec"]["groups"]]
    files = sorted((REPOSITORY / "monitoring/prometheus/rules").glob("*.yml"))
    theirs = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]

    changed = json.dumps(theirs)
    changed = changed.replace("https://127.0.0.1:3000", "https://g.example")
    changed = changed.replace(f"{RUNBOOKS}/", "https://r.example/")
    for name in ("up", "process_start_time_seconds"):
        changed = changed.replace(f"{name}{{job", f'{name}{{namespace=\\"{NAMESPACE}\\",job')
    by_name = {group["name"]: group for group in json.loads(changed)}
    assert {group["name"]: group for group in ours} == by_name
    links = [rule["annotations"]["runbook_url"] for group in ours for rule in group["rules"] if "alert" in rule]
    assert [link for link in links if not link.startswith("https://r.example/")] == []


def test_targets_are_scraped_as_in_the_stack(chart: Path) -> None:
    monitors = of_kind(rendered(chart, "--set", "monitoring.serviceMonitors=true"), "ServiceMonitor")
    scrapes = yaml.safe_load((REPOSITORY / "monitoring/prometheus/prometheus.yml").read_text(encoding="utf-8"))[
        "scrape_configs"
    ]
    by_job = {each["job_name"]: each for each in scrapes}

    jobs = set()
    for monitor in monitors.values():
        [endpoint] = monitor["spec"]["endpoints"]
        labels = {each["targetLabel"]: each["replacement"] for each in endpoint["relabelings"]}
        scrape = by_job[labels.pop("job")]
        jobs.add(scrape["job_name"])
        assert endpoint.get("interval") == scrape.get("scrape_interval")
        assert endpoint.get("honorLabels", False) == scrape.get("honor_labels", False)
        assert labels == scrape["static_configs"][0].get("labels", {})
    assert jobs == {
        "ingest", "ingest-events", "ingest-files", "serving", "live-ops", "catalog", "delivery", "audit",
        "maintenance-scheduler",
    }  # fmt: skip


def test_games_reach_one_port_of_the_gateway_and_prometheus_the_other(chart: Path) -> None:
    objects = rendered(chart, "--set", "gateway.service.type=LoadBalancer,monitoring.serviceMonitors=true")
    services = of_kind(objects, "Service")
    rules = of_kind(objects, "NetworkPolicy")["gamelake-gateway"]["spec"]["ingress"]
    [endpoint] = of_kind(objects, "ServiceMonitor")["gamelake-gateway"]["spec"]["endpoints"]

    assert [port["name"] for port in services["gamelake-gateway"]["spec"]["ports"]] == ["main"]
    assert services["gamelake-gateway-metrics"]["spec"]["clusterIP"] == "None"
    assert {(rule["ports"][0]["port"], "from" in rule) for rule in rules} == {("main", False), ("metrics", True)}
    assert endpoint["port"] == "metrics"


def test_the_dashboards_are_those_of_the_stack(chart: Path) -> None:
    maps = of_kind(rendered(chart, "--set", "monitoring.dashboards=true"), "ConfigMap").values()
    found = {
        name: text for each in maps if "dashboard" in each["metadata"]["name"] for name, text in each["data"].items()
    }

    files = (REPOSITORY / "monitoring/grafana/generated").glob("*.json")
    assert {name: json.loads(text) for name, text in found.items()} == {
        file.name: json.loads(file.read_text(encoding="utf-8")) for file in files
    }


def test_a_stream_plans_for_all_executors_that_it_may_have(chart: Path) -> None:
    objects = rendered(chart, "--set", "drivers.ingest-events.executors.max=5,drivers.ingest-events.executors.cores=3")
    settings = of_kind(objects, "ConfigMap")["gamelake-ingest-events-spark"]["data"]["spark-defaults.conf"]
    found = dict(line.split(maxsplit=1) for line in settings.splitlines() if line and not line.startswith("#"))

    assert found["spark.default.parallelism"] == "15"
    assert found["spark.dynamicAllocation.maxExecutors"] == "5"
    assert found["spark.kubernetes.namespace"] == NAMESPACE


def test_no_pod_gets_variables_of_services_which_may_look_like_settings(chart: Path) -> None:
    for each in containers(rendered(chart, *MIXES["all"])):
        assert each.pod_spec["enableServiceLinks"] is False, each.pod


def test_games_and_metrics_are_mounted_next_to_the_schemas_of_the_image(chart: Path) -> None:
    """Rules are checked by the columns of the schemas in `proto`, next to the contract."""
    expected = "/opt/gamelake/contracts/games.yaml"
    for each in containers(rendered(chart)):
        path = each.environment.get("GAMELAKE_GAMES_FILE", expected)
        mounted = {mount["mountPath"]: mount.get("subPath") for mount in each.raw["volumeMounts"]}
        assert path == expected, each.pod
        assert ("GAMELAKE_GAMES_FILE" in each.environment) is (mounted.get(expected) == "games.yaml"), each.pod
        metrics = mounted.get(expected.replace("games", "metrics"))
        assert ("GAMELAKE_GAMES_FILE" in each.environment) is (metrics == "metrics.yaml"), each.pod
        experiments = mounted.get(expected.replace("games", "experiments"))
        assert ("GAMELAKE_GAMES_FILE" in each.environment) is (experiments == "experiments.yaml"), each.pod
        segments = mounted.get(expected.replace("games", "segments"))
        assert ("GAMELAKE_GAMES_FILE" in each.environment) is (segments == "segments.yaml"), each.pod


def test_the_charts_contracts_are_those_of_the_project(chart: Path) -> None:
    data = of_kind(rendered(chart), "ConfigMap")["gamelake-contracts"]["data"]

    for name in ("games.yaml", "metrics.yaml", "experiments.yaml", "segments.yaml"):
        assert data[name].rstrip() == (REPOSITORY / "contracts" / name).read_text().rstrip()


def test_large_numbers_are_written_in_digits(chart: Path) -> None:
    found = {each.pod: each.environment for each in containers(rendered(chart))}

    assert found["gamelake-ingest-events"]["GAMELAKE_DEDUP_MAX_EVENTS"] == "4000000"


def test_a_changed_configuration_replaces_the_pods_that_read_it(chart: Path) -> None:
    def annotations(*arguments: str) -> dict[str, Any]:
        deployment = of_kind(rendered(chart, *arguments), "Deployment")["gamelake-ingest-events"]
        return dict(deployment["spec"]["template"]["metadata"]["annotations"])

    assert annotations() == annotations("--set", "gateway.replicas=3")
    assert annotations() != annotations("--set", "drivers.ingest-events.executors.max=7")


def test_a_bad_value_ends_the_installation_with_its_name(chart: Path) -> None:
    done = template(chart, "--set", "drivers.ingest-events.settings.GAMELAKE_TRIGGER_SECOND=1")

    assert done.returncode != 0
    # As the version says it that is built, or the one of the package.
    complaints = (
        "additional properties 'GAMELAKE_TRIGGER_SECOND' not allowed",
        "Additional property GAMELAKE_TRIGGER_SECOND is not allowed",
    )
    assert any(each in done.stderr for each in complaints)


@pytest.mark.parametrize(
    ("when", "problem"), [("every 7 hours", "'every 7 hours' of the task a has no cron expression")]
)
def test_a_schedule_that_cron_lacks_is_refused(chart: Path, when: str, problem: str) -> None:
    task = f"maintenance.schedule[0].name=a,maintenance.schedule[0].job=vacuum,maintenance.schedule[0].when={when}"

    assert problem in template(chart, "--set", task).stderr


def test_a_chart_without_the_shared_files_says_what_makes_it(tmp_path: Path) -> None:
    done = template(REPOSITORY / "deploy/helm/gamelake")

    assert done.returncode != 0
    assert "make chart copies it; render or install build/chart/gamelake" in done.stderr
    assert assembled(tmp_path).is_dir()


@mixes
def test_helm_has_no_complaint(chart: Path, mix: tuple[str, ...]) -> None:
    done = helm("lint", str(chart), "--strict", "--quiet", *mix)

    assert done.returncode == 0, done.stdout
