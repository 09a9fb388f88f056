// What the program shows on a terminal, which a pseudo-terminal stands for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Runs `cloze <arguments>` in `folder` on a terminal with `columns`, types `input`, and returns
// what the terminal receives.
std::string OnTerminal(const std::string& folder, const std::string& arguments, int columns,
    const std::string& input = "", const std::string& variables = "") {
  winsize size = {};
  size.ws_row = 24, size.ws_col = columns;
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    const std::string command = "cd " + folder + " && TERM=xterm LC_ALL=C.UTF-8 " + variables +
                                " exec " + CLOZE_BINARY + " " + arguments;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_EQ(::write(terminal, input.data(), input.size()), input.size());
  std::string shown;
  char buffer[4096];
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof(buffer))) > 0;) shown.append(buffer, n);
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(terminal);
  EXPECT_EQ(status, 0) << shown;
  return shown;
}

class TerminalTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) GTEST_SKIP() << "no pseudo-terminals on this machine";
    ::close(terminal);
    dir_ = new std::string(TemporaryFolder());
    std::string text;
    for (int i = 0; i < 40; ++i) text += "A great film and a dull movie was here.\n\n";
    std::ofstream(*dir_ + "/text.txt") << text;
    std::ofstream(*dir_ + "/spec.textproto")
        << "model { tokenizer: \"vocab\" encoder { preset: CUSTOM layers: 1 hidden: 16 heads: 2 "
           "intermediate: 16 max_positions: 32 } } masked_lm { max_tokens: 24 } "
           "train { files: \"text.txt\" } validation { files: \"text.txt\" } "
           "batch { tokens: 512 } schedule { steps: 40 } "
           "output { directory: \"run\" tensorboard: true }";
    ASSERT_EQ(
        RunCloze("vocab --size 80 --text text.txt --out vocab", "cd " + *dir_ + " && ").exit, 0);
    shown_ = new std::string(OnTerminal(*dir_, "pretrain spec.textproto", 50, "", "NO_COLOR=1"));
  }
  static void TearDownTestSuite() { delete dir_, delete shown_; }

  static std::string *dir_, *shown_;
};
std::string *TerminalTest::dir_ = nullptr, *TerminalTest::shown_ = nullptr;

TEST_F(TerminalTest, TheLiveLineFitsAndHasNoColour) {
  int lines = 0;
  for (const absl::string_view line : absl::StrSplit(*shown_, absl::ByAnyChar("\r\n"))) {
    if (!absl::StartsWith(line, "step ")) continue;
    ++lines;
    EXPECT_LT(CountCodePoints(line), 50) << line;
  }
  EXPECT_GE(lines, 1);
  EXPECT_THAT(*shown_, HasSubstr("step 40/40  loss "));
  EXPECT_THAT(*shown_, Not(HasSubstr("\x1b[1m")));
  EXPECT_THAT(*shown_, Not(HasSubstr("saved ")));
}

TEST_F(TerminalTest, TensorBoardsFileIsThere) {
  EXPECT_GT(std::filesystem::file_size(*dir_ + "/run/events.out.tfevents.cloze"), 500);
}

TEST_F(TerminalTest, FillMaskPromptsAndPrintsTables) {
  const std::string shown =
      OnTerminal(*dir_, "fill-mask --model run --top 2", 80, "a <mask> film\n\x04");
  EXPECT_THAT(shown, HasSubstr("> "));
  EXPECT_THAT(shown, HasSubstr("\x1b[1ma <mask> film  "));
  EXPECT_THAT(shown, HasSubstr("score"));
  EXPECT_THAT(shown, Not(HasSubstr("{")));
  EXPECT_THAT(OnTerminal(*dir_, "fill-mask --model run --top 2 --json 'a <mask>'", 80),
      StartsWith("{\"text\": \"a <mask>\", \"masks\": "));
}

// No writer passes on what a terminal obeys.
TEST_F(TerminalTest, CellsOfTheInputAreEscaped) {
  std::ofstream(*dir_ + "/evil.csv") << "text,a\x1b]0;b\x07\nfilm,\u202e\u009b"
                                        "31m\n";
  const std::string score = "score --model run --format ";
  for (const std::string format : {"csv", "tsv", "jsonl"}) {
    const std::string shown = OnTerminal(*dir_, score + format + " evil.csv", 80);
    for (const char* bad : {"\x1b", "\x07", "\u202e", "\u009b"})
      EXPECT_THAT(shown, Not(HasSubstr(bad))) << format;
    if (format != "jsonl") {
      EXPECT_THAT(shown, HasSubstr("\\u{202E}\\u{9B}31m")) << format;
    }
  }
}

TEST_F(TerminalTest, NeighborsAreTables) {
  const std::string shown =
      OnTerminal(*dir_, "neighbors --model run --top 3 film", 80, "", "NO_COLOR=1");
  EXPECT_THAT(shown, StartsWith("film"));
  EXPECT_THAT(shown, HasSubstr("score\r\n"));
  EXPECT_THAT(shown, Not(HasSubstr("{")));
}

}  // namespace
}  // namespace cloze
