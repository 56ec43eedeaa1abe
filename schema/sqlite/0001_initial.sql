-- The first schema. Conventions:
--  * times are core time in ms, durations are ms, amounts are milli-units, booleans are 0 or 1;
--  * 0 in a column that names another record means "none"; such columns have no foreign key;
--  * the hot tables (job, attempt, allocation, preemption, booking, event) have no secondary index:
--    memory is the index while a job lives;
--  * what belongs to a job is keyed by the job first, so that it lies together;
--  * policy records and nodes are never deleted, only marked `removed`, so that the archive can name
--    them for ever and no delete has to search the hot tables;
--  * lists that are only read and written whole are text: "a:b,a:b" (server/store/compact_list.h).

CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  store_id TEXT NOT NULL CHECK (length(store_id) = 36),
  epoch INTEGER NOT NULL CHECK (epoch >= 0),
  last_time INTEGER NOT NULL,
  next_job INTEGER NOT NULL CHECK (next_job >= 1),
  next_attempt INTEGER NOT NULL CHECK (next_attempt >= 1),
  next_event INTEGER NOT NULL CHECK (next_event >= 1),
  next_class INTEGER NOT NULL CHECK (next_class >= 1),
  next_preemption INTEGER NOT NULL CHECK (next_preemption >= 1),
  next_node INTEGER NOT NULL CHECK (next_node >= 1),
  policy_next_id INTEGER NOT NULL CHECK (policy_next_id >= 1),
  policy_builtin INTEGER NOT NULL CHECK (policy_builtin IN (0, 1)),
  probes INTEGER NOT NULL DEFAULT 0  -- raised by writes that only try whether writing works
) STRICT;

-- Policy -------------------------------------------------------------------------------------

CREATE TABLE unit (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL,
  gpu_model TEXT NOT NULL,
  gpus INTEGER NOT NULL CHECK (gpus >= 0),
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX unit_name ON unit (name) WHERE removed = 0;

CREATE TABLE environment (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX environment_name ON environment (name) WHERE removed = 0;

CREATE TABLE environment_label (
  environment INTEGER NOT NULL REFERENCES environment (id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (environment, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE environment_limit (
  environment INTEGER NOT NULL REFERENCES environment (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  unit TEXT NOT NULL,
  max_capacity INTEGER NOT NULL CHECK (max_capacity >= 0),
  PRIMARY KEY (environment, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE scheduling_policy (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
  idle_order INTEGER NOT NULL CHECK (idle_order >= 1),
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX scheduling_policy_name ON scheduling_policy (name) WHERE removed = 0;

CREATE TABLE job_queue (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL,
  priority INTEGER NOT NULL,
  scheduling_policy TEXT NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  deleting INTEGER NOT NULL CHECK (deleting IN (0, 1)),
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX job_queue_name ON job_queue (name) WHERE removed = 0;

CREATE TABLE queue_environment (
  queue INTEGER NOT NULL REFERENCES job_queue (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  environment TEXT NOT NULL,
  PRIMARY KEY (queue, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE time_limit_action (
  queue INTEGER NOT NULL REFERENCES job_queue (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  reason TEXT NOT NULL,
  max_time INTEGER NOT NULL CHECK (max_time >= 0),
  PRIMARY KEY (queue, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE quota_share (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  queue INTEGER NOT NULL REFERENCES job_queue (id),
  name TEXT NOT NULL,
  strategy INTEGER NOT NULL CHECK (strategy BETWEEN 1 AND 3),
  borrow_limit INTEGER NOT NULL CHECK (borrow_limit >= -1),
  in_share_preemption INTEGER NOT NULL CHECK (in_share_preemption IN (0, 1)),
  min_runtime INTEGER NOT NULL CHECK (min_runtime >= 0),
  grace INTEGER CHECK (grace >= 0),
  head_wait_limit INTEGER CHECK (head_wait_limit >= 0),
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  deleting INTEGER NOT NULL CHECK (deleting IN (0, 1)),
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX quota_share_name ON quota_share (queue, name) WHERE removed = 0;

CREATE TABLE share_limit (
  share INTEGER NOT NULL REFERENCES quota_share (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  unit TEXT NOT NULL,
  max_capacity INTEGER NOT NULL CHECK (max_capacity >= 0),
  PRIMARY KEY (share, position)
) STRICT, WITHOUT ROWID;

-- Nodes --------------------------------------------------------------------------------------

CREATE TABLE node (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL,
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  link INTEGER NOT NULL CHECK (link BETWEEN 1 AND 3),
  admin INTEGER NOT NULL CHECK (admin BETWEEN 1 AND 3),
  healthy INTEGER NOT NULL CHECK (healthy IN (0, 1)),
  health_reason TEXT NOT NULL,
  environment INTEGER NOT NULL CHECK (environment >= 0),
  boot_id TEXT NOT NULL,
  state_dir_id TEXT NOT NULL,
  agent_version TEXT NOT NULL,
  address TEXT NOT NULL,
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;

CREATE TABLE node_label (
  node INTEGER NOT NULL REFERENCES node (id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (node, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE device (
  node INTEGER NOT NULL REFERENCES node (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  uuid TEXT NOT NULL,
  model TEXT NOT NULL,
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  pci_address TEXT NOT NULL,
  usable INTEGER NOT NULL CHECK (usable IN (0, 1)),
  charged INTEGER NOT NULL CHECK (charged IN (0, 1)),
  PRIMARY KEY (node, position)
) STRICT, WITHOUT ROWID;

-- Jobs ---------------------------------------------------------------------------------------

-- A dropped class stays (live = 0) for the archived jobs that have it.
CREATE TABLE job_class (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  instances INTEGER NOT NULL CHECK (instances >= 1),
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  topology_label TEXT NOT NULL,
  topology_required INTEGER NOT NULL CHECK (topology_required IN (0, 1)),
  timeout INTEGER CHECK (timeout >= 0),
  grace INTEGER CHECK (grace >= 0),
  preemptible INTEGER NOT NULL CHECK (preemptible IN (0, 1)),
  exit_zero_after_stop_succeeds INTEGER NOT NULL CHECK (exit_zero_after_stop_succeeds IN (0, 1)),
  preemption_retries INTEGER,
  max_attempts INTEGER NOT NULL CHECK (max_attempts >= 1),
  live INTEGER NOT NULL DEFAULT 1 CHECK (live IN (0, 1))
) STRICT;
CREATE INDEX job_class_live ON job_class (id) WHERE live = 1;

CREATE TABLE class_unit (
  class INTEGER NOT NULL REFERENCES job_class (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  unit INTEGER NOT NULL REFERENCES unit (id),
  count INTEGER NOT NULL CHECK (count >= 0),
  PRIMARY KEY (class, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE class_exit_rule (
  class INTEGER NOT NULL REFERENCES job_class (id),
  position INTEGER NOT NULL CHECK (position >= 0),
  on_status_reason TEXT NOT NULL,
  on_exit_code TEXT NOT NULL,
  action INTEGER NOT NULL CHECK (action BETWEEN 1 AND 2),
  PRIMARY KEY (class, position)
) STRICT, WITHOUT ROWID;

-- Of live and archived jobs alike: it never changes, so it need not move.
CREATE TABLE job_spec (
  job INTEGER PRIMARY KEY CHECK (job > 0),
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE job (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  class INTEGER NOT NULL REFERENCES job_class (id),
  queue INTEGER NOT NULL REFERENCES job_queue (id),
  share INTEGER NOT NULL CHECK (share >= 0),
  priority INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 8),
  terminating INTEGER NOT NULL CHECK (terminating IN (0, 1)),
  attempt_count INTEGER NOT NULL CHECK (attempt_count >= 0),
  counted_attempts INTEGER NOT NULL CHECK (counted_attempts >= 0),
  node_losses INTEGER NOT NULL CHECK (node_losses >= 0),
  preemptions INTEGER NOT NULL CHECK (preemptions >= 0),
  attempt INTEGER NOT NULL CHECK (attempt >= 0),
  created_at INTEGER NOT NULL,
  runnable_since INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  exit_code INTEGER NOT NULL,
  name TEXT NOT NULL,
  user TEXT NOT NULL,
  status_reason TEXT NOT NULL
) STRICT;

CREATE TABLE attempt (
  job INTEGER NOT NULL REFERENCES job (id),
  number INTEGER NOT NULL CHECK (number >= 1),
  id INTEGER NOT NULL CHECK (id > 0),
  share INTEGER NOT NULL CHECK (share >= 0),
  unit INTEGER NOT NULL CHECK (unit >= 0),
  demand INTEGER NOT NULL CHECK (demand >= 0),
  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 8),
  stop INTEGER NOT NULL CHECK (stop BETWEEN 0 AND 5),
  outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 7),
  lost_to_node INTEGER NOT NULL CHECK (lost_to_node IN (0, 1)),
  scheduled_at INTEGER NOT NULL,
  running_at INTEGER NOT NULL,
  stop_at INTEGER NOT NULL,
  grace INTEGER NOT NULL CHECK (grace >= 0),
  ended_at INTEGER NOT NULL,
  exit_code INTEGER NOT NULL,
  status_reason TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- What each instance of an attempt uses. devices: "device:milli:awaited_attempt,...".
CREATE TABLE allocation (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  instance INTEGER NOT NULL CHECK (instance >= 0),
  node INTEGER NOT NULL REFERENCES node (id),
  devices TEXT NOT NULL,
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  awaited TEXT NOT NULL,  -- "attempt:cpus:memory_mib,..."
  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
  exit_code INTEGER NOT NULL,
  signalled INTEGER NOT NULL CHECK (signalled IN (0, 1)),
  start_failed INTEGER NOT NULL CHECK (start_failed IN (0, 1)),
  PRIMARY KEY (job, number, instance),
  FOREIGN KEY (job, number) REFERENCES attempt (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE booking (
  job INTEGER PRIMARY KEY REFERENCES job (id),
  share INTEGER NOT NULL CHECK (share >= 0),
  unit INTEGER NOT NULL CHECK (unit >= 0),
  demand INTEGER NOT NULL CHECK (demand >= 0),
  lacking INTEGER NOT NULL CHECK (lacking IN (0, 1)),
  made_at INTEGER NOT NULL,
  victims TEXT NOT NULL  -- "attempt,attempt,..."
) STRICT;

CREATE TABLE booking_part (
  job INTEGER NOT NULL REFERENCES booking (job),
  instance INTEGER NOT NULL CHECK (instance >= 0),
  node INTEGER NOT NULL CHECK (node >= 0),
  devices TEXT NOT NULL,
  cpus INTEGER NOT NULL CHECK (cpus >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  awaited TEXT NOT NULL,
  PRIMARY KEY (job, instance)
) STRICT, WITHOUT ROWID;

CREATE TABLE preemption (
  job INTEGER NOT NULL REFERENCES job (id),
  id INTEGER NOT NULL CHECK (id > 0),
  attempt INTEGER NOT NULL CHECK (attempt > 0),
  beneficiary INTEGER NOT NULL CHECK (beneficiary >= 0),
  rule INTEGER NOT NULL CHECK (rule BETWEEN 1 AND 2),
  ending INTEGER NOT NULL CHECK (ending BETWEEN 0 AND 3),
  handed INTEGER NOT NULL CHECK (handed >= 0),
  at INTEGER NOT NULL,
  lost_unit_ms INTEGER NOT NULL CHECK (lost_unit_ms >= 0),
  end_rule TEXT NOT NULL,
  PRIMARY KEY (job, id)
) STRICT, WITHOUT ROWID;

-- Answers to repeated submissions. jobs: "first:count,...".
CREATE TABLE client_token (
  token TEXT PRIMARY KEY,
  body_hash INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  jobs TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Append-only: history, watch streams, audit.
CREATE TABLE event (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  at INTEGER NOT NULL,
  wall_ms INTEGER NOT NULL,
  type INTEGER NOT NULL CHECK (type BETWEEN 1 AND 255),
  actor TEXT NOT NULL,
  job INTEGER NOT NULL CHECK (job >= 0),
  attempt INTEGER NOT NULL CHECK (attempt >= 0),
  queue INTEGER NOT NULL CHECK (queue >= 0),
  share INTEGER NOT NULL CHECK (share >= 0),
  node INTEGER NOT NULL CHECK (node >= 0),
  job_state INTEGER NOT NULL CHECK (job_state BETWEEN 1 AND 8),
  detail TEXT NOT NULL
) STRICT;

-- The archive: ended jobs that left memory. Written in large batches, read by history ---------

CREATE TABLE archived_job (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  class INTEGER NOT NULL REFERENCES job_class (id),
  queue INTEGER NOT NULL REFERENCES job_queue (id),
  share INTEGER NOT NULL CHECK (share >= 0),
  priority INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK (state BETWEEN 7 AND 8),
  terminating INTEGER NOT NULL CHECK (terminating IN (0, 1)),
  attempt_count INTEGER NOT NULL,
  counted_attempts INTEGER NOT NULL,
  node_losses INTEGER NOT NULL,
  preemptions INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  runnable_since INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  exit_code INTEGER NOT NULL,
  name TEXT NOT NULL,
  user TEXT NOT NULL,
  status_reason TEXT NOT NULL
) STRICT;
CREATE INDEX archived_job_user ON archived_job (user);
CREATE INDEX archived_job_queue ON archived_job (queue);
CREATE INDEX archived_job_share ON archived_job (share);
CREATE INDEX archived_job_ended_at ON archived_job (ended_at);

CREATE TABLE archived_attempt (
  job INTEGER NOT NULL REFERENCES archived_job (id),
  number INTEGER NOT NULL CHECK (number >= 1),
  id INTEGER NOT NULL CHECK (id > 0),
  share INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  demand INTEGER NOT NULL,
  state INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  lost_to_node INTEGER NOT NULL CHECK (lost_to_node IN (0, 1)),
  scheduled_at INTEGER NOT NULL,
  running_at INTEGER NOT NULL,
  stop_at INTEGER NOT NULL,
  grace INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  exit_code INTEGER NOT NULL,
  status_reason TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE archived_allocation (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  instance INTEGER NOT NULL CHECK (instance >= 0),
  node INTEGER NOT NULL REFERENCES node (id),
  devices TEXT NOT NULL,
  cpus INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  awaited TEXT NOT NULL,
  state INTEGER NOT NULL,
  exit_code INTEGER NOT NULL,
  signalled INTEGER NOT NULL CHECK (signalled IN (0, 1)),
  start_failed INTEGER NOT NULL CHECK (start_failed IN (0, 1)),
  PRIMARY KEY (job, number, instance),
  FOREIGN KEY (job, number) REFERENCES archived_attempt (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE archived_preemption (
  job INTEGER NOT NULL REFERENCES archived_job (id),
  id INTEGER NOT NULL CHECK (id > 0),
  attempt INTEGER NOT NULL,
  beneficiary INTEGER NOT NULL,
  rule INTEGER NOT NULL CHECK (rule BETWEEN 1 AND 2),
  ending INTEGER NOT NULL CHECK (ending BETWEEN 0 AND 3),
  handed INTEGER NOT NULL,
  at INTEGER NOT NULL,
  lost_unit_ms INTEGER NOT NULL,
  end_rule TEXT NOT NULL,
  PRIMARY KEY (job, id)
) STRICT, WITHOUT ROWID;
