// The help is complete: every command is listed, and every option has a description.
#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"
#include "tools/command.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

#define CLOZE_NAME(Name) #Name,
const std::vector<std::string> kNames = {CLOZE_COMMANDS(CLOZE_NAME)};
#undef CLOZE_NAME

std::string HelpOf(const std::string& command) {
  const RunResult result = RunCloze(command + " --help");
  EXPECT_EQ(result.exit, 0) << command << result.err;
  return result.out;
}

// Returns the entries of a section: name -> description, joined into one line.
std::map<std::string, std::string> Entries(const std::string& help, const std::string& section) {
  std::map<std::string, std::string> entries;
  std::istringstream lines(help);
  bool inside = false;
  std::string name;
  static const std::regex entry("  ([^ ]+)(.*)");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != ' ') {
      inside = line == section + ":";
      continue;
    }
    if (!inside) continue;
    std::smatch match;
    if (line.compare(0, 3, "   ") == 0) {
      entries[name] += line.substr(line.find_first_not_of(' ') - 1);
    } else if (std::regex_match(line, match, entry)) {
      name = match[1];
      // The description begins after at least two spaces.
      const std::string rest = match[2];
      const size_t gap = rest.find("  ");
      entries[name] = gap == std::string::npos ? "" : rest.substr(rest.find_first_not_of(' ', gap));
    }
  }
  return entries;
}

// "FillMask" -> "fill-mask".
std::string CommandName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z' && !out.empty()) out += '-';
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

void ExpectComplete(const std::string& command) {
  const std::string help = HelpOf(command);
  EXPECT_THAT(help, HasSubstr("Usage: cloze " + command));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100) << line;
  for (const char* section : {"Options", "Positionals", "Commands"}) {
    for (const auto& [name, text] : Entries(help, section)) {
      EXPECT_GE(text.size(), 8) << command << " " << name << " needs a description";
      EXPECT_EQ(text.back(), '.') << command << " " << name << ": " << text;
    }
  }
  EXPECT_EQ(Entries(help, "Options").count("--threads"), 1) << command;
}

TEST(Help, ListsEveryCommand) {
  std::set<std::string> listed, expected;
  for (const auto& [name, text] : Entries(HelpOf(""), "Commands")) listed.insert(name);
  for (const std::string& name : kNames) expected.insert(CommandName(name));
  EXPECT_EQ(listed, expected);
}

TEST(Help, DescribesEveryOption) {
  ExpectComplete("");
  for (const std::string& name : kNames) ExpectComplete(CommandName(name));
  for (const char* command : {"spec check", "spec print", "spec explain"}) ExpectComplete(command);
}

// Returns the examples of a help, each from "cloze " up to a pipe or a redirection.
std::vector<std::string> ExamplesIn(const std::string& help) {
  std::vector<std::string> examples;
  std::istringstream lines(help.substr(std::min(help.find("\nExamples:\n"), help.size())));
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.rfind("cloze ");
    if (line.compare(0, 2, "  ") != 0 || begin == std::string::npos) continue;
    const std::string example = line.substr(begin + 6);
    examples.push_back(example.substr(0, std::min(example.find(" < "), example.find(" > "))));
    // RunCloze would take <mask> for a redirection.
    std::string& last = examples.back();
    last.erase(
        std::remove_if(last.begin(), last.end(), [](char c) { return c == '<' || c == '>'; }),
        last.end());
  }
  return examples;
}

TEST(Help, HasTwoExamplesPerCommandThatParse) {
  std::vector<std::string> commands = {"", "spec check", "spec print", "spec explain"};
  for (const std::string& name : kNames) commands.push_back(CommandName(name));
  for (const std::string& command : commands) {
    const std::vector<std::string> examples = ExamplesIn(HelpOf(command));
    EXPECT_GE(examples.size(), 2) << command;
    for (const std::string& example : examples) {
      const RunResult result = RunCloze(example + " --help");
      EXPECT_EQ(result.exit, 0) << example << "\n" << result.err;
      EXPECT_THAT(result.out, HasSubstr("Usage: cloze " + command)) << example;
    }
  }
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(RunCloze("help").out, HelpOf(""));
  EXPECT_EQ(RunCloze("help vocab").out, HelpOf("vocab"));
  EXPECT_EQ(RunCloze("help spec check").out, HelpOf("spec check"));
  const RunResult wrong = RunCloze("help spce"), flag = RunCloze("spce --help");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_EQ(
      wrong.err, "cloze: unknown command \"spce\"; did you mean \"spec\"?\nTry `cloze --help`.\n");
  EXPECT_EQ(flag.err, wrong.err);
  EXPECT_EQ(RunCloze("version").out, RunCloze("--version").out);
  EXPECT_EQ(RunCloze("-v").out, RunCloze("--version").out);
}

// Man pages come from the declarations, completion from the program; programs that read them find
// no fault.
TEST(Help, WritesManPagesAndCompletion) {
  const std::string folder = TemporaryFolder();
  ASSERT_EQ(RunCloze("help --write " + folder).exit, 0);
  const auto shell = [&](const std::string& commands) {
    const RunResult result =
        RunCloze("version > /dev/null; (cd " + folder + "; " + commands + ") > " + folder + "/out");
    EXPECT_EQ(result.err, "") << commands;
    std::ostringstream out;
    out << std::ifstream(folder + "/out").rdbuf();
    return out.str();
  };
  shell("bash -n cloze.bash");
  shell("! command -v zsh > /dev/null || zsh -n _cloze");
  shell("! command -v fish > /dev/null || fish -n cloze.fish");
  shell(
      "command -v man > /dev/null || exit 0; for page in *.1; do "
      "LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l $page > /dev/null; done");
  for (const std::string& name : kNames) {
    const std::string page = shell("cat cloze-" + CommandName(name) + ".1");
    for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"})
      EXPECT_THAT(page, HasSubstr(std::string(".SH ") + section + "\n")) << name;
  }
  const auto complete = [&](const std::string& words) {
    const std::string program = CLOZE_BINARY;
    return shell("PATH=" + program.substr(0, program.rfind('/')) +
                 ":$PATH bash -c 'source cloze.bash; COMP_WORDS=(" + words +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cloze; echo ${COMPREPLY[*]}'");
  };
  EXPECT_EQ(complete("cloze fin"), "finetune\n");
  EXPECT_EQ(complete("cloze spec ch"), "check\n");
  EXPECT_EQ(complete("cloze vocab --kind b"), "bpe\n");
  EXPECT_EQ(complete("cloze vocab --text b"), "\n");  // a file
  EXPECT_EQ(complete("cloze finetune --pl"), "--plan\n");
}

TEST(Help, ShowsTypesRangesAndDefaults) {
  const auto options = Entries(HelpOf("vocab"), "Options");
  EXPECT_THAT(options.at("--size"), HasSubstr("Range: 16 to 10000000. Default: 8192."));
  EXPECT_THAT(options.at("--out"), HasSubstr(" Required."));
  EXPECT_THAT(HelpOf("vocab"), HasSubstr("--kind wordpiece|bpe|unigram\n"));
  EXPECT_THAT(HelpOf("vocab"), HasSubstr("\nExamples:\n  cloze vocab "));
  EXPECT_THAT(HelpOf("vocab"), Not(HasSubstr("Excludes")));
}

}  // namespace
}  // namespace cloze
