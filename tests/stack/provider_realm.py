"""The realm of the provider in tests: compose's, with tokens that soon expire, and two clients that are not Trino."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.stack.platform import ROOT

TOKEN_SECONDS = 30
# Tokens of the first are as those for Trino, except the audience. Those of the second have none, and no user of Trino.
OTHER_CLIENT, CLIENT_WITHOUT_AUDIENCE = "other", "without-audience"
_REALM = ROOT / "compose/keycloak/realm.json"


def realm() -> dict[str, Any]:
    """The realm for Keycloak to import; without secrets, which the entrypoint adds."""
    made: dict[str, Any] = json.loads(_REALM.read_text(encoding="utf-8"))
    made["accessTokenLifespan"] = TOKEN_SECONDS
    (trino,) = made["clients"]
    mappers = json.loads(json.dumps(trino["protocolMappers"]).replace('"trino"', f'"{OTHER_CLIENT}"'))
    made["clients"] += [_client(OTHER_CLIENT, mappers), _client(CLIENT_WITHOUT_AUDIENCE, [])]
    return made


def _client(name: str, mappers: list[dict[str, Any]]) -> dict[str, Any]:
    """A client that gets tokens for a password."""
    return {
        "clientId": name,
        "publicClient": True,
        "standardFlowEnabled": False,
        "directAccessGrantsEnabled": True,
        "protocolMappers": mappers,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(realm(), indent=2), encoding="utf-8")
