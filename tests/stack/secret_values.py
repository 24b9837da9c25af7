"""What is secret in the stack: the values in the files, without their names."""

import re

from tests.stack.platform import SECRETS
from tools.stack import AUTHORITY

# Derived from secrets in other files.
_WITHOUT_VALUES = {"trino-password-hashes", "object-store-metrics-token"}
# As compose/secrets.sh makes them: 192 bits in hexadecimal, or 256 in base64.
_VALUE = re.compile(r"[0-9a-f]{48}|[A-Za-z0-9+/]{43}=")


# The second of three lines of a private key: the first one begins alike in all keys.
_KEY_LINE = re.compile(r"-----BEGIN PRIVATE KEY-----\n.+\n(.+)\n")


def secret_values() -> frozenset[str]:
    """All of them; each file has one at least."""
    found = {
        file.name: _VALUE.findall(file.read_text())
        for file in SECRETS.rglob("*")
        if file.is_file() and file.name not in _WITHOUT_VALUES
    }
    # Each key of a PKCS #12 file is in a PEM file, too.
    keys = [file for file in AUTHORITY.parent.glob("*.pem") if file != AUTHORITY] + [*AUTHORITY.parent.glob("*.key")]
    found |= {file.name: _KEY_LINE.findall(file.read_text()) for file in keys}
    assert all(found.values()), {name for name, values in found.items() if not values}
    return frozenset(value for values in found.values() for value in values)


def shown_in(text: str) -> list[str]:
    """Return the beginnings of the secrets that a text shows, just long enough to find them by."""
    return [f"{value[:4]}..." for value in secret_values() if value in text]
