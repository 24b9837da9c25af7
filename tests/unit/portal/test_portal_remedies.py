"""The command that the portal shows for a service that does not respond restarts a service of the stack."""

import re
from collections.abc import Iterator

import pytest
import yaml

from gamelake.model.errors import SettingsError
from services.portal.figures import PrometheusFigures, ServiceHealth
from services.portal.prometheus import Prometheus, Sample, Series
from services.portal.remedies import RestartCommands
from services.portal.settings import PortalSettings
from tools.embedded.service import REPOSITORY

SCRAPES = yaml.safe_load((REPOSITORY / "monitoring/prometheus/prometheus.yml").read_text(encoding="utf-8"))
JOBS = [each["job_name"] for each in SCRAPES["scrape_configs"]]


class Recorded(Prometheus):
    """One job that is down; notes the expressions."""

    def __init__(self, job: str) -> None:
        self.asked: list[str] = []
        self._job = job

    def at(self, moment: float, expression: str) -> list[Sample]:
        """The job's health."""
        self.asked.append(expression)
        return [Sample({"job": self._job}, 0)] if "(up{" in expression else []

    def over_time(self, expression: str, start: float, end: float, step: int) -> list[Series]:
        """No series."""
        self.asked.append(expression)
        return []


def services() -> Iterator[str]:
    """The services in the files of compose that stack.sh names."""
    script = (REPOSITORY / "compose/stack.sh").read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"compose[\w.]*\.yaml", script))):
        yield from yaml.safe_load((REPOSITORY / "compose" / name).read_text(encoding="utf-8")).get("services", {})


@pytest.mark.parametrize("job", JOBS)
def test_the_command_for_each_scrape_job_names_a_service_of_the_stack(job: str) -> None:
    command, _, service = RestartCommands().of_job(job).rpartition(" ")

    assert command == "compose/stack.sh restart"
    assert service in set(services())


@pytest.mark.parametrize("scrape", SCRAPES["scrape_configs"], ids=JOBS)
def test_the_service_is_the_one_that_the_job_reads(scrape: dict[str, object]) -> None:
    relabels = [each["replacement"] for each in scrape.get("relabel_configs", ()) if "replacement" in each]  # type: ignore[attr-defined] # YAML
    targets = [target for each in scrape.get("static_configs", ()) for target in each["targets"]]  # type: ignore[attr-defined] # YAML
    names = [name for each in scrape.get("dns_sd_configs", ()) for name in each["names"]]  # type: ignore[attr-defined] # YAML
    hosts = {each.split(":")[0].replace("localhost", "prometheus") for each in relabels or targets or names}

    assert {RestartCommands().of_job(str(scrape["job_name"])).split(" ")[-1]} == hosts


def test_a_job_that_is_down_has_its_command() -> None:
    overview = PrometheusFigures(Recorded("live-ops"), RestartCommands()).overview()

    assert overview.services == (ServiceHealth("live-ops", False, "compose/stack.sh restart serving"),)


def test_outside_of_the_stack_only_the_given_commands_are_shown() -> None:
    given = PortalSettings.from_env({"PORTAL_RESTARTS": "serving=kubectl rollout restart deployment/gold,a=b"}).restarts

    assert given.of_job("serving") == "kubectl rollout restart deployment/gold"
    assert given.of_job("kafka") == ""
    with pytest.raises(SettingsError, match="PORTAL_RESTARTS has 'serving'"):
        PortalSettings.from_env({"PORTAL_RESTARTS": "serving"})


def test_with_a_namespace_every_query_is_for_it_alone() -> None:
    everything, own = Recorded("kafka"), Recorded("kafka")

    PrometheusFigures(everything, RestartCommands()).overview()
    PrometheusFigures(own, RestartCommands(), "games").overview()

    assert not any("namespace" in each for each in everything.asked)
    assert all('namespace="games"' in each or 'namespace=~"|games"' in each for each in own.asked)
    assert "min by (job) (up{})" in everything.asked
