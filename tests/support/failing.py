"""Functions that fail, in the place of those that a test wants to fail."""

from collections.abc import Callable
from typing import NoReturn


def failing(error: BaseException) -> Callable[..., NoReturn]:
    """Return a function that raises an error, whatever it is called with."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail
