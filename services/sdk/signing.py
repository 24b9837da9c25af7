"""Who sends: a game's key, and a signature over the moment and the body as it travels.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Source: RFC 2104 (HMAC); the gateway's OpenAPI document.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key of one game, and its secret."""

    key: str
    secret: str = field(repr=False)

    def headers(self, body: bytes, now: float) -> Mapping[str, str]:
        """Sign a body at a moment, in seconds since 1970 by the gateway's clock."""
        timestamp = str(int(now))
        signature = hmac.digest(self.secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()
        return {
            "gamelake-key": self.key,
            "gamelake-timestamp": timestamp,
            "gamelake-signature": signature,
        }
