#include "server/store/sql_text.h"

#include <vector>

namespace gpuq::store {
namespace {

std::vector<std::string> split(std::string_view columns) {
  std::vector<std::string> names;
  while (!columns.empty()) {
    const std::size_t comma = columns.find(", ");
    names.emplace_back(columns.substr(0, comma));
    columns.remove_prefix(comma == std::string_view::npos ? columns.size() : comma + 2);
  }
  return names;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : ", ").append(part);
  return text;
}

}  // namespace

std::string insert_sql(std::string_view table, std::string_view columns) {
  const std::vector<std::string> marks(split(columns).size(), "?");
  return std::string("INSERT INTO ")
      .append(table)
      .append(" (")
      .append(columns)
      .append(") VALUES (")
      .append(join(marks))
      .append(")");
}

std::string upsert_sql(std::string_view table, std::string_view columns, int keys,
                       std::string_view also, bool only_if_different) {
  const std::vector<std::string> names = split(columns);
  const auto first_value = names.begin() + keys;
  const std::vector<std::string> key_names(names.begin(), first_value);
  std::vector<std::string> sets;
  std::vector<std::string> old_values;
  std::vector<std::string> new_values;
  for (auto name = first_value; name != names.end(); ++name) {
    sets.push_back(*name + " = excluded." + *name);
    old_values.push_back(std::string(table) + "." + *name);
    new_values.push_back("excluded." + *name);
  }
  if (!also.empty()) sets.emplace_back(also);
  std::string sql = insert_sql(table, columns) + " ON CONFLICT (" + join(key_names) +
                    ") DO UPDATE SET " + join(sets);
  if (only_if_different) {
    sql += " WHERE (" + join(old_values) + ") IS NOT (" + join(new_values) + ")";
  }
  return sql;
}

std::string archive_sql(std::string_view table, std::string_view columns, std::string_view key) {
  std::string sql = "INSERT INTO archived_";
  sql.append(table).append(" (").append(columns).append(") SELECT ").append(columns);
  return sql.append(" FROM ").append(table).append(" WHERE ").append(key).append(" = ?");
}

}  // namespace gpuq::store
