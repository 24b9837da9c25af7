"""The reasons of dead letters: one closed set for the column, the metric label and the documentation."""

from enum import StrEnum


class DeadLetterReason(StrEnum):
    """The `reason` of a dead letter; `docs/dead-letters.md` says what to do about each."""

    BAD_FRAMING = "bad_framing"
    UNKNOWN_SCHEMA = "unknown_schema"
    SCHEMA_UNAVAILABLE = "schema_unavailable"
    INVALID_SCHEMA = "invalid_schema"
    UNDECODABLE = "undecodable"
    RECORD_TOO_LARGE = "record_too_large"
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    NO_EVENT_TIME = "no_event_time"
    IMPLAUSIBLE_EVENT_TIME = "implausible_event_time"
    IMPLAUSIBLE_AMOUNT = "implausible_amount"
    TOO_LONG = "too_long"
    UNROUTABLE = "unroutable"
    TOO_MANY_PARTITIONS = "too_many_partitions"
    POISONOUS = "poisonous"
    # For objects only:
    BAD_NOTIFICATION = "bad_notification"
    FOREIGN_OBJECT = "foreign_object"
    MISSING_FILE = "missing_file"
    OVERWRITTEN_FILE = "overwritten_file"
    UNREADABLE_FILE = "unreadable_file"
    FILE_TOO_LARGE = "file_too_large"
    UNKNOWN_FIELD = "unknown_field"
