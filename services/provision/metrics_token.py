"""The token by which Prometheus reads the object store's metrics: `metrics_token <CREDENTIALS >TOKEN`.

The input is the key of the user `metrics`. It never expires: a rotation of the key ends it.

Sources: RFC 7519, "JSON Web Token"; MinIO, "Prometheus metrics": signed by the user's secret key, HMAC-SHA-512.
"""

import base64
import hashlib
import hmac
import json
import sys
from collections.abc import Iterable

from gamelake.model.errors import SettingsError
from gamelake.program import OK, run

# MinIO wants a time: 2126.
_EXPIRES_AT = 4_922_899_200


def token(lines: Iterable[str]) -> str:
    """Compute the token of a key.

    Args:
        lines: the key, as AWS' programs read it from a file.

    Raises:
        SettingsError: a part of the key is missing.
    """
    values = dict(line.strip().split(" = ", 1) for line in lines if " = " in line)
    try:
        name, key = values["aws_access_key_id"], values["aws_secret_access_key"]
    except KeyError as error:
        raise SettingsError(f"the key has no {error}") from None
    parts = ({"alg": "HS512", "typ": "JWT"}, {"exp": _EXPIRES_AT, "iss": "prometheus", "sub": name})
    signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_base64(hmac.digest(key.encode(), signed.encode(), hashlib.sha512))}"


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def main() -> int:
    """Sign a token for the key on the standard input."""
    sys.stdout.write(token(sys.stdin))
    return OK


if __name__ == "__main__":
    run(main)
