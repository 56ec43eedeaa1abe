# gpuq_proto: C++ generated from proto/; included as "gpuq/v1/job.pb.h".
if(GPUQ_CORE_ONLY OR NOT GPUQ_GRPC)
  return()
endif()

file(GLOB_RECURSE GPUQ_PROTOS RELATIVE ${PROJECT_SOURCE_DIR}/proto CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/proto/gpuq/*.proto ${PROJECT_SOURCE_DIR}/proto/grpc/*.proto)
set(GPUQ_PROTO_OUT ${CMAKE_BINARY_DIR}/proto_gen)
file(MAKE_DIRECTORY ${GPUQ_PROTO_OUT})
list(TRANSFORM GPUQ_PROTOS PREPEND ${PROJECT_SOURCE_DIR}/proto/ OUTPUT_VARIABLE proto_paths)

set(generated "")
foreach(proto ${GPUQ_PROTOS})
  string(REGEX REPLACE "\\.proto$" "" stem ${proto})
  set(outputs ${GPUQ_PROTO_OUT}/${stem}.pb.cc ${GPUQ_PROTO_OUT}/${stem}.pb.h)
  set(plugin "")
  file(STRINGS ${PROJECT_SOURCE_DIR}/proto/${proto} services REGEX "^service ")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${PROJECT_SOURCE_DIR}/proto/${proto})
  if(services)
    list(APPEND outputs ${GPUQ_PROTO_OUT}/${stem}.grpc.pb.cc ${GPUQ_PROTO_OUT}/${stem}.grpc.pb.h)
    set(plugin --grpc_out=${GPUQ_PROTO_OUT}
        --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
  endif()
  # Any .proto may import any other, so each depends on all of them.
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND protobuf::protoc -I${PROJECT_SOURCE_DIR}/proto --cpp_out=${GPUQ_PROTO_OUT} ${plugin}
            ${PROJECT_SOURCE_DIR}/proto/${proto}
    DEPENDS ${proto_paths} VERBATIM)
  list(APPEND generated ${outputs})
endforeach()

if(generated)
  add_library(gpuq_proto STATIC ${generated})
  gpuq_generated_flags(gpuq_proto)
  set(scope PUBLIC)
else()
  add_library(gpuq_proto INTERFACE)
  set(scope INTERFACE)
endif()
target_include_directories(gpuq_proto SYSTEM ${scope} ${GPUQ_PROTO_OUT})
target_link_libraries(gpuq_proto ${scope} ${GPUQ_GRPC_LIBS})
