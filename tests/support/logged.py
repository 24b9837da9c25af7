"""What a test reads from the log."""

from collections.abc import Mapping

import pytest

from gamelake.model.logs import LogEvent


def logged(caplog: pytest.LogCaptureFixture, event: str) -> list[Mapping[str, object]]:
    """The fields of each log line with this event, in their order."""
    lines = [record.msg for record in caplog.records]
    return [line.fields for line in lines if isinstance(line, LogEvent) and line.name == event]
