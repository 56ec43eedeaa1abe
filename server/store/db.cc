#include "server/store/db.h"

#include <sqlite3.h>

#include <cerrno>
#include <string>
#include <utility>

namespace gpuq::store {
namespace {

/// Which of our codes a SQLite result is, seen by a caller who can react.
ErrorCode code_of(int code, int system_errno) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ErrorCode::kResourceExhausted;
    case SQLITE_IOERR:
      return system_errno == ENOSPC || system_errno == EDQUOT ? ErrorCode::kResourceExhausted
                                                              : ErrorCode::kUnavailable;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
      return ErrorCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kDataLoss;
    default:
      return ErrorCode::kInternal;
  }
}

// SQLite counts what it allocates under one lock for all connections; nobody reads the count.
void keep_no_statistics() {
  static const int done = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)done;
}

}  // namespace

Connection::Connection(const std::string& file, Access access, const std::string& vfs) {
  keep_no_statistics();
  const int mode = access == Access::kReadOnly ? SQLITE_OPEN_READONLY
                                               : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(file.c_str(), &db_, mode | SQLITE_OPEN_NOMUTEX,
                                   vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) {
    const Error error{code_of(code, db_ == nullptr ? 0 : sqlite3_system_errno(db_)),
                      "opening " + file + ": " + sqlite3_errstr(code)};
    sqlite3_close(db_);
    throw Failure{error};
  }
  sqlite3_extended_result_codes(db_, 1);
}

Connection::~Connection() { sqlite3_close_v2(db_); }

void Connection::exec(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, sql.substr(0, 60));
}

std::optional<std::int64_t> Connection::query_int(std::string_view sql) {
  Statement statement(*this, sql);
  std::optional<std::int64_t> value;
  if (statement.step()) statement.read(value);
  return value;
}

std::int64_t Connection::changes() const { return sqlite3_changes64(db_); }

bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

void Connection::set_busy_timeout(std::chrono::milliseconds timeout) {
  sqlite3_busy_timeout(db_, static_cast<int>(timeout.count()));
}

void Connection::fail(int code, std::string_view what) const {
  std::string message = "store: ";
  message.append(sqlite3_errmsg(db_)).append(" (").append(std::to_string(code)).append(") in ");
  message.append(what);
  throw Failure{{code_of(code, sqlite3_system_errno(db_)), std::move(message)}};
}

Statement::Statement(Connection& db, std::string_view sql) : db_(&db) {
  const int code = sqlite3_prepare_v3(db.raw(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &stmt_, nullptr);
  if (code != SQLITE_OK) db.fail(code, sql);
}

Statement::~Statement() { sqlite3_finalize(stmt_); }

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_), stmt_(std::exchange(other.stmt_, nullptr)) {}

void Statement::run_bound() {
  sqlite3_step(stmt_);
  const int code = sqlite3_reset(stmt_);
  if (code != SQLITE_OK) db_->fail(code, sqlite3_sql(stmt_));
}

bool Statement::step() {
  if (sqlite3_step(stmt_) == SQLITE_ROW) return true;
  const int code = sqlite3_reset(stmt_);
  if (code != SQLITE_OK) db_->fail(code, sqlite3_sql(stmt_));
  return false;
}

void Statement::reset() { sqlite3_reset(stmt_); }

void Statement::bind_int(int index, std::int64_t value) {
  const int code = sqlite3_bind_int64(stmt_, index, value);
  if (code != SQLITE_OK) db_->fail(code, sqlite3_sql(stmt_));
}

void Statement::bind_text(int index, std::string_view value) {
  // A null pointer would bind NULL instead of the empty text.
  const char* data = value.data() == nullptr ? "" : value.data();
  const int code =
      sqlite3_bind_text64(stmt_, index, data, value.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) db_->fail(code, sqlite3_sql(stmt_));
}

void Statement::bind_blob(int index, std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  const int code = sqlite3_bind_blob64(stmt_, index, data, value.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) db_->fail(code, sqlite3_sql(stmt_));
}

void Statement::bind_null(int index) { sqlite3_bind_null(stmt_, index); }

std::int64_t Statement::int_at(int column) const { return sqlite3_column_int64(stmt_, column); }

std::string_view Statement::text_at(int column) const {
  const void* data = sqlite3_column_blob(stmt_, column);
  const int size = sqlite3_column_bytes(stmt_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

bool Statement::null_at(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}

void Statement::out_of_range(int column) const {
  throw Failure{{ErrorCode::kDataLoss, std::string("store: column ") +
                                           sqlite3_column_name(stmt_, column) +
                                           " holds a number out of range"}};
}

Transaction::Transaction(Connection& db, Kind kind) : db_(db) {
  db_.exec(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // A failed COMMIT may have rolled back already.
  if (db_.in_transaction()) sqlite3_exec(db_.raw(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() { db_.exec("COMMIT"); }

}  // namespace gpuq::store
