#pragma once
// The policy tables to and from rows. Rare and small: statements are prepared for each call. Inside
// the caller's transaction; throws Failure.
#include "core/model/policy.h"
#include "server/store/db.h"

namespace gpuq::store {

/// Makes `tables` the stored policy. Records that are no longer in it are marked removed.
void write_policy(Connection& db, const PolicyTables& tables);
/// What write_policy() stored last, each kind ordered by id.
PolicyTables read_policy(Connection& db);

}  // namespace gpuq::store
