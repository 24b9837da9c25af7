"""`make rotate` replaces a secret where it is kept, then restarts the containers that have it, and no others."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, lines_of, run_alone
from tests.unit.compose.configured import copy_scripts

# Three containers, by their mounts; each note of a restart goes to $LOG.
DOCKER = """#!/bin/bash
case "$1 $3" in
  "ps --filter") printf '%s\\n' one two three four five ;;
  "inspect "*Labels*)
    case "$4" in
      one) echo kafka ;;
      two) echo ingest ;;
      three) echo catalog ;;
      four) echo spark-master ;;
      five) echo spark-worker ;;
    esac ;;
  "inspect "*Mounts*)
    case "$4" in
      one) printf '%s\\n' /x/secrets/kafka-admin /x/certificates/kafka.pem ;;
      two) printf '%s\\n' /x/secrets/kafka-ingest /x/certificates/ca.pem /x/certificates/ingest.pem ;;
      three) printf '%s\\n' /x/secrets/object-store-catalog /x/certificates/ca.pem /x/certificates/catalog.pem ;;
      four | five) echo /x/secrets/spark-rpc ;;
    esac ;;
  "inspect "*) echo healthy ;;
  "volume "*) [ ! -f "$SECRETS_DIRECTORY/../is-new" ] ;;
  *) echo "docker $*" >>"$LOG" ;;
esac
"""
STEP = """#!/bin/bash
[ "$1" != ps ] || { [ -f "$SECRETS_DIRECTORY/../is-stopped" ] || echo id; exit; }
echo "${0##*/}${*:+ $*}" >>"$LOG"
"""
SECRETS = (
    STEP
    + """for name in kafka-ingest kafka-admin spark-rpc grafana-password; do
  [ -f "$SECRETS_DIRECTORY/$name" ] || echo new >"$SECRETS_DIRECTORY/$name"
done
"""
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout whose steps, and whose docker, only note that they were called."""

    folder: Path

    def rotate(self, *arguments: str) -> Outcome:
        folders = {"LOG": self.folder / "log", "SECRETS_DIRECTORY": self.folder / "secrets"}
        return run_alone((self.folder / "compose/rotate.sh", *arguments), self.folder / "bin", **folders)

    @property
    def steps(self) -> list[str]:
        """What was called, in order."""
        return lines_of(self.folder / "log")

    def secrets(self) -> dict[str, str]:
        return {file.name: file.read_text().strip() for file in (self.folder / "secrets").iterdir()}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The script, with two secrets."""
    (tmp_path / "secrets").mkdir()
    copy_scripts(tmp_path, "rotate.sh", "read_env.sh")
    fakes = {
        "bin/docker": DOCKER,
        "compose/secrets.sh": SECRETS,
        "compose/stack.sh": STEP,
        "compose/certificates.sh": STEP,
    }
    for name, text in fakes.items():
        add_program(tmp_path / name, text)
    for name in ("kafka-ingest", "kafka-admin", "spark-rpc", "grafana-password"):
        (tmp_path / "secrets" / name).write_text("old")
    return Checkout(tmp_path)


def test_a_users_secret_is_replaced_at_its_server_before_its_client_is_restarted(checkout: Checkout) -> None:
    done = checkout.rotate("kafka-ingest")

    assert done.returncode == 0, done.stderr
    assert [name for name, value in checkout.secrets().items() if value == "new"] == ["kafka-ingest"]
    assert checkout.steps == ["secrets.sh", "stack.sh run --rm --no-deps create-topics", "docker restart two"]


def test_processes_that_share_a_secret_are_restarted_at_once(checkout: Checkout) -> None:
    assert checkout.rotate("spark-rpc").returncode == 0

    assert checkout.steps == ["secrets.sh", "docker restart four five"]


def test_a_secret_that_could_not_be_made_stays_the_one_that_services_have(checkout: Checkout) -> None:
    (checkout.folder / "compose/secrets.sh").write_text("#!/bin/bash\nexit 1\n")
    before = checkout.secrets()

    done = checkout.rotate("kafka-ingest")

    assert done.returncode == 1
    assert "kafka-ingest is as it was" in done.stderr
    assert checkout.secrets() == before


def test_a_secret_of_an_option_that_is_off_stays(checkout: Checkout) -> None:
    (checkout.folder / "secrets/postgres-superset").write_text("old")

    done = checkout.rotate("postgres-superset")

    assert done.returncode == 1
    assert "makes no postgres-superset: set the options of 'make up' here too, such as BI=1" in done.stderr
    assert checkout.secrets()["postgres-superset"] == "old"
    assert checkout.steps == ["secrets.sh"]


def test_grafana_gets_its_new_password_while_it_runs(checkout: Checkout) -> None:
    assert checkout.rotate("grafana-password").returncode == 0

    reset = "stack.sh exec --no-TTY grafana grafana cli admin reset-admin-password --password-from-stdin"
    assert checkout.steps == ["secrets.sh", reset]


def test_a_service_that_does_not_run_keeps_a_password_that_is_set_while_it_runs(checkout: Checkout) -> None:
    (checkout.folder / "is-stopped").touch()

    done = checkout.rotate("grafana-password")

    assert done.returncode == 1
    assert "grafana does not run" in done.stderr
    assert checkout.secrets()["grafana-password"] == "old"


def test_a_grafana_that_never_ran_gets_the_new_password_at_its_first_start(checkout: Checkout) -> None:
    (checkout.folder / "is-stopped").touch()
    (checkout.folder / "is-new").touch()

    assert checkout.rotate("grafana-password").returncode == 0

    assert checkout.secrets()["grafana-password"] == "new"
    assert checkout.steps == ["secrets.sh"]


def test_all_are_replaced_one_after_the_other_then_the_certificates(checkout: Checkout) -> None:
    done = checkout.rotate("all")

    assert done.returncode == 0, done.stderr
    assert set(checkout.secrets().values()) == {"new"}
    assert [step for step in checkout.steps if step.startswith("docker")] == [
        "docker restart one",
        "docker restart two",
        "docker restart four five",
        "docker restart one",
    ]


def test_all_goes_on_after_a_secret_that_is_not_replaced_and_names_it(checkout: Checkout) -> None:
    (checkout.folder / "is-stopped").touch()

    done = checkout.rotate("all")

    assert done.returncode == 1
    assert "not replaced: grafana-password\n" in done.stderr
    assert [name for name, value in checkout.secrets().items() if value == "old"] == ["grafana-password"]


def test_certificates_are_renewed_and_the_services_that_read_them_at_their_start_only_are_restarted(
    checkout: Checkout,
) -> None:
    assert checkout.rotate("certificates").returncode == 0

    assert checkout.steps == ["certificates.sh --renew", "docker restart one"]


def test_only_the_services_that_are_named_are_restarted(checkout: Checkout) -> None:
    assert checkout.rotate("certificates", "catalog", "kafka").returncode == 0

    assert checkout.steps == ["certificates.sh --renew", "docker restart one", "docker restart three"]


def test_a_dry_run_names_the_steps_and_does_nothing(checkout: Checkout) -> None:
    done = checkout.rotate("--dry-run", "kafka-ingest")

    assert done.returncode == 0
    assert "rotate: restarting ingest" in done.stdout.splitlines()
    assert checkout.steps == []
    assert set(checkout.secrets().values()) == {"old"}


@pytest.mark.parametrize("arguments", [(), ("vault-keys",), ("kafka-nothing",), ("../kafka-ingest",)])
def test_what_it_does_not_replace_is_refused(checkout: Checkout, arguments: tuple[str, ...]) -> None:
    done = checkout.rotate(*arguments)

    assert done.returncode == 2
    assert done.stderr
    assert checkout.steps == []


def test_a_password_is_never_printed(checkout: Checkout) -> None:
    done = checkout.rotate("kafka-ingest")

    assert "new" not in (done.stdout + done.stderr).split()
