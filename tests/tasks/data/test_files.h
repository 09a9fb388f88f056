// A folder for a test's files.
#ifndef CLOZE_TESTS_TASKS_DATA_TEST_FILES_H_
#define CLOZE_TESTS_TASKS_DATA_TEST_FILES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"

namespace cloze {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "cloze-" + info->test_suite_name() + "-" + info->name() + "-" +
              std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A DataSpec of one file of that content.
  DataSpec Data(const std::string& name, const std::string& content) const {
    DataSpec spec;
    spec.add_files(Write(name, content));
    return spec;
  }
  static std::string Shared(const std::string& path) {
    return std::string(CLOZE_SOURCE_DIR) + "/../shared/data/" + path;
  }

  std::string folder_;
};

// A pipe that holds `text` and then ends, as <(...) gives it.
class TextPipe {
 public:
  explicit TextPipe(const std::string& text) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    read_ = Fd(ends[0]);
    const Fd write(ends[1]);
    EXPECT_TRUE(WriteAll(write, "pipe", text.data(), text.size()).ok());
  }
  std::string path() const { return absl::StrCat("/dev/fd/", read_.get()); }

 private:
  Fd read_;
};

// Is it an error of `exit` whose message contains `part`?
inline void ExpectError(const absl::Status& status, Exit exit, const std::string& part) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ExitOf(status), exit) << status.message();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(part));
}

// Letters, some words and pieces.
inline std::unique_ptr<Tokenizer> SmallTokenizer() {
  std::vector<std::string> tokens = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "the", "cat",
      "sat", "##s", "on", "mat", ",", "."};
  for (char c = 'a'; c <= 'z'; ++c) {
    tokens.push_back(std::string(1, c));
    if (c != 's') tokens.push_back(absl::StrCat("##", std::string(1, c)));
  }
  auto tokenizer = Tokenizer::Create({.tokens = tokens});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

}  // namespace cloze

#endif  // CLOZE_TESTS_TASKS_DATA_TEST_FILES_H_
