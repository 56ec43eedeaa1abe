#include "server/store/migrate.h"

#include <filesystem>

#include "server/store/data_dir.h"

namespace gpuq::store {
namespace {

void refuse(const std::string& message) {
  throw Failure{{ErrorCode::kFailedPrecondition, message}};
}

void check_ours(Connection& db, const std::string& file) {
  const auto id = db.query_int("PRAGMA application_id").value_or(0);
  const auto tables = db.query_int("SELECT count(*) FROM sqlite_schema").value_or(0);
  if (id != kApplicationId && (id != 0 || tables != 0)) {
    refuse(file + " is a database of another program; name another data directory");
  }
}

/// Complete or not there: made under another name, synced, then renamed.
void back_up(Connection& db, const std::string& file, int version) {
  const std::string backup = file + ".v" + std::to_string(version) + ".backup";
  const std::string unfinished = backup + ".tmp";
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  db.run("VACUUM INTO ?", unfinished);
  const auto check = [](const Result<void>& result) {
    if (!result) throw Failure{result.error()};
  };
  check(sync_path(unfinished));
  std::error_code error;
  std::filesystem::rename(unfinished, backup, error);
  if (error) {
    throw Failure{{ErrorCode::kUnavailable, "cannot make " + backup + ": " + error.message()}};
  }
  check(sync_path(std::filesystem::path(file).parent_path()));
}

void run(Connection& db, const Migration& migration) {
  Transaction transaction(db, Transaction::Kind::kWrite);
  db.exec(migration.sql);
  if (db.query_int("SELECT count(*) FROM pragma_foreign_key_check").value_or(0) != 0) {
    throw Failure{{ErrorCode::kDataLoss, std::string("migration ") + migration.name +
                                             " leaves rows without their parents"}};
  }
  db.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
  db.exec("PRAGMA user_version = " + std::to_string(migration.version));
  transaction.commit();
}

}  // namespace

int schema_version(Connection& db) {
  return static_cast<int>(db.query_int("PRAGMA user_version").value_or(0));
}

void migrate(Connection& db, const std::string& file, std::span<const Migration> migrations) {
  check_ours(db, file);
  const int version = schema_version(db);
  const auto newest = static_cast<int>(migrations.size());
  if (version > newest) {
    refuse(file + " has schema version " + std::to_string(version) +
           ", this server knows only up to " + std::to_string(newest) +
           "; start the newer server, or restore a backup made by this one");
  }
  if (version == newest) return;
  if (version > 0) back_up(db, file, version);
  for (const Migration& migration : migrations.subspan(static_cast<std::size_t>(version))) {
    run(db, migration);
  }
}

}  // namespace gpuq::store
