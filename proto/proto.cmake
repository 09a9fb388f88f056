# Generated C++ of the specs, and their descriptors with comments (for `cloze spec explain`) as a C++ array.
set(cloze_protos proto/options.proto proto/model.proto proto/training.proto proto/task.proto proto/state.proto
  proto/onnx.proto proto/tensorboard.proto)
set(proto_cc)
set(proto_h)  # listed as outputs, so that their users are rebuilt in the same build
foreach(p ${cloze_protos})
  string(REPLACE .proto .pb stem ${p})
  list(APPEND proto_cc ${PROJECT_BINARY_DIR}/${stem}.cc)
  list(APPEND proto_h ${PROJECT_BINARY_DIR}/${stem}.h)
endforeach()
set(descriptors ${PROJECT_BINARY_DIR}/proto/descriptors.binpb)
add_custom_command(
  OUTPUT ${proto_cc} ${proto_h} ${descriptors}
  COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR} --cpp_out=${PROJECT_BINARY_DIR}
          --include_source_info --include_imports --descriptor_set_out=${descriptors} ${cloze_protos}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  DEPENDS ${cloze_protos})
set(embedded ${PROJECT_BINARY_DIR}/proto/descriptors.cc)
add_custom_command(
  OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${descriptors} -DOUTPUT=${embedded} -P ${PROJECT_SOURCE_DIR}/proto/embed.cmake
  DEPENDS ${descriptors} ${PROJECT_SOURCE_DIR}/proto/embed.cmake)
file(GLOB proto_sources CONFIGURE_DEPENDS proto/*.cc)
# Neither warnings nor UBSan for generated code.
set_source_files_properties(${proto_cc} PROPERTIES COMPILE_OPTIONS "-w;$<$<BOOL:${CLOZE_SANITIZE}>:-fno-sanitize=undefined>")
add_library(cloze_proto STATIC ${proto_cc} ${embedded} ${proto_sources})
target_include_directories(cloze_proto SYSTEM PUBLIC ${PROJECT_BINARY_DIR})
target_link_libraries(cloze_proto PUBLIC cloze_flags cloze_base protobuf::libprotobuf)
target_compile_options(cloze_proto PRIVATE ${cold_options})
