"""What the tests of faults share."""

from jobs import refresh
from tests.cells import WORK

INSTANT = refresh.Options(workers=1, work=WORK)


def damage(path, content: bytes) -> None:
    """Put other bytes in a file's place."""
    path.unlink()
    path.write_bytes(content)
