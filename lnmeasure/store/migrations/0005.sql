-- From schema 4 to 5: no setup so far had an encoder.
ALTER TABLE setup ADD COLUMN encoder VARCHAR;
ALTER TABLE setup ADD COLUMN encoder_cosine DOUBLE;
UPDATE setup SET encoder = 'none', encoder_cosine = 0;
