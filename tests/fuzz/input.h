// What the fuzz targets share: an input cut into parts, and parts as files that the readers can
// open.
#ifndef CLOZE_TESTS_FUZZ_INPUT_H_
#define CLOZE_TESTS_FUZZ_INPUT_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "tests/test_folder.h"

// The entry that libFuzzer calls; tests/fuzz/replay.cc calls it in ordinary tests.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace cloze::fuzz {

// True while allocations of memory fail on purpose (replay.cc). What takes long is left out then.
inline bool memory_fails = false;

// Takes an input from its front.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  // The next byte; 0 when there is none.
  uint8_t Byte() { return rest_.empty() ? 0 : Take(1)[0]; }
  // Two bytes as a little-endian number.
  uint32_t Number() {
    const uint32_t low = Byte();
    return low | uint32_t{Byte()} << 8;
  }
  // The next `n` bytes, or what is there.
  absl::string_view Take(size_t n) {
    const absl::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  absl::string_view Rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

inline void WriteWhole(int fd, absl::string_view bytes) {
  CLOZE_CHECK(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

// Bytes as a file in memory.
class File {
 public:
  explicit File(absl::string_view bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    WriteWhole(fd_.get(), bytes);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  Fd fd_;
};

// A folder of files, which goes away with the program; one a target.
class Folder : public TestFolder {
 public:
  void Write(absl::string_view name, absl::string_view bytes) const {
    std::FILE* file = std::fopen(JoinPath(path(), name).c_str(), "wb");
    CLOZE_CHECK(file != nullptr &&
                std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
                std::fclose(file) == 0);
  }
};

// An error must have one of our exit codes, none of our own bugs', and a message for a human:
// short, and safe for a terminal.
inline void CheckError(const absl::Status& status) {
  if (status.ok()) return;
  CLOZE_CHECK(ExitOf(status) != Exit::kInternal && ExitOf(status) != Exit::kOk);
  const absl::string_view message = status.message();
  CLOZE_CHECK(!message.empty() && message.size() < 16384);
  for (const char c : message)
    CLOZE_CHECK(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
}

}  // namespace cloze::fuzz

#endif  // CLOZE_TESTS_FUZZ_INPUT_H_
