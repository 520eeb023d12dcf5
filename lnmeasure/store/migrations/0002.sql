-- From schema 1 to 2: every cell so far is a full measurement. Tables that schema 2 adds begin empty.
ALTER TABLE cell ADD COLUMN "full" BOOLEAN;
UPDATE cell SET "full" = true;
ALTER TABLE cell ADD COLUMN peak_mb FLOAT;
CREATE TABLE planned (
    grid VARCHAR, "key" VARCHAR, setup VARCHAR, placement VARCHAR, init VARCHAR, depth INTEGER, seed INTEGER, skipped VARCHAR
);
