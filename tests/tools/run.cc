#include "tests/tools/run.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace cloze {

std::string Content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<nlohmann::json> JsonLines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::string TemporaryFolder() {
  static const TestFolder folder;
  static int count = 0;
  const std::string path = folder.path() + "/" + std::to_string(count++);
  std::filesystem::create_directory(path);
  return path;
}

Conversation::Conversation(const std::vector<std::string>& arguments) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<char*> argv = {const_cast<char*>(CLOZE_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in[0], 0);
  ::posix_spawn_file_actions_adddup2(&files, out[1], 1);
  if (::posix_spawn(&pid_, CLOZE_BINARY, &files, nullptr, argv.data(), environ) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&files);
  ::close(in[0]), ::close(out[1]);
  in_ = in[1], out_ = out[0];
}

Conversation::~Conversation() {
  if (pid_ > 0) ::kill(pid_, SIGKILL), End();
  ::close(out_);
}

void Conversation::Say(const std::string& text) {
  EXPECT_EQ(::write(in_, text.data(), text.size()), text.size());
}

std::string Conversation::Hear() {
  for (size_t end; (end = heard_.find('\n')) == std::string::npos;) {
    pollfd output = {out_, POLLIN, 0};
    char buffer[4096];
    const ssize_t n = ::poll(&output, 1, 30000) > 0 ? ::read(out_, buffer, sizeof(buffer)) : 0;
    if (n <= 0) return "(nothing)";
    heard_.append(buffer, n);
  }
  const std::string line = heard_.substr(0, heard_.find('\n'));
  heard_.erase(0, line.size() + 1);
  return line;
}

int Conversation::End() {
  ::close(in_);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

RunResult RunCloze(const std::string& arguments, const std::string& before) {
  const std::string folder = TemporaryFolder();
  const bool redirected = arguments.find('>') != std::string::npos;
  const std::string out = redirected ? "" : " >" + folder + "/out";
  const std::string command =
      before + CLOZE_BINARY + " " + arguments + out + " 2>" + folder + "/err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Content(folder + "/out"),
      Content(folder + "/err")};
}

}  // namespace cloze
