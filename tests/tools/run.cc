#include "tests/tools/run.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace cloze {
namespace {

std::string Content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / "cloze-tools-XXXXXX") {
    if (mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

std::string TemporaryFolder() {
  static Folder folder;
  static int count = 0;
  const std::string path = folder.path + "/" + std::to_string(count++);
  std::filesystem::create_directory(path);
  return path;
}

RunResult RunCloze(const std::string& arguments, const std::string& before) {
  const std::string folder = TemporaryFolder();
  const bool redirected = arguments.find('>') != std::string::npos;
  const std::string out = redirected ? "" : " >" + folder + "/out";
  const std::string command = before + CLOZE_BINARY + " " + arguments + out + " 2>" + folder + "/err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Content(folder + "/out"), Content(folder + "/err")};
}

}  // namespace cloze
