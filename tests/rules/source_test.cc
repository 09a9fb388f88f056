// The house rules that a program can check: who may include whom, what no product file may call,
// how a file looks.
#include "tests/rules/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}
bool EndsWith(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}
bool IsTest(const SourceFile& file) { return StartsWith(file.path, "tests/"); }

// What is wrong, as "file:line: what".
using Findings = std::vector<std::string>;

void Add(Findings* findings, const SourceFile& file, size_t line, const std::string& what) {
  findings->push_back(file.path + ":" + std::to_string(line + 1) + ": " + what);
}

const std::vector<SourceFile>& Code() {
  static const std::vector<SourceFile> files = ReadTree({".cc", ".h"});
  return files;
}

// Most methods (declarations that are not data) and data members of a class, and the classes that
// have more. The list may only get shorter, and its numbers lower.
constexpr int64_t kMethods = 20, kMembers = 16;
struct LargeClass {
  const char *file, *name;
  int64_t methods, members;  // 0: not above the limit
};
constexpr LargeClass kLargeClasses[] = {
    {"core/ops/kernels/attention.h", "AttentionArgs", 0, 17},
    {"core/text/tokenizer/tokenizer_data.h", "TokenizerData", 0, 17},
    {"tasks/sequence_classification.cc", "SequenceClassification", 23, 0},
    {"tools/bench/bench.h", "Options", 0, 17},
};

// Each room with the rooms directly below it, lower rooms first. Generated proto files are in
// proto.
constexpr std::pair<const char*, const char*> kRooms[] = {
    {"core/base", ""},
    {"core/comm", "core/base"},
    {"core/manifest", "core/base"},
    {"core/text/unicode", "core/base"},
    {"core/text/tokenizer", "core/text/unicode"},
    {"core/text/files", "core/text/tokenizer core/manifest"},
    {"core/text/learning", "core/text/files"},
    {"core/tensor", "core/base"},
    {"core/ops/kernels", "core/tensor"},
    {"core/ops", "core/ops/kernels"},
    {"core/vectors", "core/text/learning core/ops"},
    {"proto", "core/base"},
    {"encoder/graph", "core/ops proto"},
    {"encoder/modules", "encoder/graph"},
    {"encoder/families", "encoder/modules"},
    {"encoder/folder", "encoder/families core/manifest"},
    {"encoder", "encoder/folder"},
    {"encoder/onnx", "encoder"},
    {"tasks/data", "core/text/files core/tensor proto"},
    {"tasks", "encoder tasks/data"},
    {"tasks/console", "tasks"},
    {"tasks/inference", "tasks/console core/comm"},
    {"tasks/run", "tasks/inference"},
    {"tasks/update", "core/comm core/ops proto"},
    {"tasks/training", "tasks/run tasks/update core/text/learning"},
    {"tasks/jobs", "tasks/training"},
    {"tools", "core/vectors encoder/onnx tasks/jobs"},
    {"tools/bench", "tools"},
    {"tools/mpi", "tools"},
    {"tools/library", "tasks/inference"},
    {"tools/serve", "tools tools/library"},
};

// Each room and all rooms it may include: itself, the rooms below it, and whatever they may
// include.
const std::map<std::string, std::set<std::string>>& Rooms() {
  static const auto* const rooms = [] {
    auto* all = new std::map<std::string, std::set<std::string>>;
    for (const auto& [room, below] : kRooms) {
      std::set<std::string>& may = (*all)[room];
      may.insert(room);
      std::istringstream names(below);
      for (std::string name; names >> name;) may.insert(all->at(name).begin(), all->at(name).end());
    }
    return all;
  }();
  return *rooms;
}

std::string Folder(const std::string& path) {
  return path.substr(0, std::max<int64_t>(path.rfind('/'), 0));
}

TEST(Rules, TheScannerSeesCode) {
  EXPECT_THAT(StripComments("int a; // rand()\n/* x\ny */ int b = 1'000; \"rand() \\\" // no\" c"),
      ElementsAre("int a; ", "", " int b = 1'000; \"\" c"));
  EXPECT_THAT(StripComments("f('\"', \"a\");\nR\"(x\n\"y)\" z"),
      ElementsAre("f('', \"\");", "R\"", "\" z"));
  EXPECT_THAT(Identifiers("std::rand () + x.system(1) + y"),
      ElementsAre("std", "rand(", "x", "system(", "1", "y"));
  EXPECT_EQ(Included("#include \"core/base/file.h\""), "core/base/file.h");
  EXPECT_EQ(Included("#include <omp.h>"), "omp.h");
  EXPECT_GT(Code().size(), 50);
}

TEST(Rules, RoomsIncludeOnlyRoomsBelow) {
  Findings findings;
  for (const SourceFile& file : Code()) {
    if (IsTest(file)) continue;
    const auto room = Rooms().find(Folder(file.path));
    if (room == Rooms().end()) {
      Add(&findings, file, 0, "is in no known room");
      continue;
    }
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string included = Included(file.lines[i]), folder = Folder(included);
      const bool ours = Rooms().count(folder) > 0 || StartsWith(included, "tests/") ||
                        StartsWith(included, "core/");
      if (ours && room->second.count(folder) == 0)
        Add(&findings, file, i, room->first + " may not include " + included);
    }
  }
  EXPECT_THAT(findings, IsEmpty());
}

TEST(Rules, OneFileKnowsOneDnnAndOneRoomKnowsOpenMp) {
  Findings findings;
  std::set<std::string> dnnl;
  for (const SourceFile& file : Code()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string included = Included(file.lines[i]);
      if (included.find("/dnnl/") != std::string::npos) dnnl.insert(file.path);
      if (IsTest(file)) continue;
      const bool base = Folder(file.path) == "core/base";
      if (included == "omp.h" && !base) Add(&findings, file, i, "includes omp.h");
      if (file.code[i].find("#pragma omp") == std::string::npos) continue;
      if (file.code[i].find("parallel") != std::string::npos && !base)
        Add(&findings, file, i, "starts threads; use core/base/threads.h");
      if (file.code[i].find("reduction") != std::string::npos)
        Add(&findings, file, i, "sums in an order of its own");
    }
  }
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_EQ(dnnl.size(), 1) << testing::PrintToString(dnnl);
  for (const std::string& path : dnnl) EXPECT_EQ(Folder(path), "core/ops");
}

TEST(Rules, ProductCallsNothingForbidden) {
  // Random numbers come from Philox; no program is started, no network used, no code loaded.
  static const std::map<std::string, std::string> kExceptions = {
      {"posix_spawn(", "tools/bench/start.cc"},  // to time its own start
      {"dlopen(", "encoder/onnx/runtime.cc"},    // ONNX Runtime, for `cloze export --check`
      {"socket(", "tools/serve/sockets.cc"}, {"connect(", "tools/serve/sockets.cc"}};
  static const std::set<std::string> kForbidden = {"rand(", "srand(", "drand48(", "random(",
      "random_device", "mt19937", "mt19937_64", "default_random_engine", "minstd_rand", "system(",
      "popen(", "fork(", "vfork(", "posix_spawn(", "execl(", "execlp(", "execle(", "execv(",
      "execvp(", "execve(", "execvpe(", "dlopen(", "socket(", "connect(", "getaddrinfo(", "gets(",
      "strcpy(", "strcat(", "sprintf(", "mktemp(", "tmpnam(", "reduction("};
  Findings findings;
  for (const SourceFile& file : Code()) {
    if (IsTest(file)) continue;
    for (size_t i = 0; i < file.code.size(); ++i) {
      for (const std::string& name : Identifiers(file.code[i])) {
        const auto found = kExceptions.find(name);
        if (found != kExceptions.end() && found->second == file.path) continue;
        if (kForbidden.count(name) > 0) Add(&findings, file, i, "uses " + name);
      }
    }
  }
  EXPECT_THAT(findings, IsEmpty());
}

// Marks and paths are put together here so that this file does not find itself.
TEST(Rules, NothingUnfinishedAndNoPathOfThisMachine) {
  const std::vector<std::string> marks = {
      std::string("TO") + "DO", std::string("FIX") + "ME", std::string("XX") + "X"};
  const std::vector<std::string> paths = {std::string("/wo") + "rk/", std::string("/ro") + "ot/",
      std::string("/ho") + "me/", std::string("/tm") + "p/"};
  Findings findings;
  for (const SourceFile& file : ReadTree(
           {".cc", ".h", ".proto", ".cmake", ".txt", ".sh", ".textproto", ".md", ".json", "run"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& mark : marks) {
        const size_t at = file.lines[i].find(mark);
        if (at == std::string::npos) continue;
        const size_t end = at + mark.size();
        // A word of its own; mkdtemp's pattern is none.
        const bool word = (at == 0 || !std::isalnum(file.lines[i][at - 1])) &&
                          (end == file.lines[i].size() || !std::isalnum(file.lines[i][end]));
        if (word) Add(&findings, file, i, "holds " + mark);
      }
      for (const std::string& path : paths) {
        const bool found = file.lines[i].find(path) != std::string::npos;
        if (found && !(IsTest(file) && path == paths.back()))
          Add(&findings, file, i, "names " + path);
      }
    }
  }
  EXPECT_THAT(findings, IsEmpty());
}

TEST(Rules, FilesAreShort) {
  Findings findings;
  for (const SourceFile& file : ReadTree({".cc", ".h", ".proto", ".cmake", ".sh"})) {
    const size_t limit = IsTest(file) ? 600 : EndsWith(file.path, ".proto") ? 500 : 400;
    if (file.lines.size() > limit)
      Add(&findings, file, limit,
          "has " + std::to_string(file.lines.size()) + " lines; would two files be clearer?");
  }
  EXPECT_THAT(findings, IsEmpty());
}

TEST(Rules, LinesAreShortAndClean) {
  Findings findings;
  for (const SourceFile& file : ReadTree({".cc", ".h", ".proto"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      // Tests may hold longer literals.
      const std::string& counted = IsTest(file) ? file.code[i] : line;
      const auto continuation = [](char c) { return (c & 0xC0) == 0x80; };
      const int64_t columns =
          counted.size() - std::count_if(counted.begin(), counted.end(), continuation);
      if (columns > 100) Add(&findings, file, i, "is " + std::to_string(columns) + " columns long");
      if (line.find('\t') != std::string::npos) Add(&findings, file, i, "holds a tab");
      if (!line.empty() && (line.back() == ' ' || line.back() == '\r'))
        Add(&findings, file, i, "ends in white space");
    }
  }
  EXPECT_THAT(findings, IsEmpty());
}

TEST(Rules, TheScannerSeesFunctionsAndClasses) {
  SourceFile file;
  file.code = StripComments(
      "class A : public B {\n public:\n  // words, words\n  A() = default;\n  int Get() const {\n  "
      "  if (x_) {\n"
      "      return 1;\n    }\n    return 2;\n  }\n  void Set(int x,\n      int y);\n\n private:\n"
      "  int x_ = 0, y_;\n  std::map<int, int> z_{};\n};\nint Free(\n    int a) {\n  return a;\n}\n"
      "namespace {\nint one_line() { return 1; }\n}\n");
  const std::vector<Block> blocks = Blocks(file);
  ASSERT_EQ(blocks.size(), 3);
  EXPECT_TRUE(blocks[0].is_class);
  EXPECT_EQ(blocks[0].name, "A");
  EXPECT_EQ(blocks[0].first, 0);
  EXPECT_EQ(blocks[0].lines, 17);
  EXPECT_EQ(blocks[0].methods, 3);
  EXPECT_EQ(blocks[0].members, 3);
  EXPECT_FALSE(blocks[1].is_class);
  EXPECT_EQ(blocks[1].first, 4);
  EXPECT_EQ(blocks[1].lines, 6);
  EXPECT_EQ(blocks[2].first, 17);
  EXPECT_EQ(blocks[2].lines, 4);
}

TEST(Rules, FunctionsAndClassesAreSmall) {
  Findings findings;
  for (const SourceFile& file : Code()) {
    for (const Block& block : Blocks(file)) {
      const auto too_many = [&](int64_t count, int64_t limit, const std::string& what) {
        if (count > limit)
          Add(&findings, file, block.first,
              "has " + std::to_string(count) + " " + what + ", at most " + std::to_string(limit));
      };
      if (!block.is_class) {
        too_many(block.lines, IsTest(file) ? 100 : 60, "lines in a function");  // tests have tables
      } else if (!IsTest(file)) {
        LargeClass limit = {"", "", kMethods, kMembers};
        for (const LargeClass& large : kLargeClasses) {
          if (file.path != large.file || block.name != large.name) continue;
          limit.methods = std::max(limit.methods, large.methods);
          limit.members = std::max(limit.members, large.members);
          if ((large.methods > 0 && block.methods < large.methods) ||
              (large.members > 0 && block.members < large.members))
            Add(&findings, file, block.first, "is smaller than kLargeClasses says: lower it there");
        }
        too_many(block.methods, limit.methods, "methods");
        too_many(block.members, limit.members, "data members");
      }
    }
  }
  EXPECT_THAT(findings, IsEmpty());
}

// Lower floors know neither how a command spells a setting nor the names of Hugging Face.
TEST(Rules, LowerFloorsDoNotNameHigherOnes) {
  const std::regex flag("\"[^\"]*--[a-z][a-z-]+"), family("\\bFamily\\b");
  Findings findings;
  for (const SourceFile& file : Code()) {
    if (IsTest(file) || StartsWith(file.path, "tools/") || StartsWith(file.path, "proto/"))
      continue;
    const bool module = StartsWith(file.path, "encoder/modules/");
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (std::regex_search(file.lines[i], flag))
        Add(&findings, file, i, "names a flag of the command line");
      if (module && std::regex_search(file.code[i], family))
        Add(&findings, file, i, "names Family");
    }
  }
  EXPECT_THAT(findings, IsEmpty());
}

TEST(Rules, EveryCommandIsRegistered) {
  Findings findings;
  std::string listed;
  for (const SourceFile& file : Code()) {
    if (file.path == "tools/command.h")
      for (const std::string& line : file.lines) listed += line;
  }
  const std::string end = "(Command& app)";
  int commands = 0;
  for (const SourceFile& file : Code()) {
    if (!StartsWith(file.path, "tools/") || !EndsWith(file.path, ".cc")) continue;
    for (size_t i = 0; i < file.code.size(); ++i) {
      const std::string& line = file.code[i];
      const size_t at = line.find(end);
      if (!StartsWith(line, "void Add") || at == std::string::npos) continue;
      ++commands;
      if (listed.find("X(" + line.substr(8, at - 8) + ")") == std::string::npos)
        Add(&findings, file, i, "is not in the list of tools/command.h");
    }
  }
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_GE(commands, 10);
}

TEST(Rules, EveryTaskIsRegistered) {
  Findings findings;
  const std::string begin = "std::unique_ptr<Task> Make";
  std::string switched;
  int tasks = 0;
  for (const SourceFile& file : Code()) {
    if (file.path == "tasks/task.cc")
      for (const std::string& line : file.code) switched += line;
  }
  for (const SourceFile& file : Code()) {
    if (Folder(file.path) != "tasks" || !EndsWith(file.path, ".cc")) continue;
    for (size_t i = 0; i < file.code.size(); ++i) {
      const std::string& line = file.code[i];
      const size_t spec = line.find("Spec& ");
      if (!StartsWith(line, begin) || spec == std::string::npos) continue;
      const std::string name = line.substr(begin.size(), line.find('(') - begin.size());
      if (name == "Task") continue;
      ++tasks;
      if (switched.find("Make" + name + "(") == std::string::npos)
        Add(&findings, file, i, "has a task that MakeTask does not make");
    }
  }
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_GE(tasks, 3);
}

// Words of a document that look like a path of the tree: "core/base/file.h", "tools/test.sh".
std::vector<std::string> Paths(const std::string& line) {
  static const std::set<std::string> kFolders = {
      "core", "docs", "encoder", "proto", "tasks", "tests", "third_party", "tools"};
  std::vector<std::string> paths;
  std::string word;
  for (const char c : line + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
        c == '/' || c == '*' || c == '{' || c == '}' || c == '$') {
      word += c;
      continue;
    }
    while (!word.empty() && word.back() == '.') word.pop_back();
    while (StartsWith(word, "../")) word.erase(0, 3);
    const size_t slash = word.find('/');
    const bool pattern =
        word.find_first_of("*{}$") != std::string::npos || word.find("NAME") != std::string::npos;
    if (slash != std::string::npos && !pattern && kFolders.count(word.substr(0, slash)) > 0)
      paths.push_back(word);
    word.clear();
  }
  return paths;
}

TEST(Rules, DocumentsNameFilesThatExist) {
  EXPECT_THAT(Paths("see [a](../tools/x.cc), `core/b.`; core/{c,d}.h and runs/e"),
      ElementsAre("tools/x.cc", "core/b"));
  Findings findings;
  int paths = 0;
  for (const SourceFile& file : ReadTree({".md"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& path : Paths(file.lines[i])) {
        ++paths;
        if (!std::filesystem::exists(std::filesystem::path(CLOZE_SOURCE_DIR) / path))
          Add(&findings, file, i, "names " + path + ", which does not exist");
      }
    }
  }
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_GT(paths, 50);
}

TEST(Rules, HeadersSayWhatTheyAreAndHaveGuards) {
  Findings findings;
  for (const SourceFile& file : Code()) {
    if (file.path.back() != 'h') continue;
    std::string guard = "CLOZE_";
    for (const char c : file.path)
      guard += std::isalnum(c) ? static_cast<char>(std::toupper(c)) : '_';
    guard += "_";
    if (file.lines.empty() || !StartsWith(file.lines[0], "// "))
      Add(&findings, file, 0, "does not begin with a comment");
    const auto first = std::find_if(file.lines.begin(), file.lines.end(),
        [](const std::string& line) { return StartsWith(line, "#"); });
    const bool guarded = first != file.lines.end() && *first == "#ifndef " + guard &&
                         first + 1 != file.lines.end() && *(first + 1) == "#define " + guard &&
                         file.lines.back() == "#endif  // " + guard;
    if (!guarded) Add(&findings, file, 0, "has no guard " + guard);
  }
  EXPECT_THAT(findings, IsEmpty());
}

}  // namespace
}  // namespace cloze
