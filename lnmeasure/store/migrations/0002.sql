-- From schema 1 to 2: every cell so far is a full measurement. Tables that schema 2 adds begin empty.
ALTER TABLE cell ADD COLUMN "full" BOOLEAN;
UPDATE cell SET "full" = true;
ALTER TABLE cell ADD COLUMN peak_mb FLOAT;
