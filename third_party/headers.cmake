# Precompiled headers for CLOZE_UNITY: they save a quarter of the compile time. Targets can share them only if
# they are compiled with the same options.
set(library_headers <algorithm> <array> <cmath> <functional> <map> <memory> <numeric> <optional> <set> <string>
  <utility> <vector> absl/algorithm/container.h absl/container/flat_hash_map.h absl/status/statusor.h absl/strings/match.h
  absl/strings/numbers.h absl/strings/str_cat.h absl/strings/str_format.h absl/strings/str_join.h
  absl/strings/str_split.h google/protobuf/map.h google/protobuf/message.h google/protobuf/repeated_field.h
  nlohmann/json.hpp)
list(TRANSFORM library_headers REPLACE "^[^<].*" "<\\0>")

# Makes the target `name`, whose headers other targets with these options can use. Further arguments are headers
# in addition to those of libraries.
function(cloze_headers name options)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE cloze_flags absl::flat_hash_map absl::statusor absl::strings nlohmann_json::nlohmann_json
    protobuf::libprotobuf OpenMP::OpenMP_CXX)
  target_compile_options(${name} PRIVATE ${options} ${cloze_unity_options})
  target_precompile_headers(${name} PRIVATE ${library_headers} ${ARGN})
endfunction()
