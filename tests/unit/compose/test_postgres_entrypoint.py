"""PostgreSQL's first start may be killed at any moment: the next one makes the cluster whole."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.compose.configured import COMPOSE

# A cluster's parts, each with the number of the run that made it: those of two runs must not be mixed.
PARTS = ("PG_VERSION", "base/1/1247", "global/pg_control", "postgresql.conf")
INITDB = f"""#!/bin/bash
echo run >>"$RUNS"
number=$(wc -l <"$RUNS")
data="$2"
if [ -n "$(ls -A "$data" 2>/dev/null)" ]; then echo "directory is not empty" >&2; exit 1; fi
for part in {" ".join(PARTS)}; do
  mkdir -p "$(dirname "$data/$part")" && echo "$number" >"$data/$part"
  step
done
"""
# Each step of the first start counts, and one of them kills the script that it is a part of.
STEP = """#!/bin/bash
echo step >>"$STEPS"
[ "$(wc -l <"$STEPS")" != "$KILLED_AT" ] || kill -KILL "$(cat "$SCRIPT")" $PPID
"""
PROGRAMS = {
    "initdb": INITDB,
    "step": STEP,
    "mv": '#!/bin/bash\nstep; /bin/mv "$@"; step\n',
    "rm": '#!/bin/bash\nstep; /bin/rm "$@"; step\n',
    "sync": "#!/bin/bash\nstep\n",
    "postgres": '#!/bin/bash\necho "$@"\n',
    "started": '#!/bin/bash\necho $$ >"$SCRIPT"\nexec "$@"\n',
}


@dataclass(frozen=True, slots=True)
class Image:
    """The image's script, with programs that note what they do."""

    folder: Path

    def start(self, killed_at: int = 0) -> Outcome:
        """Start the container; it is killed at a step, if that comes."""
        variables = {
            "POSTGRES_DATA": self.folder / "data",
            "POSTGRES_SECRETS": self.folder,
            "POSTGRES_RUN": self.folder,
            "RUNS": self.folder / "runs",
            "STEPS": self.folder / "steps",
            "SCRIPT": self.folder / "script",
        }
        (self.folder / "steps").write_text("")
        command = ("started", "bash", str(COMPOSE / "postgres/entrypoint.sh"))
        return run_alone(command, self.folder / "bin", TLS="0", KILLED_AT=str(killed_at), **variables)

    @property
    def steps(self) -> int:
        """The steps of the last start."""
        return len((self.folder / "steps").read_text().splitlines())

    def cluster(self) -> dict[str, str]:
        """The files of the cluster with their contents."""
        data = self.folder / "data"
        return {str(path.relative_to(data)): path.read_text() for path in data.rglob("*") if path.is_file()}


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """The image, with an empty volume."""
    (tmp_path / "data").mkdir()
    (tmp_path / "postgres-password").write_text("p")
    for name, text in PROGRAMS.items():
        add_program(tmp_path / "bin" / name, text)
    return Image(tmp_path)


def test_the_first_start_makes_the_cluster_and_the_next_one_keeps_it(image: Image) -> None:
    assert "-D" in image.start().stdout
    first = image.cluster()
    assert image.start().returncode == 0

    assert first == image.cluster() == dict.fromkeys(PARTS, "1\n")


def test_a_start_that_was_killed_at_any_moment_is_made_good_by_the_next_one(image: Image, tmp_path: Path) -> None:
    image.start()
    for moment in range(1, image.steps + 1):
        subprocess.run(("/bin/rm", "-rf", str(tmp_path / "data")), check=True)
        (tmp_path / "data").mkdir()

        assert image.start(killed_at=moment).returncode != 0
        outcome = image.start()

        assert outcome.returncode == 0, (moment, outcome.stderr)
        assert image.cluster().keys() == set(PARTS), moment
        assert len(set(image.cluster().values())) == 1, moment
        assert not (tmp_path / "data/new").exists()


def test_files_that_are_no_cluster_are_left_alone(image: Image) -> None:
    (image.folder / "data/base").mkdir()
    (image.folder / "data/base/1247").write_text("players' keys")

    outcome = image.start()

    assert outcome.returncode == 1
    assert "nothing was changed" in outcome.stderr
    assert image.cluster() == {"base/1247": "players' keys"}


def test_the_folder_of_a_file_system_of_its_own_counts_as_empty(image: Image) -> None:
    (image.folder / "data/lost+found").mkdir()

    assert image.start().returncode == 0
