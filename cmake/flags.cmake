# Compiler, linker and cache settings for our own code. Generated code takes gpuq_generated_flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)
endif()

# Only paths inside the build folder are made relative: the sources keep their absolute path, so
# every build folder of one checkout shares the cached objects of equal flags. With the checkout's
# own path, several checkouts share those of build folders of equal depth instead.
set(GPUQ_CCACHE_BASEDIR ${CMAKE_BINARY_DIR} CACHE PATH "What ccache takes as its base_dir")
find_program(GPUQ_CCACHE ccache)
if(GPUQ_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${GPUQ_CCACHE_BASEDIR} CCACHE_NOHASHDIR=1 ${GPUQ_CCACHE})
endif()
find_program(GPUQ_MOLD mold)
if(GPUQ_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(GPUQ_OPTIMIZE "" CACHE STRING "Optimisation and debug flags of our own code, e.g. -O1;-g1")
set(GPUQ_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Werror)
# All presets but dev and core-only compile several sources as one (CMAKE_UNITY_BUILD): half the time.
# Those two do not, so that each source is known to stand alone.
if(CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  list(APPEND GPUQ_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
set(GPUQ_SANITIZE_FLAGS "")
if(GPUQ_SANITIZE)
  set(GPUQ_SANITIZE_FLAGS -fsanitize=${GPUQ_SANITIZE} -fno-omit-frame-pointer)
  if(GPUQ_SANITIZE MATCHES "undefined")
    list(APPEND GPUQ_SANITIZE_FLAGS -fno-sanitize-recover=all)
  endif()
  # Links take the runtime everywhere; only our own code is instrumented.
  add_link_options(-fsanitize=${GPUQ_SANITIZE})
endif()

# Flags of a target whose sources we wrote.
function(gpuq_own_flags target)
  target_compile_options(${target} PRIVATE ${GPUQ_WARNINGS} ${GPUQ_OPTIMIZE} ${GPUQ_SANITIZE_FLAGS})
  target_compile_definitions(${target} PRIVATE $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)
endfunction()

# Generated code: one set of flags in every preset but release, so that it is compiled once (a
# preset's own flags are in GPUQ_OPTIMIZE and do not reach it).
function(gpuq_generated_flags target)
  target_compile_options(${target} PRIVATE -w -g0 -O1)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
endfunction()
