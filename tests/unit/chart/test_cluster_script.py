"""The cluster of `make test-kubernetes`: kind or k3d makes it where installed, and leftovers are removed first."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.chart.rendering import REPOSITORY

IMAGES = ("gamelake/kafka:1", "gamelake/spark:1")
# Instead of kind and k3d: notes how it was called; `kubeconfig get` prints one.
FAKE = """#!/bin/bash
echo "${0##*/} $*" >>"$LOG"
[ "$1" != kubeconfig ] || echo "kind: Config"
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with these programs; `log` has their calls."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "cluster"

    def install(self, *programs: str) -> None:
        for each in programs:
            add_program(self.root / "bin" / each, FAKE)

    def cluster(self, verb: str, *images: str, **variables: str) -> Outcome:
        return run_alone(
            (REPOSITORY / "deploy/kubernetes/cluster.sh", verb, self.folder, *images),
            self.root / "bin",
            LOG=self.root / "log",
            **variables,
        )

    @property
    def log(self) -> list[str]:
        return (self.root / "log").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    return Machine(tmp_path)


def test_kind_makes_the_cluster_where_it_is_installed(machine: Machine) -> None:
    machine.install("kind", "k3d")

    assert machine.cluster("up", *IMAGES).returncode == 0
    assert machine.log == [
        f"kind create cluster --name gamelake-test --kubeconfig {machine.folder}/kubeconfig --wait 180s",
        "kind load docker-image --name gamelake-test gamelake/kafka:1 gamelake/spark:1",
    ]

    assert machine.cluster("down").returncode == 0
    assert machine.log[2:] == ["kind delete cluster --name gamelake-test"]
    assert not machine.folder.exists()


def test_k3d_makes_it_where_kind_is_missing_or_not_wanted(machine: Machine) -> None:
    machine.install("kind", "k3d")

    assert machine.cluster("up", *IMAGES, CLUSTER="k3d").returncode == 0
    assert machine.log == [
        "k3d cluster create gamelake-test --kubeconfig-update-default=false --wait --timeout 180s",
        "k3d kubeconfig get gamelake-test",
        "k3d image import --cluster gamelake-test gamelake/kafka:1 gamelake/spark:1",
    ]
    assert (machine.folder / "kubeconfig").read_text() == "kind: Config\n"
    assert (machine.folder / "kubeconfig").stat().st_mode & 0o077 == 0

    assert machine.cluster("down").returncode == 0
    assert machine.log[3:] == ["k3d cluster delete gamelake-test"]


def test_a_cluster_that_an_interrupted_run_left_is_deleted_first(machine: Machine) -> None:
    machine.install("kind")
    machine.cluster("up", *IMAGES)

    assert machine.cluster("up", *IMAGES).returncode == 0

    assert [line.split()[1] for line in machine.log] == ["create", "load", "delete", "create", "load"]


def test_an_unknown_maker_of_clusters_is_refused(machine: Machine) -> None:
    outcome = machine.cluster("up", *IMAGES, CLUSTER="minikube")

    assert outcome.returncode == 1
    assert "CLUSTER=minikube is none of kind, k3d, processes" in outcome.stderr
