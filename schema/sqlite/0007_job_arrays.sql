-- Arrays: their members have the ids behind the array's own, and rows of `job` only when something sets
-- them apart. These rows stay when the jobs are archived, so that the archive can tell members by them.

CREATE TABLE job_array (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  first_index INTEGER NOT NULL CHECK (first_index >= 0),
  last_index INTEGER NOT NULL CHECK (last_index >= first_index),
  step INTEGER NOT NULL CHECK (step >= 1),
  member_limit INTEGER NOT NULL CHECK (member_limit >= 0),
  made INTEGER NOT NULL CHECK (made >= 0),
  dropped_at INTEGER NOT NULL,
  archived_succeeded INTEGER NOT NULL CHECK (archived_succeeded >= 0),
  archived_failed INTEGER NOT NULL CHECK (archived_failed >= 0),
  archived_exit_code INTEGER NOT NULL
) STRICT;
ALTER TABLE job ADD COLUMN over_array_limit INTEGER NOT NULL DEFAULT 0
  CHECK (over_array_limit IN (0, 1));
