# The Debian packages of the library.
set(CLOZE_LIBRARY_FILE ${PROJECT_BINARY_DIR}/libcloze.so.${PROJECT_VERSION})
execute_process(COMMAND gzip -9nkf changelog.Debian WORKING_DIRECTORY ${manual} COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${PROJECT_BINARY_DIR}/control/triggers "activate-noawait ldconfig\n")
file(WRITE ${PROJECT_BINARY_DIR}/control/shlibs "libcloze 0 libcloze0 (>= ${PROJECT_VERSION})\n")

# Adds a package. Arguments: its name, and pairs of a field of the package and its value.
macro(cloze_library_package package)
  string(REPLACE - _ component ${package})
  string(TOUPPER CPACK_DEBIAN_${component} prefix)
  set(${prefix}_PACKAGE_NAME ${package})
  set(${prefix}_PACKAGE_SOURCE cloze)
  set(fields "${ARGN}")
  while(fields)
    list(POP_FRONT fields field value)
    set(${prefix}_${field} "${value}")
  endwhile()
  file(WRITE ${PROJECT_BINARY_DIR}/lintian/${package} "# Not part of Debian.\n${package}: initial-upload-closes-no-bugs\n${lintian_${package}}")
  cloze_install_library(${component} ${CMAKE_INSTALL_DATADIR}/doc/${package} ${PROJECT_SOURCE_DIR}/tools/package/copyright ${manual}/changelog.Debian.gz)
  cloze_install_library(${component} ${CMAKE_INSTALL_DATADIR}/lintian/overrides ${PROJECT_BINARY_DIR}/lintian/${package})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
endmacro()

# CPack's scripts call ldconfig, besides the trigger.
set(lintian_libcloze0 "libcloze0: maintscript-calls-ldconfig *\n")
set(own "(= ${PROJECT_VERSION}-1)")
cloze_library_package(libcloze0 PACKAGE_SECTION libs
  DESCRIPTION "runs BERT-style encoders on CPUs (library)
A library with a C API that answers with the classifiers, taggers and
encoders of Cloze inside other programs.")
set(CPACK_DEBIAN_LIBCLOZE0_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/control/triggers ${PROJECT_BINARY_DIR}/control/shlibs)
cloze_library_package(libcloze-dev PACKAGE_SECTION libdevel PACKAGE_DEPENDS "libcloze0 ${own}" PACKAGE_SHLIBDEPS OFF
  DESCRIPTION "runs BERT-style encoders on CPUs (development files)
The headers of libcloze for C and C++, and its files for CMake and
pkg-config.")
cloze_library_package(python3-cloze PACKAGE_SECTION python PACKAGE_DEPENDS "libcloze0 ${own}, python3" PACKAGE_SHLIBDEPS OFF
  PACKAGE_SUGGESTS "cloze, python3-numpy" PACKAGE_ARCHITECTURE all
  DESCRIPTION "runs BERT-style encoders on CPUs (Python module)
A module of one file that answers with the classifiers, taggers and
encoders of Cloze, by libcloze.")
