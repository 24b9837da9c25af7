"""Makes the portal's application from the environment, in the process that the server starts for it."""

import os

from gamelake.model.logs import set_up_logs
from gamelake.program import leave_pandas_out
from services.portal.app import PortalApp
from services.portal.figures import figure_source
from services.portal.metrics import metrics_of_process
from services.portal.questions import Questions
from services.portal.settings import PortalSettings


def create() -> PortalApp:
    """The application."""
    set_up_logs(os.environ)
    leave_pandas_out()
    settings = PortalSettings.from_env()
    return PortalApp(settings, figure_source(settings), Questions(settings), metrics_of_process(settings.tls))
