-- From schema 4 to 5: no setup so far had an encoder, and no cell paths.
ALTER TABLE setup ADD COLUMN encoder VARCHAR;
ALTER TABLE setup ADD COLUMN encoder_cosine DOUBLE;
UPDATE setup SET encoder = 'none', encoder_cosine = 0;
ALTER TABLE cell ADD COLUMN kind VARCHAR;
UPDATE cell SET kind = 'readings';
DROP VIEW IF EXISTS path_jacobian;
DROP TABLE IF EXISTS jacobian_estimate;
