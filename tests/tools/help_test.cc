// The help is complete: every command is listed, and every option has a description.
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

TEST(Help, ShowsTypesRangesAndDefaults) {
  const auto options = Entries(HelpOf("vocab"), "Options");
  EXPECT_THAT(options.at("--size"), HasSubstr("Range: 16 to 10000000. Default: 8192."));
  EXPECT_THAT(options.at("--out"), HasSubstr(" Required."));
  EXPECT_THAT(HelpOf("vocab"), HasSubstr("--kind wordpiece|bpe "));
  EXPECT_THAT(HelpOf("vocab"), HasSubstr("\nExamples:\n  cloze vocab "));
  EXPECT_THAT(HelpOf("vocab"), Not(HasSubstr("Excludes")));
}

}  // namespace
}  // namespace cloze
