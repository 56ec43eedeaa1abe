-- How long a job's user expects an attempt to run, in milliseconds.

ALTER TABLE job ADD COLUMN expected_run_time INTEGER CHECK (expected_run_time > 0);
ALTER TABLE archived_job ADD COLUMN expected_run_time INTEGER CHECK (expected_run_time > 0);
