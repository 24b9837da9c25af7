"""What keeps a service from being made ready, grouped by what must happen next."""

from gamelake.errors import StartupError, TransientError


class ServiceSilentError(TransientError):
    """A service gave no usable answer while the patience lasted."""


class ServiceRefusedError(StartupError):
    """A service answered that it won't: the credentials or the declaration are wrong."""
