-- From schema 2 to 3: every grid so far asked for full measurements.
ALTER TABLE planned ADD COLUMN "full" BOOLEAN;
UPDATE planned SET "full" = true;
