"""The one clock of the store: UTC, without a zone, as the store keeps it."""

from datetime import UTC, datetime


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC).replace(tzinfo=None)
