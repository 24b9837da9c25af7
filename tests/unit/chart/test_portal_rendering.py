"""The chart's portal: its program accepts its settings, and no port is open to clients without a certificate."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gamelake.serving.sql.questions import load_questions
from monitoring.grafana.files import GENERATED
from services.portal.dashboards import load_dashboards
from services.portal.settings import PortalSettings
from tests.unit.chart.rendering import HELM, NAMESPACE, REPOSITORY, Container, containers, of_kind, rendered, template

ENABLED = "portal.enabled=true,portal.prometheusUrl=http://prometheus.monitoring:9090"
CERTIFICATE = f"{ENABLED},portal.certificateSecret=portal-tls,monitoring.serviceMonitors=true"
INGRESS = f"{CERTIFICATE},portal.ingress.enabled=true,portal.ingress.host=gamelake.example.com"
NAME = "gamelake-portal"


@pytest.fixture(autouse=True, scope="module")
def helm_is_there(missing_service: Callable[[str], NoReturn]) -> None:
    if not HELM:
        missing_service("helm is missing; make chart-check builds it")


def container(chart: Path, values: str) -> Container:
    """The portal's container."""
    [found] = [each for each in containers(rendered(chart, "--set", values)) if each.pod == NAME]
    return found


def settings(chart: Path, values: str) -> PortalSettings:
    """The settings that the portal's program reads in the pod of the address 10.0.0.7."""
    environment = {
        name: str(value).replace("$(POD_IP)", "10.0.0.7")
        for name, value in container(chart, values).environment.items()
        # The files are in the pod.
        if name not in ("PORTAL_CERTIFICATE_FILE", "PORTAL_CA_FILE", "PORTAL_TRINO_CREDENTIALS_FILE")
    }
    return PortalSettings.from_env(environment)


def rules(chart: Path, values: str) -> list[Mapping[str, Any]]:
    """The rules of the network policy on what reaches the portal."""
    policy = of_kind(rendered(chart, "--set", values), "NetworkPolicy")[NAME]
    return list(policy["spec"]["ingress"])


def test_without_a_certificate_it_listens_inside_of_its_pod_alone(chart: Path) -> None:
    read = settings(chart, ENABLED)
    found = container(chart, f"{ENABLED},monitoring.serviceMonitors=true")
    objects = rendered(chart, "--set", f"{ENABLED},monitoring.serviceMonitors=true")

    assert (read.host, read.port, read.browser_port) == ("127.0.0.1", 8088, None)
    assert rules(chart, ENABLED) == []
    assert NAME not in of_kind(objects, "ServiceMonitor")
    # The kubelet does not reach this address: the probe runs in the container.
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert found.raw[probe]["exec"]["command"][-1] == f"http://127.0.0.1:{read.port}/healthz"


def test_with_a_certificate_one_port_is_for_certificates_and_one_for_sessions(chart: Path) -> None:
    read, found = settings(chart, CERTIFICATE), container(chart, CERTIFICATE)
    environment = found.environment
    [sources] = [volume["projected"]["sources"] for volume in found.pod_spec["volumes"] if "projected" in volume]
    files = {item["path"]: one["secret"]["name"] for one in sources for item in one["secret"]["items"]}

    assert (read.host, read.port, read.browser_port) == ("0.0.0.0", 8088, 8089)  # noqa: S104 # the pod's
    for name in ("PORTAL_CERTIFICATE_FILE", "PORTAL_CA_FILE"):
        assert files[str(environment[name]).removeprefix("/etc/gamelake/secrets/")] == "portal-tls"
    assert [rule["ports"][0]["port"] for rule in rules(chart, CERTIFICATE)] == ["main"]
    ports = {port["name"]: port["containerPort"] for port in found.raw["ports"]}
    assert ports == {"main": read.port, "browser": read.browser_port}
    assert {found.raw[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")} == {
        "browser"
    }


def test_prometheus_addresses_it_by_the_pods_address_and_knows_its_certificate(chart: Path) -> None:
    monitor = of_kind(rendered(chart, "--set", CERTIFICATE), "ServiceMonitor")[NAME]
    [endpoint] = monitor["spec"]["endpoints"]
    variables = [each["name"] for each in container(chart, CERTIFICATE).raw["env"]]

    assert settings(chart, CERTIFICATE).names == {"127.0.0.1", "localhost", NAME, "10.0.0.7"}
    # A variable expands only those before it.
    assert variables.index("POD_IP") < variables.index("PORTAL_NAMES")
    assert (endpoint["scheme"], endpoint["tlsConfig"]["serverName"]) == ("https", NAME)
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": "portal-tls", "key": "ca.crt"}


def test_an_ingress_leads_to_the_port_for_browsers(chart: Path) -> None:
    objects = rendered(chart, "--set", f"{INGRESS},networkPolicies.portalFrom[0].namespaceSelector.matchLabels.a=b")
    [rule] = of_kind(objects, "Ingress")[NAME]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    service = of_kind(objects, "Service")[backend["name"]]
    [browser] = [
        each
        for each in of_kind(objects, "NetworkPolicy")[NAME]["spec"]["ingress"]
        if each["ports"][0]["port"] != "main"
    ]

    assert rule["host"] in settings(chart, INGRESS).names
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["browser"]
    assert browser == {
        "ports": [{"protocol": "TCP", "port": "browser"}],
        "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
    }


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("portal.enabled=true", "portal.prometheusUrl is empty"),
        (f"{ENABLED},portal.ingress.enabled=true,portal.ingress.host=a.example", "portal.ingress needs"),
        (f"{CERTIFICATE},portal.ingress.enabled=true", "portal.ingress.host is empty"),
    ],
)
def test_values_that_leave_the_portal_useless_or_open_are_refused(chart: Path, values: str, problem: str) -> None:
    assert problem in template(chart, "--set", values).stderr


def test_its_budget_is_that_of_the_stack(chart: Path) -> None:
    lines = (REPOSITORY / "compose/.env").read_text(encoding="utf-8").splitlines()
    [limit] = [line.partition("=")[2] for line in lines if line.startswith("PORTAL_MEMORY=")]
    [budget] = [
        line.partition("=")[2].split(",")[0].strip()
        for line in (REPOSITORY / "tests/embedded/test_portal_clients.py").read_text(encoding="utf-8").splitlines()
        if line.startswith("BUDGET_MIB")
    ]
    resources = container(chart, ENABLED).raw["resources"]

    assert resources["limits"]["memory"] == f"{limit}Mi"
    assert resources["requests"]["memory"] == f"{budget}Mi"


def test_it_connects_to_prometheus_and_trino_alone(chart: Path) -> None:
    policy = of_kind(rendered(chart, "--set", ENABLED), "NetworkPolicy")[NAME]
    ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}

    assert ports == {53, 8080, 9090}


def test_it_shows_its_own_namespace_and_restarts_the_releases_deployments(chart: Path) -> None:
    read = settings(chart, CERTIFICATE)
    objects = rendered(chart, "--set", CERTIFICATE)
    jobs = {
        label["replacement"]
        for monitor in of_kind(objects, "ServiceMonitor").values()
        for label in monitor["spec"]["endpoints"][0]["relabelings"]
        if label["targetLabel"] == "job"
    }

    assert read.namespace == NAMESPACE
    for job in jobs:
        command, _, deployment = read.restarts.of_job(job).rpartition("/")
        assert command == f"kubectl --namespace {NAMESPACE} rollout restart deployment"
        assert deployment in of_kind(objects, "Deployment")
    assert read.restarts.of_job("prometheus") == ""


def test_its_questions_dashboards_and_runbooks_are_the_stacks(chart: Path, tmp_path: Path) -> None:
    maps = of_kind(rendered(chart, "--set", ENABLED), "ConfigMap")
    folders = {}
    for name in ("questions", "dashboards", "runbooks"):
        folders[name] = tmp_path / name
        folders[name].mkdir()
        data = maps[f"{NAME}-{name}"]["data"]
        # The limit of the API is 1 MiB.
        assert len(json.dumps(data)) < 900_000
        for file, text in data.items():
            (folders[name] / file).write_text(text, encoding="utf-8")

    questions = load_questions(REPOSITORY / "sql/questions")
    assert {
        name: replace(each, sql=each.sql.rstrip()) for name, each in load_questions(folders["questions"]).items()
    } == {name: replace(each, sql=each.sql.rstrip()) for name, each in questions.items()}
    assert load_dashboards(folders["dashboards"]) == load_dashboards(GENERATED)
    runbooks = sorted((REPOSITORY / "monitoring/runbooks").glob("*.md"))
    assert sorted(path.name for path in folders["runbooks"].iterdir()) == [path.name for path in runbooks]
