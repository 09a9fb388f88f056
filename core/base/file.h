// Files and folders: bounded reads, buffered lines, durable and atomic writes.
//
// Atomic means that after a crash the old or the new file or folder is there, complete. Temporary
// names are "PATH.tmp-<pid>", so that those of dead processes can be recognized and removed.
#ifndef CLOZE_CORE_BASE_FILE_H_
#define CLOZE_CORE_BASE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/base/charset.h"
#include "core/base/status.h"
#include "core/base/unpack.h"

namespace cloze {

// Returns an error for `errno`: "path: what: why".
absl::Status Errno(Exit exit, absl::string_view what, absl::string_view path);

// Returns the exit code of a failed attempt to create something: kIo when the disk is full or
// broken, else kCannotCreate.
Exit ExitOfCreate(int error);

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Closes the descriptor and returns any error.
  absl::Status Close(absl::string_view path);

 private:
  int fd_ = -1;
};

// Opens a regular file for reading. kNoInput if it is missing, unreadable or not a regular file.
absl::StatusOr<Fd> OpenForRead(const std::string& path);

// Returns the size of a regular file in bytes. kNoInput if it is missing or something else.
absl::StatusOr<int64_t> FileSize(const std::string& path);
// Returns FileSize(path), or 0 for a stream (see IsStream).
absl::StatusOr<int64_t> InputSize(const std::string& path);

// Returns the content of a file. kLimit if it is larger than max_bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

// Reads exactly `size` bytes at `offset`. kIo on errors, kData if the file is shorter.
absl::Status ReadAt(const Fd& fd, absl::string_view path, int64_t offset, void* data, int64_t size);

// Calls `visit` with the first `size` bytes of a file in blocks of at most 1 MiB. Errors of ReadAt
// and `visit`.
absl::Status ForBlocks(const Fd& fd, const std::string& path, int64_t size,
    absl::FunctionRef<absl::Status(const char* data, int64_t size)> visit);

// Writes all of `size` bytes; handles short writes and EINTR. kIo.
absl::Status WriteAll(const Fd& fd, absl::string_view path, const void* data, int64_t size);

bool PathExists(const std::string& path);
// True if `path` can be read only once: standard input ("-"), pipes such as <(...), and /dev/stdin
// if it is a character device.
bool IsStream(const std::string& path);
bool IsDirectory(const std::string& path);
// Returns "PATH: no such file or folder"; says how to get a model if the path looks like the name
// of one on a hub, such as bert-base-uncased or OWNER/NAME.
absl::Status NoSuchModel(const std::string& path);

// Returns the names in `directory`, sorted, without "." and "..". kNoInput if it cannot be opened,
// kIo.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& directory);

// Returns "a/b" for "a" and "b", and `b` alone if `a` is empty or `b` is absolute.
std::string JoinPath(absl::string_view a, absl::string_view b);

// Returns the absolute path without "." and "..", or `path` if the working directory is unknown.
std::string AbsolutePath(const std::string& path);

// Returns `path` relative to the folder `from`, which need not exist, with links resolved; the
// absolute path if that fails.
std::string RelativePath(const std::string& path, const std::string& from);

// Returns the folder of a path: "a/b" for "a/b/c", "." for "c".
std::string DirectoryOf(absl::string_view path);

// Returns the last part of a path: "c" for "a/b/c".
std::string BaseName(absl::string_view path);

// Creates `path` and its parents if they are missing. Appends those it created to *made, unless
// null, outermost first, even if it fails later. kCannotCreate, or kIo if the disk fails.
absl::Status MakeDirectories(const std::string& path, std::vector<std::string>* made = nullptr);

// Removes nested folders, listed from the outermost, starting with the innermost. Stops at the
// first that is not empty.
void RemoveEmpty(const std::vector<std::string>& folders);

// Creates `path`, which must not exist, calls `write` to fill it, fsyncs and closes it. Removes it
// after an exception or error: kCannotCreate, kIo, that of `write`. Does not fsync the directory.
absl::Status CreateFile(const std::string& path, absl::FunctionRef<absl::Status(const Fd&)> write);

// Creates a file with `content` like CreateFile.
absl::Status WriteNewFile(const std::string& path, absl::string_view content);

// Returns the temporary name of `path` for this process. Removes any file or folder of that name,
// and temporary files of `path` that dead processes left.
std::string TemporaryName(const std::string& path);

// Calls `write` to create TemporaryName(path), renames it to `path` and fsyncs the directory. After
// an exception or error, of `write` or kIo, `path` is unchanged unless only the last fsync failed.
// With `replace` false, returns kCannotCreate if `path` exists, and a failed fsync removes it.
absl::Status ReplaceFile(const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& temporary)> write, bool replace = true);

// Replaces `path` by a file with `content` like ReplaceFile.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// Renames a file or folder. kCannotCreate if `to` exists. Durable only after SyncDirectory.
absl::Status RenameNew(const std::string& from, const std::string& to);

// Makes renames and new names in `directory` durable. kIo.
absl::Status SyncDirectory(const std::string& directory);

// A new folder under a temporary name. Removed by the destructor, with the files in it, unless
// Commit succeeded.
class AtomicFolder {
 public:
  // Makes the folder TemporaryName(path); kCannotCreate or kIo.
  static absl::StatusOr<AtomicFolder> Create(const std::string& path);
  // Create() that also makes missing parents; the destructor removes them unless Commit succeeded.
  // kUsage if `path` is empty, kCannotCreate if it exists.
  static absl::StatusOr<AtomicFolder> CreateOutput(std::string path);
  AtomicFolder(AtomicFolder&& other) noexcept
      : final_(std::move(other.final_)), temporary_(std::exchange(other.temporary_, "")),
        parents_(std::exchange(other.parents_, {})) {}
  ~AtomicFolder();

  // Returns the folder to write to. Every file must be fsynced before Commit.
  const std::string& path() const { return temporary_; }
  // Returns the path that the folder has after Commit.
  const std::string& final_path() const { return final_; }
  // Fsyncs the folder, renames it to the final path and fsyncs the parent. kCannotCreate when the
  // final path exists. After an error the folder has its temporary name.
  absl::Status Commit();

 private:
  AtomicFolder(std::string path, std::string temporary)
      : final_(std::move(path)), temporary_(std::move(temporary)) {}
  std::string final_, temporary_;
  std::vector<std::string> parents_;  // that CreateOutput made, outermost first
};

// Removes temporary files and folders from `directory` if `ours` accepts their final name and their
// process is dead or, with `own`, was an earlier one with our process id: this process must not
// have written there yet. Does not follow links or remove nested folders.
void RemoveLeftovers(const std::string& directory,
    absl::FunctionRef<bool(absl::string_view name)> ours, bool own = true);

// Input data: a file or stream, unpacked if it is gzip, xz or zstd data.
class InputFile {
 public:
  // Opens a regular file or a stream. kNoInput if it is missing, unreadable or something else.
  static absl::StatusOr<InputFile> Open(const std::string& path);
  // Appends the next part of the content, at most 256 KB and maybe nothing, to *out. Returns false
  // at the end. kData for broken archives.
  absl::StatusOr<bool> Read(std::string* out);
  // True if Read would not wait.
  bool Ready() const;
  // Bytes of the file read so far, as they are stored.
  int64_t position() const { return position_; }

 private:
  absl::Status ReadStored();
  absl::StatusOr<bool> ReadUnpacked(std::string* out);

  std::string path_, stored_;
  Fd fd_;
  std::unique_ptr<Unpacker> unpacker_;  // null: not packed
  size_t begin_ = 0;                    // start of the unread part of stored_
  int64_t position_ = 0;
  bool decided_ = false, end_ = false;  // unpacker_ is known; the file has ended
};

// Returns the encoding of a file, which is no stream: by its byte order mark, zeros of UTF-16, or
// its first line beyond ASCII; `fallback` if that is not UTF-8, and for ASCII unless it is UTF-16.
absl::StatusOr<Charset> CharsetOfFile(const std::string& path, Charset fallback);

// Returns the content of a file, unpacked. kLimit if it is larger than max_bytes.
absl::StatusOr<std::string> ReadInput(const std::string& path, int64_t max_bytes);

// Reads a text file line by line in constant memory. A line longer than max_line_bytes is returned
// in pieces, and continued() is true for all but the last.
class LineReader {
 public:
  static constexpr int64_t kDefaultMaxLine = 16 << 20;
  // Opens a file or a stream. Data may have other encodings than UTF-8: `data` is the one where the
  // bytes do not tell (see TextDecoder).
  static absl::StatusOr<LineReader> Open(const std::string& path,
      int64_t max_line_bytes = kDefaultMaxLine, std::optional<Charset> data = std::nullopt);

  // Reads the next line, without LF or CRLF, into *line. Returns false at the end of the file.
  // Unpacks gzip, xz and zstd data. Skips a UTF-8 byte order mark. kData for other formats, for
  // UTF-16 text that is not recognized, and at the end of data that are not UTF-8
  // (TextDecoder::Check).
  absl::StatusOr<bool> Next(std::string* line);

  // True if Next would not block. Reads available input without blocking.
  absl::StatusOr<bool> Ready();

  // Number of the last line, from 1.
  int64_t line_number() const { return line_number_; }
  // True if Next returned a piece of a line and more follows.
  bool continued() const { return continued_; }
  // End of the last line or piece: "\n", "\r\n", "\r" (only at the end of the file) or "".
  absl::string_view line_end() const { return line_end_; }
  // True if the file begins with a byte order mark. Requires a call of Next.
  bool has_bom() const { return has_bom_; }
  // True if Next has returned an error because of lines that are not UTF-8.
  bool refused() const { return refused_; }
  // Bytes of text consumed so far.
  int64_t position() const { return position_; }
  // Bytes of the file read so far, as they are stored; some are not consumed yet.
  int64_t stored_position() const { return input_->position(); }
  const std::string& path() const { return path_; }

 private:
  absl::Status Fill();
  absl::Status CheckSignature();
  // Moves the next `size` bytes, which end with `line_end`, to *line, and leaves `line_end` out.
  absl::StatusOr<bool> Take(std::string* line, size_t size, absl::string_view line_end);

  std::string path_, buffer_;
  std::optional<InputFile> input_;
  std::optional<TextDecoder> decoder_;  // of data
  size_t begin_ = 0;
  int64_t max_line_ = 0, line_number_ = 0, position_ = 0;
  bool end_ = false, continued_ = false, started_ = false, has_bom_ = false, refused_ = false;
  absl::string_view line_end_;
};

// The texts that vocabularies and word vectors are learned from, one after another.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // Reads the next text, or piece of a long one, into *text. Returns false at the end.
  virtual absl::StatusOr<bool> Next(std::string* text) = 0;
  // The characters that end the last text: "\n", or "" after a piece that goes on.
  virtual absl::string_view end() const = 0;
  // Number of the line of the file at which the last text begins, from 1.
  virtual int64_t line() const = 0;
  // Bytes of the file read so far, as they are stored.
  virtual int64_t position() const = 0;
};

// Opens a file; "-" is standard input.
using OpenTexts = std::function<absl::StatusOr<std::unique_ptr<TextSource>>(const std::string&)>;

// Opens a text file: each line is a text. Errors of LineReader.
absl::StatusOr<std::unique_ptr<TextSource>> OpenLines(const std::string& path);
// OpenLines for a file whose encoding is `fallback` where it does not tell, see TextDecoder.
absl::StatusOr<std::unique_ptr<TextSource>> OpenEncodedLines(
    const std::string& path, Charset fallback);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_FILE_H_
