"""Log lines as events: a stable name and fields, rendered as text for people or as JSON for machines.

`log = event_logger(__name__)`, then `log.warning("lease_not_renewed", lease=name, error=error, action="tries again")`.
docs/reference/log-events.md lists all events.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from gamelake.model.environment import Environment

# Libraries that log each call.
_TALKATIVE = ("great_expectations", "httpx2", "mcp", "openlineage", "py4j", "sqlglot")

_BARE = re.compile(r'[^\s"=]+')


@dataclass(frozen=True, slots=True)
class LogEvent:
    """The content of a log line; `str` renders it as `name field=value`, which a process without a set-up prints.

    Attributes:
        name: in snake_case; machines count by it.
        fields: values that are not JSON, such as errors, are rendered by `str`.

    Example:
        >>> print(LogEvent("lease_not_renewed", {"lease": "compaction", "attempt": 2}))
        lease_not_renewed lease=compaction attempt=2
    """

    name: str
    fields: Mapping[str, object]

    def __str__(self) -> str:
        """The event as text, on one line."""
        return " ".join((self.name, *(f"{name}={_text(value)}" for name, value in self.fields.items())))


class EventLogger:
    """Logs events by the standard library's logger of a name."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **fields: object) -> None:
        """Log what an operator may want to know later."""
        self._log(logging.INFO, LogEvent(event, fields))

    def warning(self, event: str, *, exc_info: bool = False, **fields: object) -> None:
        """Log what went wrong and is handled; `exc_info` adds the traceback of the error that is being handled."""
        self._log(logging.WARNING, LogEvent(event, fields), exc_info=exc_info)

    def error(self, event: str, **fields: object) -> None:
        """Log what went wrong and needs an operator."""
        self._log(logging.ERROR, LogEvent(event, fields))

    def exception(self, event: str, **fields: object) -> None:
        """Log an error with the traceback of the one that is being handled."""
        self._log(logging.ERROR, LogEvent(event, fields), exc_info=True)

    def _log(self, level: int, event: LogEvent, *, exc_info: bool = False) -> None:
        self._logger.log(level, event, exc_info=exc_info, stacklevel=3)


def event_logger(name: str) -> EventLogger:
    """Return the logger of a module or program.

    Without a set-up its warnings and errors go to stderr, nothing to stdout.
    """
    return EventLogger(name)


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


def set_up_logs(variables: Mapping[str, str]) -> None:
    """Write all log lines of this process, also those of libraries, to stderr.

    Args:
        variables: the environment; GAMELAKE_LOG_FORMAT chooses the format.

    Raises:
        SettingsError: there is no such format.
    """
    form = Environment(variables).choice("GAMELAKE_LOG_FORMAT", LogFormat, LogFormat.TEXT)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for library in _TALKATIVE:
        logging.getLogger(library).setLevel(logging.WARNING)


class TextFormatter(logging.Formatter):
    """`<time> <LEVEL> <logger> <event> <field>=<value> ...`; a traceback follows on lines of its own."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002, RUF100 # the base class's
        """Return the time in ISO 8601, UTC."""
        return _time(record)


class JsonFormatter(logging.Formatter):
    """One JSON object on one line: `time`, `level`, `logger`, `event`, its fields, and the traceback as `exception`.

    A library's line is the event `library_message` with the field `message`; with `extra={"event": ...}` that event.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Render a line."""
        event = record.msg
        if not isinstance(event, LogEvent):
            event = LogEvent(getattr(record, "event", "library_message"), {"message": record.getMessage()})
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event.name,
            **event.fields,
        }
        if record.exc_info and record.exc_info[0]:
            line["exception"] = self.formatException(record.exc_info)
        return _json(line)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: object) -> str:
    """A value without quotes if it is one word, otherwise as JSON."""
    if not isinstance(value, bool | int | float | list | tuple | dict) and value is not None:
        value = str(value)
    if isinstance(value, str) and value.isprintable() and _BARE.fullmatch(value):
        return value
    return _json(value)


def _json(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    # Control characters of a terminal, line separators and lone surrogates, which names of files may have.
    return text if text.isprintable() else json.dumps(value, default=str)
