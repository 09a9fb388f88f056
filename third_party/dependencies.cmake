# How each dependency is found. Floors and reasons: third_party/README.md.
if(CLOZE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(Protobuf_USE_STATIC_LIBS ON)
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Protobuf 3.21 REQUIRED)
find_package(absl REQUIRED)
# Its 30 shared libraries would take a third of each start of the program; libcloze needs them.
set(cloze_absl_shared)
get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
list(FILTER targets INCLUDE REGEX ^absl::)
foreach(target IN LISTS targets)
  get_target_property(configuration ${target} IMPORTED_CONFIGURATIONS)
  get_target_property(shared ${target} IMPORTED_LOCATION_${configuration})
  if(shared)
    list(APPEND cloze_absl_shared ${shared})
  endif()
  string(REGEX REPLACE "\\.so[.0-9]*$" .a archive "${shared}")
  if(EXISTS "${archive}")
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${archive})
  endif()
endforeach()
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
if(CLOZE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(CLOZE_SERVE)
  find_path(CLOZE_MICROHTTPD_INCLUDE microhttpd.h)
  find_library(CLOZE_MICROHTTPD_LIBRARY microhttpd)
endif()

set(CLOZE_ONEDNN_ROOT "" CACHE PATH "Folder with the include and lib of a oneDNN to use instead of the system's")

# System libraries need no run path, also where CMake expects clang's OpenMP elsewhere.
if(NOT CLOZE_ONEDNN_ROOT)
  set(CMAKE_SKIP_BUILD_RPATH ON)
endif()

# Finds a header and a library, with a root only there. (Debian 12's dnnl-config.cmake requires OpenCL
# development files that Cloze does not need.)
function(cloze_find_library target header library root)
  if(root)
    set(only HINTS ${root} PATH_SUFFIXES include lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_DEFAULT_PATH)
  endif()
  find_path(${target}_INCLUDE ${header} ${only} REQUIRED)
  find_library(${target}_LIBRARY NAMES ${library} ${only} REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()

cloze_find_library(cloze_dnnl oneapi/dnnl/dnnl.hpp dnnl "${CLOZE_ONEDNN_ROOT}")
target_link_libraries(cloze_dnnl INTERFACE OpenMP::OpenMP_CXX)  # for a static one
cloze_find_library(cloze_utf8proc utf8proc.h utf8proc "")
cloze_find_library(cloze_xxhash xxhash.h xxhash "")
# protobuf loads zlib anyway. The others are static where there is a static one: a shared library
# takes time at each start.
cloze_find_library(cloze_zlib zlib.h z "")
cloze_find_library(cloze_lzma lzma.h "liblzma.a;lzma" "")
cloze_find_library(cloze_zstd zstd.h "libzstd.a;zstd" "")

# ONNX Runtime checks exports. It is opened when it is needed; only its headers are used here.
find_path(CLOZE_ONNXRUNTIME_INCLUDE onnxruntime_cxx_api.h PATH_SUFFIXES onnxruntime)
find_library(CLOZE_ONNXRUNTIME_LIBRARY onnxruntime)
