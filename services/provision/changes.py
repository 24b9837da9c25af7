"""What a run changed, told as it happens; a run that found all as declared says so."""

from collections.abc import Callable

NOTHING = "nothing to change"


class Changes:
    """Prints a line for each change and each thing that was left alone on purpose."""

    def __init__(self, subject: str, say: Callable[[str], None] = print) -> None:
        self._subject = subject
        self._say = say
        self._made = 0

    def note(self, change: str) -> None:
        """Something is different now."""
        self._made += 1
        self._say(f"{self._subject}: {change}")

    def left_alone(self, what: str) -> None:
        """Something differs from the declaration and stays so, because putting it right could destroy something."""
        self._say(f"{self._subject}: left alone: {what}")

    def close(self) -> None:
        """Say so when there was nothing to do."""
        if not self._made:
            self._say(f"{self._subject}: {NOTHING}")
