# The server: its installation, if it was built, and its Debian package.
set(CLOZE_SERVE_FILE ${PROJECT_BINARY_DIR}/cloze-serve)
set(serve_manual ${PROJECT_BINARY_DIR}/manual-serve)
function(cloze_install_serve folder)
  install(CODE "
    if(EXISTS \"${CLOZE_SERVE_FILE}\")
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" FILES ${ARGN})
    endif()" COMPONENT cloze_serve)
endfunction()

install(TARGETS cloze-serve OPTIONAL COMPONENT cloze_serve)
install(CODE "
  if(EXISTS \"${CLOZE_SERVE_FILE}\")
    execute_process(COMMAND \"${CLOZE_SERVE_FILE}\" help --write \"${serve_manual}\" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND gzip -9nf cloze-serve.1 WORKING_DIRECTORY \"${serve_manual}\" COMMAND_ERROR_IS_FATAL ANY)
    file(COPY_FILE \"${serve_manual}/cloze-serve.bash\" \"${serve_manual}/cloze-serve\")
  endif()" COMPONENT cloze_serve)
cloze_install_serve(${CMAKE_INSTALL_MANDIR}/man1 ${serve_manual}/cloze-serve.1.gz)
cloze_install_serve(${CMAKE_INSTALL_DATADIR}/bash-completion/completions ${serve_manual}/cloze-serve)
cloze_install_serve(${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions ${serve_manual}/_cloze-serve)
cloze_install_serve(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d ${serve_manual}/cloze-serve.fish)
cloze_install_serve(lib/systemd/system ${PROJECT_SOURCE_DIR}/tools/serve/cloze-serve.service ${PROJECT_SOURCE_DIR}/tools/serve/cloze-serve.socket)

file(WRITE ${PROJECT_BINARY_DIR}/lintian/cloze-serve "# Not part of Debian.\ncloze-serve: initial-upload-closes-no-bugs\n")
execute_process(COMMAND gzip -9nkf changelog.Debian WORKING_DIRECTORY ${manual} COMMAND_ERROR_IS_FATAL ANY)
cloze_install_serve(${CMAKE_INSTALL_DATADIR}/doc/cloze-serve ${PROJECT_SOURCE_DIR}/tools/package/copyright ${manual}/changelog.Debian.gz)
cloze_install_serve(${CMAKE_INSTALL_DATADIR}/lintian/overrides ${PROJECT_BINARY_DIR}/lintian/cloze-serve)
list(APPEND CPACK_COMPONENTS_ALL cloze_serve)
set(CPACK_DEBIAN_CLOZE_SERVE_PACKAGE_NAME cloze-serve)
set(CPACK_DEBIAN_CLOZE_SERVE_PACKAGE_SOURCE cloze)
set(CPACK_DEBIAN_CLOZE_SERVE_PACKAGE_SECTION web)
set(CPACK_DEBIAN_CLOZE_SERVE_PACKAGE_SUGGESTS cloze)
set(CPACK_DEBIAN_CLOZE_SERVE_DESCRIPTION "answers HTTP requests with BERT-style encoders on CPUs
A server for the classifiers, taggers and encoders of Cloze, with the
routes of text-embeddings-inference and of OpenAI's embeddings. Brings
units of systemd.")
