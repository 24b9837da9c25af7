"""The frame of a command: its options, the question before it changes something, and its result as JSON."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from datetime import date

import msgspec

from gamelake.model.choices import Chosen, chosen
from gamelake.program import OK


def command_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command; its help shows the description, the docstring of the module, as it is."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    return argparse.ArgumentParser(
        # As an operator starts it. Python before 3.14 names the file, which is `__main__.py` for every package.
        prog=f"python -m {module.name.removesuffix('.__main__')}" if module else None,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the `type` of an argument that is a whole number from `least` to `most`; None: of any size.

    Example:
        >>> whole(1, 10)("3")
        3
    """
    bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"

    def parse(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least or (most is not None and found > most):
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number {bounds}")
        return found

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    """Return the `type` of an argument that is a number from `least` to `most`."""

    def parse(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least:g} to {most:g}")
        return found

    return parse


def day(text: str) -> date:
    """Parse a day; for the `type` of an argument.

    Raises:
        ArgumentTypeError: the text is not a day.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a day, such as 2026-11-29") from error


def one_of(known: Iterable[Chosen]) -> Callable[[str], Chosen]:
    """Return the `type` of an argument that is one of some names."""
    names = list(known)

    def name(text: str) -> Chosen:
        try:
            return chosen(names, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"'{text}' is unknown; {error}") from error

    return name


def add_confirmation(parser: argparse.ArgumentParser, dry_run: str) -> None:
    """Add `--dry-run` and `--yes` to a command that asks before it changes something.

    Args:
        parser: of the command.
        dry_run: the help of `--dry-run`.
    """
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def require_answer(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, *, reads_input: bool = False
) -> None:
    """End the command with exit code 2 if it would have to ask, and no person can answer.

    Args:
        parser: of the command.
        arguments: with `dry_run` and `yes`.
        reads_input: whether the command reads something else from its standard input.
    """
    if not (arguments.yes or arguments.dry_run or (sys.stdin.isatty() and not reads_input)):
        parser.error("no terminal to ask for confirmation: use --yes or --dry-run")


def is_confirmed(question: str, planned: object = None) -> bool:
    """Ask at the terminal, and return True if the answer is yes; without an answer, as in cron, it is no.

    Args:
        question: what the person agrees to.
        planned: shown before the question, as JSON.
    """
    if planned is not None:
        print(as_json(planned), file=sys.stderr)
    try:
        return input(f"{question} [y/N] ").strip() in {"y", "yes"}
    except EOFError:
        return False


def print_result(result: object) -> int:
    """Print the result of a command as one JSON document, and return exit code 0.

    Example:
        >>> print_result({"rows": 3})
        {
          "rows": 3
        }
        0
    """
    print(as_json(result))
    return OK


def as_json(found: object) -> str:
    """Return a value as an indented JSON document."""
    return msgspec.json.format(msgspec.json.encode(found)).decode()
