-- Holding by hand and back-off between attempts. retry_at without a back-off is the smallest time.

ALTER TABLE job_class ADD COLUMN backoff INTEGER NOT NULL DEFAULT 0 CHECK (backoff >= 0);
ALTER TABLE job ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1));
ALTER TABLE job ADD COLUMN retry_at INTEGER NOT NULL DEFAULT -9223372036854775808;
ALTER TABLE archived_job ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1));
ALTER TABLE archived_job ADD COLUMN retry_at INTEGER NOT NULL DEFAULT -9223372036854775808;
