# Tells the program its Git commit. `cloze_commit(TARGET)` adds a source with `kCommit` (tools/command.h), which each
# build writes anew if the commit has changed. As a script (cmake -P), it writes that source: SOURCE, OUTPUT.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND git describe --always --abbrev=12 --exclude=* --dirty=+ WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit unknown)
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
namespace cloze {
extern const char kCommit[];
const char kCommit[] = "@commit@";
}  // namespace cloze
]])
  return()
endif()

function(cloze_commit target)
  set(output ${PROJECT_BINARY_DIR}/commit.cc)
  add_custom_target(cloze_commit BYPRODUCTS ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/tools/package/commit.cmake)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON)
  add_dependencies(${target} cloze_commit)
endfunction()
