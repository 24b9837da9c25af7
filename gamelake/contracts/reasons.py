"""Why a record is set aside: one closed set for the column, the metric label and the documentation."""

from enum import StrEnum


class DeadLetterReason(StrEnum):
    """The `reason` of a dead letter; `docs/dead-letters.md` says what to do about each."""

    BAD_FRAMING = "bad_framing"
    UNKNOWN_SCHEMA = "unknown_schema"
    SCHEMA_UNAVAILABLE = "schema_unavailable"
    INVALID_SCHEMA = "invalid_schema"
    UNDECODABLE = "undecodable"
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    NO_EVENT_TIME = "no_event_time"
    IMPLAUSIBLE_EVENT_TIME = "implausible_event_time"
    UNROUTABLE = "unroutable"
