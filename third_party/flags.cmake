# Compiler flags of every room.
add_library(cloze_flags INTERFACE)
target_include_directories(cloze_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(cloze_flags INTERFACE -Wall -Wextra -Wno-sign-compare -fno-math-errno -ffp-contract=off)
if(CLOZE_WERROR)
  target_compile_options(cloze_flags INTERFACE -Werror)
endif()
if(CLOZE_SANITIZE)
  target_compile_options(cloze_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cloze_flags INTERFACE -fsanitize=address,undefined)
else()
  # Hardening; tests/rules checks it on the built program.
  target_compile_options(cloze_flags INTERFACE -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
  target_compile_definitions(cloze_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(cloze_flags INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
