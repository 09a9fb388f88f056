// `main` of the programs: runs the command of the command line, and turns its status into an
// exit code.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "absl/algorithm/container.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "tools/command.h"
#include "tools/process.h"
#include "tools/ranks.h"

namespace cloze {
namespace {

// Opens /dev/null for standard streams that the caller closed, so that no file opened later takes
// their place. The modes are swapped, so that use of the streams still fails.
void OccupyStandardStreams() {
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) == -1) ::open("/dev/null", fd == 1 ? O_RDONLY : O_WRONLY);
  }
}

// oneDNN's and our own frames need some 200 kB; beyond the limit the kernel ends the program.
absl::Status CheckStack() {
  constexpr rlim_t kMin = 256 << 10;
  rlimit limit;
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kMin) return absl::OkStatus();
  return Error(Exit::kLimit, "the stack is limited to ", limit.rlim_cur >> 10,
      " kB: expected at least ", kMin >> 10, " (ulimit -s)");
}

// Handles SIGILL, for example of a virtual machine that announces instructions that it cannot run.
void OnIllegalInstruction(int) {
  constexpr char kMessage[] =
      "cloze: this CPU cannot run an instruction that it announces (try CLOZE_MAX_ISA=avx2 or "
      "baseline)\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  ::_exit(static_cast<int>(Exit::kCpu));
}

// Handles std::bad_alloc outside Caught, or from a destructor such as nlohmann's.
void OnTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    constexpr char kMessage[] = "cloze: out of memory\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
    ::_exit(static_cast<int>(Exit::kLimit));
  } catch (...) {
  }
  std::abort();
}

absl::Status RunLine(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const CommandLine line, ParseCommandLine(words));
  const bool ranks = absl::c_linear_search(line.for_ranks, line.command);
  if (ProgramRanks().size() > 1 && !ranks)
    return Error(Exit::kUsage, "cloze: ", Quote(line.command), ": expected ",
        ListOr(line.for_ranks), " for several ranks");
  absl::Status status = CheckCpu();
  if (status.ok()) status = CheckStack();
  SetThreads(line.threads);
  if (status.ok())
    status = Caught(line.run,
        ranks ? "a smaller model, a smaller batch.micro_tokens or shorter texts"
              : "less or shorter text at once; check ulimit -v and the limits of the cgroup");
  return IsReaderGone(status) ? absl::OkStatus() : Annotate(status, kProgram.name);
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGILL, OnIllegalInstruction);
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond ulimit -f fails instead
  OccupyStandardStreams();
  ProgramRanks();
  return LeaveRanks(RunLine({argv + std::min(argc, 1), argv + argc}));
}

}  // namespace
}  // namespace cloze

int main(int argc, char** argv) {
  std::set_terminate(cloze::OnTerminate);
  return cloze::Main(argc, argv);
}
