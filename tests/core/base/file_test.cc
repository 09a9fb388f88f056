#include "core/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) { return directory_ + "/" + name; }
  std::string Make(const std::string& name, const std::string& content) {
    EXPECT_TRUE(WriteNewFile(Path(name), content).ok());
    return Path(name);
  }

  const TestFolder own_;
  const std::string directory_ = own_.path();
};

TEST_F(FileTest, WritesAndReads) {
  const std::string content = std::string("a\0b\n", 4) + std::string(100000, 'x');
  const std::string path = Make("a", content);
  EXPECT_EQ(*ReadFile(path, 1 << 20), content);
  EXPECT_EQ(*FileSize(path), content.size());
  EXPECT_EQ(ExitOf(ReadFile(path, content.size() - 1).status()), Exit::kLimit);
  EXPECT_EQ(ExitOf(WriteNewFile(path, "other")), Exit::kCannotCreate);
  EXPECT_EQ(*ReadFile(path, 1 << 20), content);
}

TEST_F(FileTest, MissingAndSpecialFilesAreNamed) {
  const absl::Status missing = ReadFile(Path("missing"), 10).status();
  EXPECT_EQ(ExitOf(missing), Exit::kNoInput);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("missing"));
  EXPECT_EQ(ExitOf(ReadFile(directory_, 10).status()), Exit::kNoInput);
  EXPECT_EQ(ExitOf(ReadFile("/dev/zero", 10).status()), Exit::kNoInput);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ExitOf(OpenForRead(Path("pipe")).status()), Exit::kNoInput) << "and does not hang";
  EXPECT_EQ(*InputSize(Path("pipe")), 0);
  EXPECT_TRUE(IsStream(Path("pipe")) && IsStream("-") && !IsStream("/dev/zero"));
  EXPECT_EQ(ExitOf(InputFile::Open("/dev/zero").status()), Exit::kNoInput);
  EXPECT_EQ(ExitOf(FileSize(Path("missing")).status()), Exit::kNoInput);
  EXPECT_EQ(ExitOf(LineReader::Open(Path("missing")).status()), Exit::kNoInput);
}

// Such an error passes, so nobody may take the file for missing.
TEST_F(FileTest, TooManyOpenFilesAreNoMissingFile) {
  const std::string path = Make("a", "x");
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status file = ReadFile(path, 10).status(), list = ListDirectory(directory_).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ExitOf(file), Exit::kIo) << file;
  EXPECT_EQ(ExitOf(list), Exit::kIo) << list;
  EXPECT_TRUE(ReadFile(path, 10).ok());
}

TEST_F(FileTest, ReadAtNeedsAllBytes) {
  const std::string path = Make("a", "0123456789");
  const absl::StatusOr<Fd> fd = OpenForRead(path);
  char data[4];
  EXPECT_TRUE(ReadAt(*fd, path, 6, data, 4).ok());
  EXPECT_EQ(std::string(data, 4), "6789");
  EXPECT_EQ(ExitOf(ReadAt(*fd, path, 7, data, 4)), Exit::kData);
}

TEST_F(FileTest, AtomicWriteReplacesWhole) {
  const std::string path = Path("a");
  EXPECT_TRUE(WriteFileAtomically(path, "one").ok());
  EXPECT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(*ReadFile(path, 100), "two");
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("a"));
}

TEST_F(FileTest, FailedAtomicWriteLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(MakeDirectories(Path("a/b")).ok());  // a folder that is not empty cannot be replaced
  EXPECT_FALSE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("a"));
  EXPECT_TRUE(IsDirectory(Path("a/b")));
  EXPECT_EQ(ExitOf(WriteFileAtomically(Path("missing/a"), "new")), Exit::kCannotCreate);
}

TEST_F(FileTest, AnExceptionLeavesNothing) {
  const auto fail = [](const Fd&) -> absl::Status { throw std::bad_alloc(); };
  EXPECT_THROW(CreateFile(Path("a"), fail).IgnoreError(), std::bad_alloc);
  EXPECT_THROW(
      ReplaceFile(Path("b"), [&](const std::string& name) { return CreateFile(name, fail); })
          .IgnoreError(),
      std::bad_alloc);
  const auto late = [](const std::string& name) -> absl::Status {
    RETURN_IF_ERROR(WriteNewFile(name, "whole"));
    throw std::bad_alloc();
  };
  EXPECT_THROW(ReplaceFile(Path("c"), late).IgnoreError(), std::bad_alloc);
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
}

TEST_F(FileTest, AtomicWriteSurvivesALeftover) {
  Make("a.tmp-" + std::to_string(::getpid()), "left by a dead process");
  EXPECT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("a"));
}

constexpr char kDead[] = "999999999";  // no process has this number

TEST_F(FileTest, ReplacingAFileRemovesWhatDeadProcessesLeft) {
  const std::string dead = std::string("a.tmp-") + kDead;
  ASSERT_TRUE(MakeDirectories(Path(dead)).ok());
  Make(dead + "/x", "");
  Make(dead + ".data", "");
  Make("a.tmp-1", "of a living process");
  Make(dead + "-0123abcg", "not our name");
  Make(std::string("b.tmp-") + kDead, "of another file");
  EXPECT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_THAT(*ListDirectory(directory_),
      ElementsAre("a", "a.tmp-1", dead + "-0123abcg", std::string("b.tmp-") + kDead));
}

TEST_F(FileTest, RemoveLeftoversFollowsNoLinksAndStaysInItsNames) {
  const std::string own = "a.tmp-" + std::to_string(::getpid()),
                    link = std::string("a.tmp-") + kDead;
  Make(own, "left by an earlier process with our number");
  Make("target", "");
  ASSERT_EQ(::symlink(Path("target").c_str(), Path(link).c_str()), 0);
  ASSERT_TRUE(MakeDirectories(Path(std::string("c.tmp-") + kDead + "/deep")).ok());
  Make(std::string("b.tmp-") + kDead, "");
  RemoveLeftovers(directory_, [](absl::string_view name) { return name != "b"; });
  EXPECT_THAT(*ListDirectory(directory_),
      ElementsAre(link, std::string("b.tmp-") + kDead, std::string("c.tmp-") + kDead, "target"));
}

TEST_F(FileTest, AtomicFolderAppearsWholeOrNotAtAll) {
  std::string temporary;
  {
    auto folder = AtomicFolder::Create(Path("a"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    temporary = folder->path();
    ASSERT_TRUE(WriteNewFile(JoinPath(folder->path(), "x"), "1").ok());
    EXPECT_FALSE(PathExists(Path("a")));
  }
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
  {
    auto folder = AtomicFolder::Create(Path("a"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(WriteNewFile(JoinPath(folder->path(), "x"), "1").ok());
    ASSERT_TRUE(folder->Commit().ok());
  }
  EXPECT_EQ(*ReadFile(Path("a/x"), 10), "1");
  {
    auto folder = AtomicFolder::Create(Path("a"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(ExitOf(folder->Commit()), Exit::kCannotCreate);
  }
  EXPECT_THAT(*ListDirectory(directory_), ElementsAre("a"));
  EXPECT_EQ(ExitOf(AtomicFolder::Create(Path("missing/a")).status()), Exit::kCannotCreate);
}

TEST_F(FileTest, AnOutputFolderLeavesNoParents) {
  {
    const auto folder = AtomicFolder::CreateOutput(Path("a/b/c/"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(folder->final_path(), Path("a/b/c"));
    EXPECT_TRUE(IsDirectory(Path("a/b")));
  }
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
  {
    auto folder = AtomicFolder::CreateOutput(Path("a/b/c"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(folder->Commit().ok());
  }
  EXPECT_TRUE(IsDirectory(Path("a/b/c")));
  EXPECT_EQ(ExitOf(AtomicFolder::CreateOutput(Path("a/b/c")).status()), Exit::kCannotCreate);
  EXPECT_EQ(ExitOf(AtomicFolder::CreateOutput("").status()), Exit::kUsage);
}

TEST_F(FileTest, AtomicFolderUsesNoPlantedLink) {
  Make("target", "");
  ASSERT_EQ(
      ::symlink(Path("target").c_str(), Path("a.tmp-" + std::to_string(::getpid())).c_str()), 0);
  const auto folder = AtomicFolder::Create(Path("a"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(PathExists(Path("target")));
}

TEST_F(FileTest, FullDiskIsAnIoError) {
  Fd fd(::open("/dev/full", O_WRONLY));
  const absl::Status status = WriteAll(fd, "/dev/full", "x", 1);
  EXPECT_EQ(ExitOf(status), Exit::kIo);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left"));
}

TEST_F(FileTest, RenameNewDoesNotReplace) {
  const std::string a = Make("a", "a"), b = Make("b", "b");
  EXPECT_EQ(ExitOf(RenameNew(a, b)), Exit::kCannotCreate);
  EXPECT_EQ(*ReadFile(b, 10), "b");
  EXPECT_TRUE(RenameNew(a, Path("c")).ok());
  EXPECT_FALSE(PathExists(a));
  EXPECT_EQ(*ReadFile(Path("c"), 10), "a");
  EXPECT_TRUE(SyncDirectory(directory_).ok());
  EXPECT_FALSE(SyncDirectory(Path("missing")).ok());
}

TEST_F(FileTest, MakesDirectories) {
  EXPECT_TRUE(MakeDirectories(Path("x/y/z")).ok());
  EXPECT_TRUE(MakeDirectories(Path("x/y/z")).ok());
  EXPECT_TRUE(MakeDirectories(Path("x/y/w/")).ok());
  EXPECT_TRUE(IsDirectory(Path("x/y/w")));
  Make("file", "");
  EXPECT_EQ(ExitOf(MakeDirectories(Path("file/x"))), Exit::kCannotCreate);
  EXPECT_EQ(ExitOf(MakeDirectories(Path("file"))), Exit::kCannotCreate);
  // The reason is why it cannot be made, not that it is not there.
  EXPECT_THAT(std::string(MakeDirectories("/sys/cloze").message()),
      testing::Not(HasSubstr("No such file")));
  EXPECT_THAT(*ListDirectory(Path("x/y")), ElementsAre("w", "z"));
  EXPECT_EQ(ExitOf(ListDirectory(Path("file")).status()), Exit::kNoInput);
}

TEST(Paths, Join) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(DirectoryOf("a/b/c"), "a/b");
  EXPECT_EQ(DirectoryOf("c"), ".");
  EXPECT_EQ(DirectoryOf("/c"), "/");
}

using Lines = std::vector<std::string>;

class LineReaderTest : public FileTest {
 protected:
  // All lines of a file with this content; pieces of a line end in "+".
  Lines Read(const std::string& content, int64_t max_line = LineReader::kDefaultMaxLine) {
    const std::string name = "lines" + std::to_string(++files_);
    absl::StatusOr<LineReader> reader = LineReader::Open(Make(name, content), max_line);
    Lines lines;
    std::string line;
    while (true) {
      const absl::StatusOr<bool> more = reader->Next(&line);
      if (!more.ok()) return {std::string(more.status().message())};
      if (!*more) break;
      lines.push_back(line + (reader->continued() ? "+" : ""));
      last_number_ = reader->line_number();
    }
    EXPECT_EQ(reader->position(), content.size());
    EXPECT_FALSE(*reader->Next(&line)) << "the end stays the end";
    return lines;
  }

  int files_ = 0;
  int64_t last_number_ = 0;
};

TEST_F(LineReaderTest, EndsOfLines) {
  EXPECT_EQ(Read(""), Lines{});
  EXPECT_EQ(Read("\n"), Lines{""});
  EXPECT_EQ(Read("a"), Lines{"a"});
  EXPECT_EQ(Read("a\n"), Lines{"a"});
  EXPECT_EQ(Read("a\n\nb"), (Lines{"a", "", "b"}));
  EXPECT_EQ(Read("a\r\nb\r\n"), (Lines{"a", "b"}));
  EXPECT_EQ(Read("a\rb\n"), Lines{"a\rb"});
  EXPECT_EQ(Read("a\r"), Lines{"a"});
  EXPECT_EQ(Read("\r\n\r\n"), (Lines{"", ""}));
  EXPECT_EQ(Read(std::string("a\0b\n", 4)), Lines{std::string("a\0b", 3)});
}

TEST_F(LineReaderTest, SaysHowALineEnded) {
  LineReader reader = *LineReader::Open(Make("ends", "a\nb\r\nc\r"));
  std::string line, ends;
  while (*reader.Next(&line)) ends += std::string(reader.line_end()) + "|";
  EXPECT_EQ(ends, "\n|\r\n|\r|");
}

TEST_F(LineReaderTest, DropsTheByteOrderMark) {
  EXPECT_EQ(Read("\xEF\xBB\xBF"
                 "a\nb"),
      (Lines{"a", "b"}));
  EXPECT_EQ(Read("\xEF\xBB\xBF"), Lines{});
  EXPECT_EQ(Read("a\n\xEF\xBB\xBF"
                 "b"),
      (Lines{"a",
          "\xEF\xBB\xBF"
          "b"}));
  LineReader reader = *LineReader::Open(Make("bom",
      "\xEF\xBB\xBF"
      "a"));
  std::string line;
  ASSERT_TRUE(*reader.Next(&line));
  EXPECT_TRUE(reader.has_bom());
}

TEST_F(LineReaderTest, NamesWhatIsNoText) {
  EXPECT_THAT(Read("\xFF\xFE"
                   "a\0")[0],
      HasSubstr("UTF-16"));
  EXPECT_THAT(Read("\xFE\xFF")[0], HasSubstr("UTF-16"));
  EXPECT_THAT(Read(std::string("a\0b\0c\0d\0e\0f\0g\0h\0", 16))[0], HasSubstr("UTF-16"));
  EXPECT_THAT(Read(std::string("\x7F"
                               "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
                  16))[0],
      HasSubstr("binary data"));
  EXPECT_THAT(Read("BZh91AY&SY...")[0], HasSubstr("bzip2 data"));
  EXPECT_THAT(Read("PK\x03\x04")[0], HasSubstr("zip archive"));
}

TEST_F(LineReaderTest, RefusesDataThatAreNotUtf8AtTheirEnd) {
  std::string text, line;
  for (int i = 0; i < 1001; ++i) text += i == 5 ? "caf\xE9\n" : "coffee\n";
  const auto read = [&](const std::string& name, std::optional<Charset> data) {
    LineReader reader = *LineReader::Open(Make(name, text), 100, data);
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = reader.Next(&line);
    EXPECT_EQ(reader.refused(), !more.ok());
    return more.ok() ? "" : std::string(more.status().message());
  };
  EXPECT_EQ(read("few", Charset::kUtf8), "");
  text.resize(text.size() - 14);
  EXPECT_THAT(read("many", Charset::kUtf8), HasSubstr("1 of 999 lines are not UTF-8"));
  EXPECT_EQ(read("latin", Charset::kLatin1), "");
  EXPECT_EQ(read("other", std::nullopt), "") << "not data";
}

TEST_F(LineReaderTest, LongLinesComeInPieces) {
  EXPECT_EQ(Read("abcdefgh\nij\n", 4), (Lines{"abcd+", "efgh", "ij"}));
  EXPECT_EQ(last_number_, 2);
  EXPECT_EQ(Read("abcdefghij", 4), (Lines{"abcd+", "efgh+", "ij"}));
  EXPECT_EQ(Read("abcd\n", 4), Lines{"abcd"});
}

TEST_F(LineReaderTest, PiecesDoNotCutCharacters) {
  EXPECT_EQ(Read("abc\xC3\xA9"
                 "d\n",
                4),
      (Lines{"abc+",
          "\xC3\xA9"
          "d"}));
  EXPECT_EQ(Read("\xF0\x9F\x98\x80\xF0\x9F\x98\x80\n", 6),
      (Lines{"\xF0\x9F\x98\x80+", "\xF0\x9F\x98\x80"}));
  const std::string stray(20, '\x80');  // never a border: cut anyway, and lose nothing
  std::string all;
  for (std::string piece : Read(stray, 6)) all += piece.substr(0, piece.find('+'));
  EXPECT_EQ(all, stray);
}

TEST_F(LineReaderTest, LinesAcrossBuffers) {
  std::string content;
  Lines expected;
  for (int i = 0; i < 3000; ++i) {
    expected.push_back(std::string(i % 997, 'a' + i % 26));
    content += expected.back() + (i % 3 == 0 ? "\r\n" : "\n");
  }
  EXPECT_EQ(Read(content), expected);
  EXPECT_EQ(last_number_, 3000);
}

TEST_F(LineReaderTest, AHundredMegabyteLineTakesLittleMemory) {
  const std::string block(1 << 20, 'x');
  std::string content;
  for (int i = 0; i < 100; ++i) content += block;
  LineReader reader = *LineReader::Open(Make("long", content), 1 << 16);
  std::string line;
  int64_t bytes = 0;
  while (*reader.Next(&line)) {
    ASSERT_LE(line.size(), 1 << 16);
    ASSERT_EQ(reader.line_number(), 1);
    bytes += line.size();
  }
  EXPECT_EQ(bytes, content.size());
}

}  // namespace
}  // namespace cloze
