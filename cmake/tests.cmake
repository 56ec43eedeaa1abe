# Tests: one GoogleTest program per folder of tests/, one program per file in bench/ and fuzz/.
enable_testing()
include(GoogleTest)
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)

# Common to everything under tests/: the tests' own headers as "tests/...", and the given layers.
function(gpuq_test_target target)
  gpuq_own_flags(${target})
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/inc/gpuq_tests)
  target_link_libraries(${target} PRIVATE ${ARGN})
  target_compile_definitions(${target} PRIVATE GPUQ_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# gpuq_tests(NAME target DIR folder LABEL label DEPS layers [TIMEOUT seconds] [PROGRAMS programs]
#            [COMPUTES])
# COMPUTES: the tests' own code takes time, and is optimised as the layers are; the others compile
# faster without. DEPS: no more than needed, so that a layer that does not build stops only its own tests.
# PROGRAMS: of our binaries, those that the tests run; the tests get GPUQ_BIN_DIR.
function(gpuq_tests)
  cmake_parse_arguments(T "COMPUTES" "NAME;DIR;LABEL;TIMEOUT" "DEPS;PROGRAMS" ${ARGN})
  gpuq_glob(sources ${T_DIR} GLOB_RECURSE *.cc *.h)
  set(compiled ${sources})
  list(FILTER compiled INCLUDE REGEX "\\.cc$")
  if(NOT compiled)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  list(FILTER sources EXCLUDE REGEX "${GPUQ_PROPERTY_CHECKS}")
  add_executable(${T_NAME} ${sources})
  gpuq_test_target(${T_NAME} ${T_DEPS})
  if(NOT T_COMPUTES AND "-O1" IN_LIST GPUQ_OPTIMIZE)
    target_compile_options(${T_NAME} PRIVATE -O0)
  endif()
  target_link_libraries(${T_NAME} PRIVATE GTest::gmock GTest::gtest GTest::gtest_main)
  if(T_PROGRAMS)
    target_compile_definitions(${T_NAME} PRIVATE
      GPUQ_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    foreach(program ${T_PROGRAMS})
      if(TARGET ${program})
        add_dependencies(${T_NAME} ${program})
      endif()
    endforeach()
  endif()
  gtest_discover_tests(${T_NAME} TEST_PREFIX "${T_LABEL}."
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT}
               ENVIRONMENT "GPUQ_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()

# What must hold of any state and plan: checks that the property and the simulation tests share.
set(GPUQ_PROPERTY_CHECKS "^tests/property/(case_text|plan_checks|recount)\\.cc$")
function(gpuq_property_checks)
  gpuq_glob(sources tests/property GLOB *.cc)
  list(FILTER sources INCLUDE REGEX "${GPUQ_PROPERTY_CHECKS}")
  add_library(gpuq_property_checks STATIC ${sources})
  gpuq_test_target(gpuq_property_checks ${ARGN})
endfunction()

# One program per file of `dir`, named <prefix>_<file>; built by the target `group`.
function(gpuq_program_per_file dir prefix group)
  add_custom_target(${group})
  gpuq_glob(sources ${dir} GLOB *.cc)
  get_property(layers GLOBAL PROPERTY GPUQ_LAYERS)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(target ${prefix}_${name})
    add_executable(${target} EXCLUDE_FROM_ALL ${source})
    gpuq_test_target(${target} ${layers} ${ARGN})
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${group})
    add_dependencies(${group} ${target})
  endforeach()
endfunction()

function(gpuq_all_tests)
  gpuq_include_folder(gpuq_tests tests)
  set(core gpuq_sim gpuq_policy gpuq_snapshot)
  gpuq_tests(NAME gpuq_unit_tests DIR tests/unit LABEL unit DEPS ${core})
  gpuq_property_checks(${core})
  gpuq_tests(NAME gpuq_property_tests DIR tests/property LABEL property
             DEPS gpuq_property_checks ${core} COMPUTES TIMEOUT 300)
  gpuq_tests(NAME gpuq_scenario_tests DIR tests/scenario LABEL scenario DEPS ${core})
  gpuq_tests(NAME gpuq_sim_tests DIR tests/sim LABEL sim
             DEPS gpuq_property_checks ${core} COMPUTES TIMEOUT 300)
  if(GPUQ_SANITIZE AND TARGET gpuq_sim_tests)
    target_compile_definitions(gpuq_sim_tests PRIVATE GPUQ_FEWER_RUNS)
  endif()
  gpuq_tidy_tests()
  if(GPUQ_CORE_ONLY)
    return()
  endif()
  gpuq_tests(NAME gpuq_runtime_tests DIR tests/runtime LABEL runtime DEPS gpuq_runtime)
  gpuq_tests(NAME gpuq_store_tests DIR tests/store LABEL store
             DEPS ${core} gpuq_store SQLite::SQLite3)
  gpuq_tests(NAME gpuq_server_tests DIR tests/server LABEL server DEPS ${core} gpuq_server_lib)
  gpuq_tests(NAME gpuq_agent_tests DIR tests/agent LABEL agent DEPS gpuq_agent_lib
             PROGRAMS gpuq-shim)
  gpuq_tests(NAME gpuq_client_tests DIR tests/client LABEL client DEPS gpuq_cli_lib)
  if(GPUQ_GRPC)
    gpuq_tests(NAME gpuq_e2e_tests DIR tests/e2e LABEL e2e
               DEPS ${core} gpuq_client gpuq_store gpuq_runtime
               PROGRAMS gpuqd gpuq-agent gpuq-shim gpuq TIMEOUT 300)
    set(bench_lib "")
    if(benchmark_FOUND)
      set(bench_lib benchmark::benchmark)
    endif()
    gpuq_program_per_file(tests/bench bench bench ${bench_lib} absl::synchronization)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND GPUQ_SANITIZE MATCHES "fuzzer")
    gpuq_program_per_file(tests/fuzz fuzz fuzz -fsanitize=fuzzer)
  endif()
endfunction()

# The checks of tests/tidy as tests: the tree, the checkers themselves, the core's symbols.
function(gpuq_tidy_tests)
  set(tidy ${PROJECT_SOURCE_DIR}/tests/tidy)
  add_test(NAME tidy.tree COMMAND ${Python3_EXECUTABLE} ${tidy}/tidy.py)
  add_test(NAME tidy.self COMMAND ${Python3_EXECUTABLE} ${tidy}/tidy_test.py)
  set_tests_properties(tidy.tree tidy.self PROPERTIES LABELS tidy)
  if(CMAKE_UNITY_BUILD)
    return()  # its breaches are excused by source, and sources are mixed here
  endif()
  set(archives "")
  foreach(layer gpuq_base gpuq_model gpuq_sched gpuq_state gpuq_engine gpuq_sim)
    get_target_property(type ${layer} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND archives $<TARGET_FILE:${layer}>)
    endif()
  endforeach()
  add_test(NAME tidy.core_symbols
           COMMAND ${Python3_EXECUTABLE} ${tidy}/core_symbols.py ${archives})
  set_tests_properties(tidy.core_symbols PROPERTIES LABELS tidy)
endfunction()
