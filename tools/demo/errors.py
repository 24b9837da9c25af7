"""What can go wrong with a demo."""

from gamelake.errors import GamelakeError


class DemoError(GamelakeError):
    """The run could not be brought to its end."""
