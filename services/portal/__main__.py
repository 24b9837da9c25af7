"""Serves until SIGTERM or Ctrl-C: `python -m services.portal`."""

from gamelake.command import command_parser
from gamelake.model.errors import SettingsError
from gamelake.observability.faults import load_faults
from gamelake.program import OK, run, stop_event
from gamelake.serving.sql.questions import load_questions
from services.portal.app import PortalApp
from services.portal.figures import figure_source
from services.portal.metrics import metrics_of_process
from services.portal.questions import Questions
from services.portal.server import PortalServer, served_to_browsers
from services.portal.settings import PortalSettings


def main() -> int:
    """Serve until stopped. Return the exit code.

    Raises:
        GamelakeError: a setting, or the file of a question or of the faults, has to be corrected first.
    """
    command_parser(__doc__).parse_args()
    settings = PortalSettings.from_env()
    load_questions(settings.sql / "questions")
    if settings.faults is not None:
        load_faults(settings.faults)
    metrics = metrics_of_process()
    app = PortalApp(settings, figure_source(settings), Questions(settings), metrics)
    stop = stop_event()
    try:
        with served_to_browsers(settings, app), PortalServer(settings, app) as server:
            metrics.export_certificate_of(server)
            while not stop.is_set():
                server.handle_request()
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        if settings.browser_port is not None:
            where += f" and port {settings.browser_port}"
        raise SettingsError(f"the portal can't be served at {where}: {error}") from error
    return OK


if __name__ == "__main__":
    run(main)
