# Writes INPUT's bytes as a C++ array to OUTPUT.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <cstddef>
namespace cloze {
extern const unsigned char kDescriptors[];
extern const size_t kDescriptorsSize;
const unsigned char kDescriptors[] = {${bytes}};
const size_t kDescriptorsSize = sizeof(kDescriptors);
}  // namespace cloze
")
