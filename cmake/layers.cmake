# Layers. Each has an include folder of its own, ${CMAKE_BINARY_DIR}/inc/<target>, which holds a
# link to its own sources and nothing else; a target sees its own and those of its DEPS. So an
# #include that goes against the layering does not compile.

# Fills `out` with the files of `dir` that match `kinds`; paths relative to the source folder.
# With GPUQ_GRPC off, files that reach gRPC or protobuf are left out.
function(gpuq_glob out dir recurse)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${dir}/ OUTPUT_VARIABLE patterns)
  file(${recurse} files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  if(files AND NOT GPUQ_GRPC)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/without_grpc.py ${files}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE files
      OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  endif()
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

# Makes the include folder of `target`, with a link to `dir`.
function(gpuq_include_folder target dir)
  set(link ${CMAKE_BINARY_DIR}/inc/${target}/${dir})
  get_filename_component(parent ${link} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${dir} ${link} SYMBOLIC)
endfunction()

# gpuq_layer(NAME target DIR folder [FLAT] [EXCLUDE regex] [DEPS layers] [LIBS external]
#            [GENERATED files])
# A static library of the folder's sources; an interface library while there are none.
# FLAT: not the sub-folders.
function(gpuq_layer)
  cmake_parse_arguments(L "FLAT" "NAME;DIR;EXCLUDE" "DEPS;LIBS;GENERATED" ${ARGN})
  set(recurse GLOB_RECURSE)
  if(L_FLAT)
    set(recurse GLOB)
  endif()
  gpuq_glob(sources ${L_DIR} ${recurse} *.cc)
  gpuq_glob(headers ${L_DIR} ${recurse} *.h)
  if(L_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${L_EXCLUDE}")
    list(FILTER headers EXCLUDE REGEX "${L_EXCLUDE}")
  endif()
  gpuq_include_folder(${L_NAME} ${L_DIR})
  if(sources OR (headers AND L_GENERATED))
    add_library(${L_NAME} STATIC ${sources} ${headers} ${L_GENERATED})
    gpuq_own_flags(${L_NAME})
    set(scope PUBLIC)
  else()
    add_library(${L_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${L_NAME} ${scope} ${CMAKE_BINARY_DIR}/inc/${L_NAME})
  foreach(dep ${L_DEPS})
    if(dep STREQUAL gpuq_proto AND NOT GPUQ_GRPC)
      continue()
    endif()
    target_link_libraries(${L_NAME} ${scope} ${dep})
  endforeach()
  target_link_libraries(${L_NAME} ${scope} ${L_LIBS})
  set_property(GLOBAL APPEND PROPERTY GPUQ_LAYERS ${L_NAME})
  set_property(GLOBAL PROPERTY GPUQ_HEADERS_${L_NAME} "${headers}")
endfunction()

# gpuq_program(NAME target MAIN candidates... [DEPS layers] [LIBS external] [STATIC])
# An executable from the first MAIN file that exists; nothing while none does.
# STATIC: no shared library at all (not with a sanitizer, which needs its own).
function(gpuq_program)
  cmake_parse_arguments(P "STATIC" "NAME" "MAIN;DEPS;LIBS" ${ARGN})
  foreach(candidate ${P_MAIN})
    get_filename_component(dir ${candidate} DIRECTORY)
    get_filename_component(name ${candidate} NAME)
    gpuq_glob(found ${dir} GLOB ${name})
    if(found)
      break()
    endif()
  endforeach()
  if(NOT found)
    return()
  endif()
  add_executable(${P_NAME} ${found})
  gpuq_own_flags(${P_NAME})
  if(P_STATIC AND NOT GPUQ_SANITIZE)
    # Only the archives: a shared library named by one of them has no place in a static program.
    foreach(dep ${P_DEPS})
      target_include_directories(${P_NAME} PRIVATE
        $<TARGET_PROPERTY:${dep},INTERFACE_INCLUDE_DIRECTORIES>)
      get_target_property(type ${dep} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        target_link_libraries(${P_NAME} PRIVATE $<TARGET_FILE:${dep}>)
        add_dependencies(${P_NAME} ${dep})
      endif()
    endforeach()
    target_include_directories(${P_NAME} PRIVATE ${CMAKE_BINARY_DIR}/inc/gpuq_base)
    get_target_property(type gpuq_base TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      target_link_libraries(${P_NAME} PRIVATE $<TARGET_FILE:gpuq_base>)
      add_dependencies(${P_NAME} gpuq_base)
    endif()
    # mold looks into every archive for what libstdc++.a lacks and so draws in objects that need shared
    # libraries; the classic linker takes archives in order.
    target_link_options(${P_NAME} PRIVATE -static -fuse-ld=bfd)
  else()
    target_link_libraries(${P_NAME} PRIVATE ${P_DEPS} ${P_LIBS})
  endif()
  set_property(GLOBAL APPEND PROPERTY GPUQ_PROGRAMS ${P_NAME})
endfunction()

# Target lone_headers: every header of every layer compiled by itself.
function(gpuq_lone_headers)
  add_custom_target(lone_headers)
  get_property(layers GLOBAL PROPERTY GPUQ_LAYERS)
  foreach(layer ${layers})
    get_property(headers GLOBAL PROPERTY GPUQ_HEADERS_${layer})
    set(sources "")
    foreach(header ${headers})
      set(source ${CMAKE_BINARY_DIR}/lone/${header}.cc)
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
      list(APPEND sources ${source})
    endforeach()
    if(sources)
      add_library(lone_${layer} OBJECT EXCLUDE_FROM_ALL ${sources})
      target_compile_options(lone_${layer} PRIVATE ${GPUQ_WARNINGS})
      target_link_libraries(lone_${layer} PRIVATE ${layer})
      add_dependencies(lone_headers lone_${layer})
    endif()
  endforeach()
endfunction()

# Target programs: the binaries and nothing else (no tests).
function(gpuq_programs_target)
  get_property(programs GLOBAL PROPERTY GPUQ_PROGRAMS)
  add_custom_target(programs DEPENDS ${programs})
endfunction()
