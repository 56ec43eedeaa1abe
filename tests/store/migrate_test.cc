// Migrations: each one, from nothing and from every version before, and what is refused.
#include "server/store/migrate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/store/sqlite_store.h"
#include "tests/store/random_rows.h"
#include "tests/store/store_fixture.h"

namespace gpuq::store {
namespace {

std::span<const Migration> all() {
  return {kMigrations, static_cast<std::size_t>(kMigrationCount)};
}

/// Everything that defines the schema, in one text.
std::string schema_of(Connection& db) {
  Statement row(db,
                "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema"
                " ORDER BY type, name");
  std::string text;
  while (row.step()) {
    std::string line;
    row.read(line);
    text += line + "\n";
  }
  return text;
}

class MigrateTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(dir_.data()); }
  std::string file() { return dir_.data() + "/gpuq.db"; }
  Result<void> try_migrate(std::span<const Migration> migrations) {
    try {
      Connection db(file(), Access::kReadWrite, "");
      migrate(db, file(), migrations);
      return {};
    } catch (const Failure& failure) {
      return failure.error;
    }
  }
  TempDir dir_;
};

TEST_F(MigrateTest, FromEveryVersionToTheNewest) {
  Connection fresh(dir_.path() + "/fresh.db", Access::kReadWrite, "");
  migrate(fresh, dir_.path() + "/fresh.db", all());
  for (int version = 0; version <= kMigrationCount; ++version) {
    SCOPED_TRACE(version);
    std::filesystem::remove_all(dir_.data());
    std::filesystem::create_directory(dir_.data());
    ASSERT_TRUE(try_migrate(all().first(static_cast<std::size_t>(version))));
    ASSERT_TRUE(try_migrate(all()));
    Connection db(file(), Access::kReadWrite, "");
    EXPECT_EQ(schema_version(db), kMigrationCount);
    EXPECT_EQ(schema_of(db), schema_of(fresh));
    PumpedExecutor executor;
    const auto store = SqliteStore::open(dir_.data(), executor);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_TRUE((*store)->load(true));
  }
}

TEST_F(MigrateTest, OlderFileIsCopiedFirst) {
  {
    PumpedExecutor executor;
    auto store = SqliteStore::open(dir_.data(), executor);
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->load(true));
    BatchGenerator generator(1);
    ASSERT_TRUE(commit_and_wait(**store, executor, generator.next({})));
  }
  std::vector<Migration> more(all().begin(), all().end());
  more.push_back({kMigrationCount + 1, "more", "ALTER TABLE meta ADD COLUMN more TEXT;"});
  ASSERT_TRUE(try_migrate(more));
  Connection db(file(), Access::kReadWrite, "");
  EXPECT_EQ(schema_version(db), kMigrationCount + 1);
  const std::string backup = file() + ".v" + std::to_string(kMigrationCount) + ".backup";
  Connection old(backup, Access::kReadOnly, "");
  EXPECT_EQ(schema_version(old), kMigrationCount);
  EXPECT_GT(old.query_int("SELECT count(*) FROM job"), 0);
}

TEST_F(MigrateTest, FailingMigrationLeavesTheOldSchema) {
  ASSERT_TRUE(try_migrate(all()));
  std::vector<Migration> more(all().begin(), all().end());
  more.push_back({kMigrationCount + 1, "bad", "CREATE TABLE extra (x INTEGER) STRICT; nonsense;"});
  EXPECT_FALSE(try_migrate(more));
  Connection db(file(), Access::kReadWrite, "");
  EXPECT_EQ(schema_version(db), kMigrationCount);
  EXPECT_EQ(db.query_int("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"), 0);
  EXPECT_TRUE(try_migrate(all()));
}

TEST_F(MigrateTest, NewerSchemaIsRefused) {
  {
    Connection db(file(), Access::kReadWrite, "");
    migrate(db, file(), all());
    db.exec("PRAGMA user_version = 99");
  }
  PumpedExecutor executor;
  const auto store = SqliteStore::open(dir_.data(), executor);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(store.error().message.find("version 99"), std::string::npos) << store.error().message;
}

TEST_F(MigrateTest, ForeignDatabaseIsRefused) {
  {
    Connection db(file(), Access::kReadWrite, "");
    db.exec("CREATE TABLE theirs (x INTEGER)");
  }
  PumpedExecutor executor;
  const auto store = SqliteStore::open(dir_.data(), executor);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(store.error().message.find("another program"), std::string::npos);
}

}  // namespace
}  // namespace gpuq::store
