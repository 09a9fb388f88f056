# How each dependency is found. Floors and reasons: third_party/README.md.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Protobuf 3.21 REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

# Found by header and library: Debian 12's dnnl-config.cmake asks for OpenCL development files that we do not need.
function(cloze_find_library target header library)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  find_library(${target}_LIBRARY ${library} REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()

cloze_find_library(cloze_dnnl oneapi/dnnl/dnnl.hpp dnnl)
cloze_find_library(cloze_utf8proc utf8proc.h utf8proc)
cloze_find_library(cloze_xxhash xxhash.h xxhash)
