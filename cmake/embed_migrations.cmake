# cmake -DOUT=file.cc -DFILES="a.sql;b.sql" -P embed_migrations.cmake
# Numbers must run 1, 2, 3, ...: a gap or a double is a mistake in schema/sqlite.
cmake_policy(VERSION 3.25)
list(SORT FILES)
set(rows "")
set(count 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_([a-z0-9_]+)$")
    message(FATAL_ERROR "${file}: name it NNNN_what_it_does.sql, in lower case")
  endif()
  set(number ${CMAKE_MATCH_1})
  set(what ${CMAKE_MATCH_2})
  math(EXPR count "${count} + 1")
  string(REGEX REPLACE "^0+" "" number ${number})
  if(NOT number STREQUAL count)
    message(FATAL_ERROR "${file}: the next migration is number ${count}; renumber the file")
  endif()
  file(READ ${file} sql)
  string(APPEND rows "    {${number}, \"${what}\", R\"gpuqsql(${sql})gpuqsql\"},\n")
endforeach()
if(NOT rows)
  set(rows "    {0, \"\", \"\"},\n")
endif()
file(WRITE ${OUT} "// Generated from schema/sqlite. Edit the .sql files instead.
#include \"server/store/migrations.h\"

namespace gpuq::store {

const Migration kMigrations[] = {
${rows}};
const int kMigrationCount = ${count};

}  // namespace gpuq::store
")
