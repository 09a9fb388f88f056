// What the linker made of `cloze`: hardened, and without the means to start programs or to reach a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace cloze {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct ClosePipe {
  void operator()(std::FILE* pipe) const { ::pclose(pipe); }
};

// What `readelf` says about the program.
std::string ReadElf(const std::string& flags) {
  const std::unique_ptr<std::FILE, ClosePipe> pipe(::popen(("readelf -W " + flags + " '" CLOZE_BINARY "'").c_str(), "r"));
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) out.append(buffer.data(), n);
  return out;
}

class BinaryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers bring their own";
    if (ReadElf("-h").empty()) GTEST_SKIP() << "no readelf";
  }
};

TEST_F(BinaryTest, IsHardened) {
  EXPECT_THAT(ReadElf("-h"), HasSubstr("DYN ")) << "position independent";
  const std::string segments = ReadElf("-l");
  EXPECT_THAT(segments, HasSubstr("GNU_RELRO"));
  std::istringstream lines(segments);
  bool stack = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("GNU_STACK") == std::string::npos) continue;
    stack = true;
    EXPECT_THAT(line, Not(HasSubstr("RWE")));
  }
  EXPECT_TRUE(stack);
  const std::string dynamic = ReadElf("-d");
  EXPECT_THAT(dynamic, HasSubstr("NOW"));
  EXPECT_THAT(dynamic, Not(HasSubstr("RPATH")));
  EXPECT_THAT(dynamic, Not(HasSubstr("TEXTREL")));
}

// posix_spawn is there for `cloze bench start`; tests/rules/source_test.cc keeps it in that file.
TEST_F(BinaryTest, CannotStartProgramsOrReachANetwork) {
  static const std::set<std::string> kForbidden = {
      "system",  "popen",        "fork",   "vfork",   "execl",  "execlp",  "execle", "execv",  "execvp", "execve",      "execvpe",
      "fexecve", "posix_spawnp", "dlopen", "dlmopen", "socket", "connect", "bind",   "listen", "accept", "getaddrinfo", "gethostbyname"};
  std::istringstream lines(ReadElf("--dyn-syms"));
  std::vector<std::string> found;
  int imports = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number, value, size, type, bind, visibility, section, name;
    fields >> number >> value >> size >> type >> bind >> visibility >> section >> name;
    if (section != "UND" || name.empty()) continue;
    ++imports;
    name = name.substr(0, name.find('@'));
    if (kForbidden.count(name) > 0) found.push_back(name);
  }
  EXPECT_GT(imports, 50);
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace cloze
