#pragma once
// Owner types over SQLite's C interface: Connection, Statement, Transaction. Inside server/store a
// failed call throws Failure, which the public classes turn into a Result; so a transaction that is
// not committed rolls back by itself. A connection and its statements belong to one thread at a
// time.
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/amount.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gpuq::store {

/// A failed SQLite call. Never leaves server/store.
struct Failure {
  Error error;
};

/// Bytes that are bound and read as BLOB instead of TEXT.
struct BlobRef {
  std::string_view bytes;
};

enum class Access { kReadWrite, kReadOnly };

class Connection {
 public:
  /// Opens `file`, which is made if missing and writable. `vfs` empty: the system's.
  Connection(const std::string& file, Access access, const std::string& vfs);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs statements that return nothing of interest.
  void exec(const std::string& sql);
  /// Runs one statement with bound values, prepared for this call: for rare statements.
  template <typename... Args>
  void run(std::string_view sql, const Args&... args);
  /// First column of the first row, or nothing.
  std::optional<std::int64_t> query_int(std::string_view sql);
  /// Rows that the last INSERT, UPDATE or DELETE touched.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] bool in_transaction() const;
  /// How long a call waits for another connection's lock.
  void set_busy_timeout(std::chrono::milliseconds timeout);
  [[nodiscard]] sqlite3* raw() const { return db_; }
  /// Throws what the last call on this connection failed with.
  [[noreturn]] void fail(int code, std::string_view what) const;

 private:
  sqlite3* db_ = nullptr;
};

/// A prepared statement. Values are bound by position and type.
class Statement {
 public:
  Statement(Connection& db, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  /// Binds all parameters, runs to the end and resets.
  template <typename... Args>
  void run(const Args&... args) {
    bind_all(args...);
    run_bound();
  }
  /// Binds all parameters; follow with step(). Bound text must outlive the steps.
  template <typename... Args>
  void bind_all(const Args&... args) {
    int index = 0;
    (bind(++index, args), ...);
  }
  template <typename T>
  void bind(int index, const T& value);
  void run_bound();
  /// Next row; false (and reset) after the last.
  bool step();
  void reset();

  /// Reads the row's columns from `first` on into `values`.
  template <typename... Args>
  void read_from(int first, Args&... values) const {
    int index = first;
    (get(index++, values), ...);
  }
  template <typename... Args>
  void read(Args&... values) const {
    read_from(0, values...);
  }
  template <typename T>
  void get(int column, T& value) const;

 private:
  void bind_int(int index, std::int64_t value);
  void bind_text(int index, std::string_view value);
  void bind_blob(int index, std::string_view value);
  void bind_null(int index);
  [[nodiscard]] std::int64_t int_at(int column) const;
  [[nodiscard]] std::string_view text_at(int column) const;
  [[nodiscard]] bool null_at(int column) const;
  [[noreturn]] void out_of_range(int column) const;

  Connection* db_ = nullptr;
  sqlite3_stmt* stmt_ = nullptr;
};

/// BEGIN; rolls back unless committed.
class Transaction {
 public:
  enum class Kind { kRead, kWrite };
  Transaction(Connection& db, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Connection& db_;
};

template <typename T>
inline constexpr bool kIsStrongId = false;
template <typename Tag, typename Rep>
inline constexpr bool kIsStrongId<StrongId<Tag, Rep>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
void Statement::bind(int index, const T& value) {
  if constexpr (kIsOptional<T>) {
    value ? bind(index, *value) : bind_null(index);
  } else if constexpr (kIsStrongId<T>) {
    bind_int(index, value.value);
  } else if constexpr (std::is_same_v<T, Time>) {
    bind_int(index, to_ms(value));
  } else if constexpr (std::is_same_v<T, Duration>) {
    bind_int(index, value.count());
  } else if constexpr (std::is_same_v<T, Amount>) {
    bind_int(index, value.milli);
  } else if constexpr (std::is_same_v<T, BlobRef>) {
    bind_blob(index, value.bytes);
  } else if constexpr (std::is_enum_v<T> || std::integral<T>) {
    bind_int(index, static_cast<std::int64_t>(value));
  } else {
    bind_text(index, std::string_view(value));
  }
}

template <typename T>
void Statement::get(int column, T& value) const {
  if constexpr (kIsOptional<T>) {
    if (null_at(column)) {
      value.reset();
    } else {
      get(column, value.emplace());
    }
  } else if constexpr (kIsStrongId<T>) {
    get(column, value.value);
  } else if constexpr (std::is_same_v<T, Time>) {
    value = time_from_ms(int_at(column));
  } else if constexpr (std::is_same_v<T, Duration>) {
    value = Duration(int_at(column));
  } else if constexpr (std::is_same_v<T, Amount>) {
    value = Amount(int_at(column));
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    get(column, number);
    value = static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = int_at(column) != 0;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    value = static_cast<std::uint64_t>(int_at(column));
  } else if constexpr (std::integral<T>) {
    const std::int64_t number = int_at(column);
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      out_of_range(column);
    }
    value = static_cast<T>(number);
  } else {
    value = text_at(column);
  }
}

template <typename... Args>
void Connection::run(std::string_view sql, const Args&... args) {
  Statement(*this, sql).run(args...);
}

}  // namespace gpuq::store
