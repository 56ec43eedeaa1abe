#pragma once
// Reads records back. Inside the caller's transaction, so that all of them are of one moment.
// Throws Failure; kDataLoss when rows contradict each other.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/rows.h"
#include "server/store/db.h"

namespace gpuq::store {

/// Everything live, each kind ordered by id.
StoredState read_state(Connection& db);

/// The array whose job or member `job` is, wherever it is; null when it is of none.
std::optional<JobArray> read_array_of(Connection& db, JobId job);

/// Job classes; `condition` is the WHERE of job_class (alias c) and may hold one parameter.
std::vector<JobClass> read_classes(Connection& db, std::string_view condition,
                                   std::int64_t parameter = 0);

/// Attempts with their instances, by job and number, from "attempt" and "allocation", with `prefix`
/// before the tables' names ("" or "archived_"). `job` 0: of all jobs.
std::vector<Attempt> read_attempts(Connection& db, std::string_view prefix, JobId job);

/// Preemption records by job and id, likewise.
std::vector<Preemption> read_preemptions(Connection& db, std::string_view prefix, JobId job);

}  // namespace gpuq::store
