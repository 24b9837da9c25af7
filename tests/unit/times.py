"""Texts that are times by RFC 3339, and texts that are not, though other parsers accept them."""

from datetime import UTC, datetime


def valid_times(moment: datetime) -> list[str]:
    """Texts that say a moment, to the second."""
    plain = f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    return [
        f"{plain}Z",
        f"{plain}z",
        f"{plain}Z".lower(),
        f"{plain}-00:00",
        f"{plain}.000000000+00:00",
        f"{plain}.0z".replace("T", " "),
    ]


def invalid_times(moment: datetime) -> list[str]:
    plain = f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    return [
        plain,
        plain[:10],
        f"{plain[:16]}Z",
        f"{plain},5Z",
        f"{plain}.Z",
        f"{plain}+01",
        f"{plain}+24:00",
        f"{plain.replace('T', 'x')}Z",
        f"{plain.replace('-', '').replace(':', '')}Z",
        f"{moment:%G-W%V-%u}T10:00:00Z",
        "2026-02-30T10:00:00Z",
        "0000-01-01T00:00:00Z",
        f" {plain}Z",
        f'{plain}Z","{plain}Z',
        "",
    ]
