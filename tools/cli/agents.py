"""The settings with which the MCP server serves an agent of a user of the running stack."""

import os
from collections.abc import Mapping

from gamelake.model.errors import StartupError
from tools import stack


def environment(user: str) -> Mapping[str, str]:
    """Return the environment of the MCP server; addresses and credentials that are set already take precedence.

    Args:
        user: a user of Trino.

    Raises:
        StartupError: the user has no password here.
    """
    if "GAMELAKE_TRINO_URL" in os.environ:
        return os.environ
    credentials = stack.trino_credentials(user)
    if not credentials.is_file():
        raise StartupError(f"there is no {credentials}: make up makes it for each user of contracts/access.yaml")
    # Before the environment is read, to which it adds the authority.
    address = stack.url("TRINO_PORT")
    return {**os.environ, "GAMELAKE_TRINO_URL": address, "GAMELAKE_TRINO_CREDENTIALS_FILE": str(credentials)}
