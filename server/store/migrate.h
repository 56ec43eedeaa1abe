#pragma once
// Brings a database file to the newest schema: forward only, one transaction a migration. The
// schema's version is SQLite's user_version. Throws Failure.
#include <span>
#include <string>

#include "server/store/db.h"
#include "server/store/migrations.h"

namespace gpuq::store {

/// Marks a database file as ours (SQLite's application_id): "gpuq".
inline constexpr int kApplicationId = 0x67707571;

/// Runs what is missing of `migrations`. Before it changes a file that has a schema already, it
/// leaves a copy beside it, `FILE.vN.backup` with N the old version. kFailedPrecondition: the file
/// is of a newer schema, or no database of gpuq.
void migrate(Connection& db, const std::string& file, std::span<const Migration> migrations);

/// Version of the schema in `db`; 0 = none yet.
int schema_version(Connection& db);

}  // namespace gpuq::store
