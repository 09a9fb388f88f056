# Installation and packages: docs/install.md. `cmake --install` and cpack need the target `cloze` only; with
# `libcloze` they also give the library, and with `cloze-serve` the server.
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME cloze)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CLOZE_MAINTAINER "Cloze developers <cloze@packages.invalid>" CACHE STRING "Maintainer of the Debian package")
set(manual ${PROJECT_BINARY_DIR}/manual)
string(TIMESTAMP CLOZE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(tools/package/changelog.in ${manual}/changelog.Debian @ONLY)

# Man pages and completion come from the program.
install(CODE "
  file(GLOB pages \"${manual}/*.1.gz\")
  file(REMOVE \"${manual}/cloze.1.gz\" \${pages})
  execute_process(COMMAND \"$<TARGET_FILE:cloze>\" help --write \"${manual}\" COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB pages \"${manual}/*.1\")
  execute_process(COMMAND gzip -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)
  file(COPY_FILE \"${PROJECT_SOURCE_DIR}/CHANGELOG.md\" \"${manual}/changelog\")
  execute_process(COMMAND gzip -9nkf changelog changelog.Debian WORKING_DIRECTORY \"${manual}\" COMMAND_ERROR_IS_FATAL ANY)")
install(TARGETS cloze)
install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1.gz")
install(FILES ${manual}/cloze.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cloze)
install(FILES ${manual}/_cloze DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${manual}/cloze.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY tools/specs DESTINATION ${CMAKE_INSTALL_DATADIR}/cloze)
install(FILES README.md NOTICE tools/package/copyright ${manual}/changelog.gz ${manual}/changelog.Debian.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES tools/package/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME cloze)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "${CLOZE_MAINTAINER}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CLOZE_DESCRIPTION "pretrains, fine-tunes and runs BERT-style encoders on CPUs
Cloze trains classifiers, scorers and taggers of text on ordinary
CPUs, and encoders for languages and domains without a ready-made one.
It is one program without Python. It reads and writes Hugging Face
folders. A run that is killed resumes from its last checkpoint and ends
with the same bits.")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL cloze)
set(CPACK_DEBIAN_CLOZE_PACKAGE_NAME cloze)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/components.cmake)
if(TARGET libcloze)
  include(tools/package/library_packages.cmake)
endif()
if(TARGET cloze-serve)
  include(tools/package/serve_package.cmake)
endif()
configure_file(tools/package/components.cmake.in ${PROJECT_BINARY_DIR}/components.cmake @ONLY)
include(CPack)
