"""What on-call sees: Prometheus reaches everything, its rules evaluate, no panel is empty while players play."""

import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

import pytest
import yaml
from minio import Minio

from gamelake.observability.metrics.declared import declarations
from monitoring.grafana.files import GENERATED
from tests.embedded.landing import events
from tests.embedded.sending import Sender, an_event, contract_text, framed
from tests.stack.game import Game
from tests.stack.game import an_event as an_http_event
from tests.stack.platform import ROOT, Stack, stack_sender
from tests.stack.prometheus import Prometheus
from tests.support.eventually import eventually

RULES = ROOT / "monitoring/prometheus/rules"
SCRAPED = ROOT / "monitoring/prometheus/prometheus.yml"
# Grafana takes four scrape intervals for it, or more on a wide view.
RATE_INTERVAL = "1m"
SHOWN_RANGE = "1h"
GAMES = ("Archery Duel", "Bingo Harbor", "Castle Clash Saga")
# Exists only where a user asked for it.
ON_DEMAND = {"quality"}
EVENTS_PER_STEP = 20
SECONDS_PER_STEP = 2.0
# A record's way into the tables, two scrapes of it, and a rule that is evaluated every 30 s; as long again for a
# service that has just started on a busy machine.
FIRST_FIGURES_SECONDS = 300

# How the names of all figures begin that rules may read; functions begin otherwise.
ORIGINS = ("alertmanager", "gamelake", "kafka", "metrics", "minio", "node", "prometheus")
FIGURE = re.compile(rf"\b(?:{'|'.join(ORIGINS)})[_:][\w:]+")

# Queries of panels that are rightly empty on a healthy stack, and the events that fill them.
MAY_BE_EMPTY = {("gamelake-lag", "Queries", "Behind since"): "a query that is behind"}

# Metrics that this test's events don't touch, and the events that do; unit tests cover them.
NOT_EMITTED_HERE = {
    "gamelake_ingest_quota_used_ratio": "a key with a quota",
    "gamelake_kpi_retention_ratio": "players of the day before",
    "gamelake_kpi_ltv": "players of the day before",
    "gamelake_live_ops_observed_ratio": "an hour of events, from which the next is expected",
    "gamelake_quality_rows_unevaluated_total": "a column of a type that a rule can't judge",
    "gamelake_quality_rows_dropped_total": "a rule that drops rows, and there is none",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of one panel."""

    dashboard: str
    panel: str
    legend: str
    expression: str
    may_be_empty: bool


def asked_by_panels() -> list[Asked]:
    """Every query of every dashboard, as Grafana sends it when all choices stand at All."""
    found = []
    for file in sorted(GENERATED.glob("*.json")):
        dashboard = json.loads(file.read_text())
        choices = [f"${each['name']}" for each in dashboard["templating"].get("list", ())]
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                expression = target["expr"].replace("$__rate_interval", RATE_INTERVAL).replace("$__range", SHOWN_RANGE)
                for choice in choices:
                    expression = expression.replace(choice, ".+")
                place = (dashboard["uid"], panel["title"], target["legendFormat"])
                says_what_empty_means = panel["fieldConfig"]["defaults"]["noValue"] != "no data"
                found.append(Asked(*place, expression, says_what_empty_means or place in MAY_BE_EMPTY))
    return found


def written_rules() -> list[dict[str, str]]:
    """Every rule of every file."""
    groups = [group for file in RULES.glob("*.yml") for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def await_all(prometheus: Prometheus, expressions: set[str]) -> None:
    """Wait until each has had a number at least once."""
    waiting = set(expressions)

    def all_answered() -> bool:
        waiting.difference_update({each for each in waiting if prometheus.values(each)})
        return not waiting

    try:
        eventually(all_answered, timeout=FIRST_FIGURES_SECONDS)
    except AssertionError:
        pytest.fail("no figures for\n" + "\n".join(sorted(waiting)))


@contextmanager
def players(sender: Sender, uploads: Minio) -> Iterator[None]:
    """Events of some games, among them some that cannot be decoded or that break a rule, while the block lasts."""
    stop = threading.Event()
    schema, newest = contract_text(1), contract_text(4)
    schema_id, newest_id = sender.register(schema), sender.register(newest)
    archery = Game.of("archery_duel")
    _, again = events(5, "Archery Duel", gamer_id="p-1")

    def play() -> None:
        while not stop.wait(SECONDS_PER_STEP):
            for game in GAMES:
                ids = [str(uuid.uuid4()) for _ in range(EVENTS_PER_STEP)]
                sender.send_values(ids, [framed(schema_id, an_event(schema, each, game)) for each in ids])
            played, event_id = {"platform": "ios", "app_version": "1.0"}, str(uuid.uuid4())
            loaded = an_event(
                newest, event_id, "Archery Duel", session_id="s-1", load_ms=900, event_params=played,
                resource={"item": "gems", "change": 5, "reason": "shop"}, error={"code": "lost", "fatal": False},
            )  # fmt: skip
            sender.send_values([event_id], [framed(newest_id, loaded)])
            without_player = an_event(schema, str(uuid.uuid4()), "Archery Duel", gamer_id="")
            of_no_game = an_event(schema, str(uuid.uuid4()), "Chess")
            sender.send_bad([b"no event", framed(schema_id, without_player), framed(schema_id, of_no_game)])
            # An event that is sent twice, and one that the gateway rejects.
            twice = an_http_event()
            archery.post([twice, an_http_event(event_time="yesterday")])
            archery.post([twice])
            # A file with repeated notifications, whose content is known after the first time.
            uploads.put_object("landing", "incoming/monitoring/again.json", BytesIO(again), len(again))

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


@pytest.fixture(scope="module")
def prometheus(stack: Stack) -> Prometheus:
    """The stack's, while players play."""
    assert stack.is_healthy("prometheus")
    return Prometheus()


@pytest.fixture(scope="module")
def traffic(stack: Stack, uploads: Minio) -> Iterator[None]:
    """Players, once the queries take what they send; the KPIs are those of the service `serving`."""
    for service in ("ingest-events", "ingest", "serving"):
        stack.await_health(service, timeout=FIRST_FIGURES_SECONDS)
    with players(stack_sender(), uploads):
        yield


def test_every_expected_target_is_scraped_and_up(prometheus: Prometheus) -> None:
    jobs = {job["job_name"] for job in yaml.safe_load(SCRAPED.read_text())["scrape_configs"]}

    eventually(lambda: {target.health for target in prometheus.targets()} == {"up"}, timeout=90)

    assert {target.job for target in prometheus.targets()} | ON_DEMAND == jobs


def test_a_rule_that_is_added_to_a_running_stack_is_loaded_as_make_up_does_it(
    prometheus: Prometheus, stack: Stack
) -> None:
    reload = ("exec", "--no-TTY", "prometheus", "sh", "-c", "kill -HUP 1")
    added = RULES / "added_by_a_test.yml"
    rule = {"record": "gamelake:added_by_a_test", "expr": "vector(1)"}
    added.write_text(yaml.safe_dump({"groups": [{"name": "added_by_a_test", "rules": [rule]}]}))
    try:
        stack.compose(*reload)
        eventually(lambda: rule["record"] in {each.name for each in prometheus.rules()}, timeout=60)
    finally:
        added.unlink()
        stack.compose(*reload)
    eventually(lambda: rule["record"] not in {each.name for each in prometheus.rules()}, timeout=60)


def test_every_rule_is_loaded_and_evaluates(prometheus: Prometheus) -> None:
    written = [rule.get("alert") or rule["record"] for rule in written_rules()]

    # The slowest group is evaluated every ten minutes: it is queried instead, which fails if it can't be evaluated.
    eventually(lambda: {rule.health for rule in prometheus.rules() if rule.interval < 60} == {"ok"}, timeout=120)
    [slow] = [rule for rule in prometheus.rules() if rule.interval >= 60]
    prometheus.values(slow.expression)

    assert slow.health in {"ok", "unknown"}
    assert sorted(rule.name for rule in prometheus.rules()) == sorted(written)


@pytest.mark.slow
def test_the_rules_of_the_slowest_group_are_evaluated_too(prometheus: Prometheus) -> None:
    eventually(lambda: {rule.health for rule in prometheus.rules()} == {"ok"}, timeout=660)


@pytest.mark.usefixtures("traffic")
def test_every_figure_that_a_rule_reads_is_there(prometheus: Prometheus) -> None:
    """A rule over a metric that is never emitted never fires, and no test of promtool sees that."""
    expressions = [rule["expr"] for rule in written_rules()]
    names = {name for expression in expressions for name in FIGURE.findall(expression)}

    assert len(names) > len(ORIGINS)
    await_all(prometheus, {f"count({name})" for name in names})


@pytest.mark.usefixtures("traffic")
def test_no_panel_is_empty_while_players_play(prometheus: Prometheus) -> None:
    asked = [each for each in asked_by_panels() if not each.may_be_empty]

    await_all(
        prometheus,
        {each.expression for each in asked if not NOT_EMITTED_HERE.keys() & {*FIGURE.findall(each.expression)}},
    )


def test_the_panels_that_may_be_empty_exist_and_their_queries_are_sound(prometheus: Prometheus) -> None:
    excepted = [each for each in asked_by_panels() if each.may_be_empty]

    assert {(each.dashboard, each.panel, each.legend) for each in excepted} >= MAY_BE_EMPTY.keys()
    for each in excepted:
        prometheus.values(each.expression)


@pytest.mark.usefixtures("traffic")
def test_every_metric_that_is_declared_reaches_prometheus(prometheus: Prometheus) -> None:
    series = {f"{name}_count" if each.type == "histogram" else name for name, each in declarations().items()}

    assert series >= NOT_EMITTED_HERE.keys()
    await_all(prometheus, series - NOT_EMITTED_HERE.keys())
