"""The ledger on Kubernetes: events go in through the gateway while pods are lost and the release is upgraded."""

from tests.kubernetes.platform import Cluster, Load
from tests.support.eventually import eventually

BATCHES = 15
READY_SECONDS = 600
EXECUTORS = "ingest-events-executors"
# Each replaces the pods of its workload.
CHANGED_SETTINGS = {
    "drivers.ingest-events.settings.GAMELAKE_CHUNK_RECORDS": "40000",
    "gateway.settings.INGEST_MAX_EVENTS": "4000",
}
OTHERS = ("drivers.ingest-files", "drivers.gold", "drivers.live-ops", "delivery", "audit")


def test_lost_executors_a_lost_driver_and_an_upgrade_lose_nothing_and_double_nothing(cluster: Cluster) -> None:
    eventually(lambda: cluster.is_ready("gateway") and cluster.is_ready("ingest-events"), timeout=READY_SECONDS)
    with Load.running(cluster, "kart_rumble") as load:
        eventually(load.has_sent(BATCHES), timeout=300)

        executors = cluster.pods(EXECUTORS)
        for executor in executors:
            cluster.kill(executor)
        eventually(load.has_sent(BATCHES), timeout=300)
        eventually(lambda: bool(cluster.pods(EXECUTORS).keys() - executors.keys()), timeout=READY_SECONDS)

        drivers = frozenset(cluster.pods("ingest-events"))
        for driver in drivers:
            cluster.kill(driver)
        eventually(load.has_sent(BATCHES), timeout=300)
        eventually(lambda: cluster.is_ready("ingest-events", but=drivers), timeout=READY_SECONDS)

        before = frozenset({*cluster.pods("ingest-events"), *cluster.pods("gateway")})
        cluster.upgrade(CHANGED_SETTINGS)
        eventually(load.has_sent(BATCHES), timeout=300)
        assert not before & {*cluster.pods("ingest-events"), *cluster.pods("gateway")}
    sent = load.game.acknowledged

    eventually(lambda: sent <= cluster.event_ids().keys(), timeout=READY_SECONDS)

    assert executors
    assert len(sent) >= 4 * BATCHES * 100
    counts = cluster.event_ids()
    assert {event_id for event_id in sent if counts[event_id] != 1} == set()
    eventually(lambda: cluster.reconciliation().problems == [], timeout=60)


def test_a_maintenance_task_runs_as_a_job_and_changes_no_event(cluster: Cluster) -> None:
    before = cluster.event_ids()

    cluster.run_task("compact-hot")

    assert before
    assert cluster.event_ids() == before
    assert cluster.reconciliation().problems == []


def test_all_other_workloads_start_when_they_are_enabled(cluster: Cluster) -> None:
    cluster.upgrade({f"{name}.enabled": "true" for name in OTHERS})

    assert [name for name in OTHERS if not cluster.is_ready(name.rpartition(".")[2])] == []
