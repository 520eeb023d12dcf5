"""A store of every placement and init with invented readings, some of which are zero, beyond the range or not there."""

from pathlib import Path

from lnmeasure.store.building import Building
from lnmeasure.store.synthetic import fill

EVERY_PAIR = 495_000
"""by_block rows that give setup page all its placements and inits."""
OPEN_QUESTION = "whether L counts <blocks> or sublayers"
PLUGIN = "my_own_norm"
"""A placement that is registered, of which nothing is measured and no look is known."""

_CHANGES = f"""
    UPDATE cell SET sigma = NULL WHERE placement IN ('none', 'rezero');
    UPDATE cell SET top_grad_w2 = 0 WHERE placement = 'rezero';
    UPDATE block_reading SET grad_w2 = 0 WHERE placement = 'rezero';
    UPDATE cell SET sigma = NULL, top_grad_w2 = NULL, status = 'overflow' WHERE placement = 'keel' AND depth = 64;
    UPDATE block_reading SET grad_w2 = NULL, stream_rms = NULL WHERE placement = 'keel' AND depth = 64;
    DELETE FROM cell WHERE placement = 'completep' AND init = 'theory';
    DELETE FROM block_reading WHERE placement = 'completep' AND init = 'theory';
    DELETE FROM path_reading WHERE placement = 'completep' AND init = 'theory';
    UPDATE registered SET unconfirmed = '{OPEN_QUESTION}' WHERE name IN ('keel', 'small_wang');
    INSERT INTO registered (kind, name, equation, source) VALUES ('placement', '{PLUGIN}', 'x <- N(x) < x', 'nobody');
"""


def publish_catalogue(path: Path) -> Path:
    """Publish it at path, where none is."""
    fill(path, EVERY_PAIR)
    building = Building(path)
    building._connection.execute(_CHANGES)
    building.publish("invented", None)
    return path
