"""Hashes of the passwords of Trino's users: `python -m services.provision.passwords <CREDENTIALS >HASHES`.

The input has lines `username=...` and `password=...` by turns, the output a line `user:iterations:salt:hash` for each
user, as Trino's file authenticator reads them.

Source: RFC 8018, "PKCS #5", PBKDF2; Trino 476, "Password file authentication": HMAC-SHA-1.
"""

import hashlib
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator

from gamelake.model.errors import SettingsError
from gamelake.program import OK, run

# The stack's passwords are 192 random bits, which no number of iterations makes harder to guess; these are for shorter
# ones that a person has chosen. Trino hashes at each user's first login.
_ITERATIONS = 100_000
_SALT_BYTES, _HASH_BYTES = 16, 20
_USERNAME, _PASSWORD = "username=", "password="


def hashed(lines: Iterable[str], salt: Callable[[int], bytes] = secrets.token_bytes) -> Iterator[str]:
    """Yield a line of the hashes' file for each user.

    Args:
        lines: the credentials, a line with the name and a line with the password for each user.
        salt: random bytes, of the given number.

    Raises:
        SettingsError: a line is not the expected one; the message has its number, not its content.
    """
    name = ""
    for number, line in enumerate((line.rstrip("\n") for line in lines), 1):
        expected = _PASSWORD if name else _USERNAME
        value = line.removeprefix(expected)
        if value == line or not value or ":" in name + value:
            raise SettingsError(f"line {number} of the credentials must be '{expected}...', without a colon")
        if not name:
            name = value
            continue
        salted = salt(_SALT_BYTES)
        found = hashlib.pbkdf2_hmac("sha1", value.encode(), salted, _ITERATIONS, _HASH_BYTES)
        yield f"{name}:{_ITERATIONS}:{salted.hex()}:{found.hex()}"
        name = ""
    if name:
        raise SettingsError(f"the credentials of '{name}' have no password")


def main() -> int:
    """Hash what is on the standard input."""
    # Written at the end: a file of some users would lock out the others.
    sys.stdout.write("".join(f"{line}\n" for line in list(hashed(sys.stdin))))
    return OK


if __name__ == "__main__":
    run(main)
