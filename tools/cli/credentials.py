"""The addresses of the running stack and their users, and a secret of it."""

import msgspec

from gamelake.model.errors import StartupError
from tools.stack import COMPOSE, SECRETS, run


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An address that a service serves, and who may use it; `user` names the file of the password."""

    service: str
    name: str
    address: str
    user: str


def addresses() -> tuple[Address, ...]:
    """Return the addresses of the services that run.

    Raises:
        StackError: the stack does not run.
    """
    lines = [line.split("\t") for line in run((str(COMPOSE / "urls.sh"), "--tabs")).splitlines()]
    return tuple(
        Address(service=service, name=name, address=address, user=user) for service, name, address, user in lines
    )


def as_text(found: tuple[Address, ...]) -> str:
    """Render the addresses for a terminal."""
    return "\n".join(f"{each.name:<22} {each.address:<42} {each.user}" for each in found)


def secret_names() -> list[str]:
    """Return the names of the stack's secrets."""
    return sorted(path.name for path in SECRETS.glob("[!.]*") if path.is_file())


def secret(name: str) -> str:
    """Return the content of a file in compose/secrets.

    Raises:
        StartupError: there is no such secret.
    """
    if name not in secret_names():
        known = ", ".join(secret_names()) or "none: make up makes them"
        raise StartupError(f"there is no secret '{name}' in compose/secrets; there are {known}")
    return (SECRETS / name).read_text(encoding="utf-8")
