-- Decayed usage: what was charged to whom until charged_at, and what is held since. See core/model/usage.h.

ALTER TABLE scheduling_policy ADD COLUMN half_life INTEGER NOT NULL DEFAULT 86400000 CHECK (half_life > 0);

CREATE TABLE usage (
  share INTEGER NOT NULL CHECK (share > 0),
  kind INTEGER NOT NULL CHECK (kind >= 1),
  unit INTEGER NOT NULL CHECK (unit > 0),
  name TEXT NOT NULL,
  value INTEGER NOT NULL CHECK (value >= 0),  -- 2^-32 of a milli-unit
  charged_at INTEGER NOT NULL,
  held INTEGER NOT NULL CHECK (held >= 0),
  PRIMARY KEY (share, kind, unit, name)
) STRICT, WITHOUT ROWID;
