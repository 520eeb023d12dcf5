-- From schema 3 to 4: no placement so far had a second stream.
ALTER TABLE block_reading ADD COLUMN stream_rms_dual FLOAT;
