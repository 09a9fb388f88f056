// Unpacks gzip, xz and zstd data in parts of any size, in bounded memory.
#ifndef CLOZE_CORE_BASE_UNPACK_H_
#define CLOZE_CORE_BASE_UNPACK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

// Archives whose unpacking needs more than about 128 MB of memory are refused: `xz -9` needs 65 MB,
// `zstd --ultra -22` 128 MB.
class Unpacker {
 public:
  // Returns the unpacker of data that begin with `bytes`; null if they are not packed.
  static std::unique_ptr<Unpacker> For(absl::string_view bytes);
  // True if more bytes are needed to tell whether data are packed.
  static bool Undecided(absl::string_view bytes);

  // Unpacks a part of `in` and appends at most `room` bytes to *out. Returns the number of bytes
  // taken from `in`, or -1 for an error, which is in error().
  int64_t Unpack(absl::string_view in, int64_t room, std::string* out);

  // True at the end of an archive: the data may end here, or another archive may follow.
  bool complete() const { return complete_; }
  // True if another call may produce output without more input.
  bool full() const { return full_; }
  // "gzip", "xz" or "zstd".
  const char* name() const { return name_; }
  const std::string& error() const { return error_; }
  virtual ~Unpacker() = default;

 protected:
  explicit Unpacker(const char* name) : name_(name) {}

  struct Buffer {
    absl::string_view in;  // input that is left
    char* out;
    size_t room;
  };
  // Unpacks from buffer->in to buffer->out and advances both. Sets *end at the end of an archive;
  // Reset is called before the next one. Returns null, or an error message.
  virtual const char* Run(Buffer* buffer, bool* end) = 0;
  // Prepares for the next archive; returns false if out of memory.
  virtual bool Reset() = 0;

 private:
  const char* name_;
  std::string error_;
  bool complete_ = false, full_ = false, ready_ = false;
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_UNPACK_H_
