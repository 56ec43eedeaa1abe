// The schema's migrations, compiled in from schema/sqlite/NNNN_what.sql in the order of their
// numbers, which run 1, 2, 3, ... without a gap. Constant data: any thread may read it.
#pragma once

namespace gpuq::store {

struct Migration {
  int version;       // the number NNNN; the schema's version once this has run
  const char* name;  // "what" of the file's name
  const char* sql;   // the file's text: statements for one transaction
};

extern const Migration kMigrations[];  // kMigrationCount of them; [i].version == i + 1
extern const int kMigrationCount;

}  // namespace gpuq::store
