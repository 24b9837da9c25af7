"""`make dev` maintains its tables."""

from importlib.util import find_spec

from gamelake.contract.schedule import load_schedule
from gamelake.maintenance.settings import MaintenanceSettings
from tools.dev.programs import settings_of_maintenance
from tools.embedded.service import CONTRACTS


def test_make_dev_compacts_its_tables_several_times_an_hour_by_jobs_that_need_nothing_else() -> None:
    shared = {"GAMELAKE_LAKEHOUSE": "file:///srv/lakehouse", "GAMELAKE_GAMES_FILE": str(CONTRACTS / "games.yaml")}
    settings = MaintenanceSettings.from_env(shared | settings_of_maintenance())
    tasks = {each.job: each for each in load_schedule(settings.schedule_file).tasks}

    assert tasks["compact"].cadence.period.total_seconds() <= 900
    assert {"vacuum", "clean_logs"} <= tasks.keys()
    assert all(find_spec(f"jobs.{job}") for job in tasks)
    # No files arrive here.
    assert "reconcile_files" not in tasks
