// Files: whole reads with a limit, buffered lines, and writes that are either complete and on disk
// or not there at all.
#ifndef CLOZE_CORE_BASE_FILE_H_
#define CLOZE_CORE_BASE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

// A file descriptor that closes itself. Moves, never copies.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Closes and says whether that worked.
  absl::Status Close(absl::string_view path);

 private:
  int fd_ = -1;
};

// Opens a regular file for reading; kNoInput when it is missing, unreadable or not a regular file.
absl::StatusOr<Fd> OpenForRead(const std::string& path);

// Size of a regular file in bytes.
absl::StatusOr<int64_t> FileSize(const std::string& path);

// The whole file; kLimit when it is larger than max_bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

// Reads exactly `size` bytes at `offset`; an error of kIo, or kData when the file is shorter.
absl::Status ReadAt(const Fd& fd, absl::string_view path, int64_t offset, void* data, int64_t size);

// Writes all of `size` bytes; handles short writes and EINTR.
absl::Status WriteAll(const Fd& fd, absl::string_view path, const void* data, int64_t size);

// Makes `path` and its parents where they are missing.
absl::Status MakeDirectories(const std::string& path);

// Creates a new file (it must not exist), writes, fsyncs and closes it. Does not fsync the
// directory.
absl::Status WriteNewFile(const std::string& path, absl::string_view content);

// Replaces `path` by `content` so that a crash leaves the old or the new file, whole: temporary
// file, fsync, rename, fsync of the folder.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// Renames a file or folder; kCannotCreate when `to` exists. Durable only after SyncDirectory.
absl::Status RenameNew(const std::string& from, const std::string& to);

// Makes renames and new names in `directory` durable.
absl::Status SyncDirectory(const std::string& directory);

bool PathExists(const std::string& path);
bool IsDirectory(const std::string& path);

// Names in `directory`, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& directory);

// "a/b" of "a" and "b"; an absolute or first part that is empty stands alone.
std::string JoinPath(absl::string_view a, absl::string_view b);

// `path` from the root on, without "." and ".."; `path` itself when the working directory is
// unknown.
std::string AbsolutePath(const std::string& path);

// Folder of a path: "a/b" of "a/b/c", "." of "c".
std::string DirectoryOf(absl::string_view path);

// Reads a text file line by line in constant memory: a line longer than max_line_bytes comes in
// pieces (`continued` is then true).
class LineReader {
 public:
  static constexpr int64_t kDefaultMaxLine = 16 << 20;
  // `path` "-" is standard input.
  static absl::StatusOr<LineReader> Open(
      const std::string& path, int64_t max_line_bytes = kDefaultMaxLine);

  // Puts the next line, without its LF or CRLF, into *line; false at the end of the file. A UTF-8
  // byte order mark at the start of the file is dropped. UTF-16, gzip, xz and zstd content is an
  // error of kData that names it.
  absl::StatusOr<bool> Next(std::string* line);

  // Would Next return without waiting for a pipe or terminal? Reads what is there, never waits.
  absl::StatusOr<bool> Ready();

  // Number of the line that Next returned last, from 1.
  int64_t line_number() const { return line_number_; }
  // Did Next return only a piece of a line, with more to come?
  bool continued() const { return continued_; }
  // What ended the line (or piece) that Next returned last: "\n", "\r\n", "\r" (only at the end of
  // the file) or "".
  absl::string_view line_end() const { return line_end_; }
  // Did the file begin with a byte order mark? Known after the first Next.
  bool has_bom() const { return has_bom_; }
  // Bytes consumed so far.
  int64_t position() const { return position_; }
  const std::string& path() const { return path_; }

 private:
  absl::Status Fill();
  absl::Status CheckSignature();

  std::string path_, buffer_;
  Fd fd_;
  size_t begin_ = 0;
  int64_t max_line_ = 0, line_number_ = 0, position_ = 0;
  bool end_ = false, continued_ = false, started_ = false, has_bom_ = false;
  absl::string_view line_end_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_FILE_H_
