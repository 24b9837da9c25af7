"""Serves agents by the Model Context Protocol, over standard input and output, until the input ends.

Settings come from GAMELAKE_* variables (docs/settings.md). `gamelake mcp` starts it for a user of the stack.
"""

from gamelake.command import command_parser
from gamelake.program import OK, run
from services.agents.server import mcp_server
from services.agents.settings import AgentSettings


def main() -> int:
    """Serve until the client closes the connection."""
    command_parser(__doc__).parse_args()
    mcp_server(AgentSettings.from_env()).run()
    return OK


if __name__ == "__main__":
    run(main)
