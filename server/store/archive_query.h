#pragma once
// SQL of an ArchiveQuery. Internal to server/store.
#include <string>
#include <vector>

#include "server/store/db.h"
#include "server/store/history_reader.h"

namespace gpuq::store {

/// Archived jobs that match, without attempts and preemptions. Inside the caller's transaction;
/// throws Failure.
std::vector<ArchivedJob> find_archived_jobs(Connection& db, const ArchiveQuery& query);

/// `pattern` as SQLite's GLOB understands it: there, brackets have a meaning that ours have not.
std::string sqlite_glob(const std::string& pattern);

}  // namespace gpuq::store
