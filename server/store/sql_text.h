#pragma once
// SQL made from the column lists of fields.h. Pure functions; any thread.
#include <string>
#include <string_view>

namespace gpuq::store {

/// "INSERT INTO table (columns) VALUES (?, ...) ON CONFLICT (first `keys` columns) DO UPDATE SET
/// the others = excluded.others[, also]". With `only_if_different` an equal row is not written
/// again.
std::string upsert_sql(std::string_view table, std::string_view columns, int keys,
                       std::string_view also = {}, bool only_if_different = false);

/// "INSERT INTO table (columns) VALUES (?, ...)".
std::string insert_sql(std::string_view table, std::string_view columns);

/// "INSERT INTO archived_table (columns) SELECT columns FROM table WHERE key = ?".
std::string archive_sql(std::string_view table, std::string_view columns, std::string_view key);

}  // namespace gpuq::store
