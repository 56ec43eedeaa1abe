# schema/sqlite/NNNN_what.sql, compiled into the store as kMigrations (server/store/migrations.h).
file(GLOB GPUQ_MIGRATIONS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/schema/sqlite/*.sql)
set(GPUQ_MIGRATIONS_CC ${CMAKE_BINARY_DIR}/generated/migrations.cc)
add_custom_command(
  OUTPUT ${GPUQ_MIGRATIONS_CC}
  COMMAND ${CMAKE_COMMAND} -DOUT=${GPUQ_MIGRATIONS_CC} "-DFILES=${GPUQ_MIGRATIONS}"
          -P ${PROJECT_SOURCE_DIR}/cmake/embed_migrations.cmake
  DEPENDS ${GPUQ_MIGRATIONS} ${PROJECT_SOURCE_DIR}/cmake/embed_migrations.cmake VERBATIM)
