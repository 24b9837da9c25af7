"""Opens the running stack's portal in a browser, which needs no certificate: its address is valid once."""

import os
import sys
import webbrowser
from http import HTTPStatus

from services.portal.app import ENTRIES
from tools.embedded.ports import HOST
from tools.embedded.service import REPOSITORY
from tools.stack import StackError, page, ports, running_containers

_FILE = REPOSITORY / "build/portal-entry.html"


def new_address() -> str:
    """Get an address that opens the portal once, within ten minutes.

    Raises:
        StartupError: the stack does not run, or docker is not available.
        StackError: the portal does not respond, or refuses.
    """
    running_containers()
    try:
        entry = page("PORTAL_PORT", ENTRIES, "POST")
    except OSError as error:
        raise StackError(f"the portal does not respond: {error}; see compose/stack.sh logs portal") from error
    if entry.status != HTTPStatus.OK:
        raise StackError(f"the portal responds {entry.status} to the operator's certificate; see docs/security.md")
    return f"http://{HOST}:{ports()['PORTAL_BROWSER_PORT']}{entry.text}"


def open_in_browser(address: str) -> bool:
    """Open an address in the user's browser; return False if there is no graphical one.

    The browser gets the name of a file that only the user can read, because other users can see its command line.
    """
    if not (sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    _FILE.parent.mkdir(exist_ok=True)
    _FILE.unlink(missing_ok=True)
    with os.fdopen(os.open(_FILE, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">\n')
    return webbrowser.open(_FILE.as_uri())
