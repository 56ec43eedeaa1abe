-- What a waiting job still depends on: "job:condition,...". An ended job depends on nothing.

ALTER TABLE job ADD COLUMN depends_on TEXT NOT NULL DEFAULT '';
