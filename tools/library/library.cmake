# libcloze.so.0: the rooms below the C API, of which only the functions in cloze.map are seen. Other libraries are
# shared: Debian's archives are not made for a shared library.
function(cloze_rooms_below target rooms)
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  foreach(link IN LISTS links)
    if(TARGET ${link} AND link MATCHES ^cloze_ AND NOT link IN_LIST ${rooms})
      get_target_property(type ${link} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        list(APPEND ${rooms} ${link})
        cloze_rooms_below(${link} ${rooms})
      endif()
    endif()
  endforeach()
  set(${rooms} ${${rooms}} PARENT_SCOPE)
endfunction()

cloze_rooms_below(cloze_library library_rooms)
list(TRANSFORM library_rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE library_archives)
find_library(CLOZE_SHARED_LZMA lzma REQUIRED)
find_library(CLOZE_SHARED_ZSTD zstd REQUIRED)
add_library(libcloze SHARED $<TARGET_OBJECTS:cloze_library>)
add_dependencies(libcloze ${library_rooms})
set_target_properties(libcloze PROPERTIES OUTPUT_NAME cloze VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE CXX
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/tools/library/cloze.map;${library_archives}")
target_link_libraries(libcloze PRIVATE -Wl,--start-group ${library_archives} -Wl,--end-group
  -Wl,--as-needed ${cloze_absl_shared} protobuf::libprotobuf cloze_dnnl OpenMP::OpenMP_CXX cloze_utf8proc cloze_xxhash
  cloze_zlib ${CLOZE_SHARED_LZMA} ${CLOZE_SHARED_ZSTD})
target_link_options(libcloze PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/tools/library/cloze.map
  -Wl,-z,defs,-z,nodelete,-z,relro,-z,now,-z,noexecstack -Wl,--exclude-libs,ALL)

# Installation. A build of the target `cloze` alone installs the program alone.
if(CMAKE_LIBRARY_ARCHITECTURE AND NOT DEFINED CMAKE_INSTALL_LIBDIR)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
file(RELATIVE_PATH library_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(library_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cloze)
configure_package_config_file(tools/library/clozeConfig.cmake.in ${PROJECT_BINARY_DIR}/clozeConfig.cmake
  INSTALL_DESTINATION ${library_cmake_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/clozeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(tools/library/cloze.pc.in ${PROJECT_BINARY_DIR}/cloze.pc @ONLY)
function(cloze_install_library component folder)
  install(CODE "
    if(EXISTS \"$<TARGET_FILE:libcloze>\")
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" FILES ${ARGN})
    endif()" COMPONENT ${component})
endfunction()
install(TARGETS libcloze LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libcloze0 NAMELINK_COMPONENT libcloze_dev OPTIONAL)
cloze_install_library(libcloze_dev ${CMAKE_INSTALL_INCLUDEDIR} ${PROJECT_SOURCE_DIR}/tools/library/cloze.h ${PROJECT_SOURCE_DIR}/tools/library/cloze.hpp)
cloze_install_library(libcloze_dev ${library_cmake_folder} ${PROJECT_BINARY_DIR}/clozeConfig.cmake ${PROJECT_BINARY_DIR}/clozeConfigVersion.cmake)
cloze_install_library(libcloze_dev ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${PROJECT_BINARY_DIR}/cloze.pc)
cloze_install_library(python3_cloze lib/python3/dist-packages ${PROJECT_SOURCE_DIR}/tools/library/python/cloze.py)
