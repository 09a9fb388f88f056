// `cloze`: one program, a sub-command for each thing to do.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "core/base/suggest.h"
#include "core/base/threads.h"
#include "tools/command.h"
#include "tools/output.h"

namespace cloze {
namespace {

constexpr char kVersion[] = "0.1.0";

// One line a sub-command, in the order of `cloze --help`.
constexpr AddCommand kCommands[] = {
    AddSpec,
    AddVocab,
    AddTokenize,
    AddPretrain,
    AddFinetune,
    AddEvaluate,
    AddPredict,
    AddTag,
    AddFillMask,
    AddEncode,
    AddNeighbors,
    AddAnalogy,
    AddAttention,
    AddMerge,
    AddVerify,
    AddBench,
};

std::string Version() { return absl::StrCat("cloze ", kVersion, "\nthreads ", Threads()); }

// The sub-command that the user was in when the parser stopped.
const CLI::App* Deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

std::string FullName(const CLI::App* app) {
  return app->get_parent() == nullptr
             ? "cloze"
             : absl::StrCat(FullName(app->get_parent()), " ", app->get_name());
}

std::string Help(const CLI::App* app) {
  return app->help(app->get_parent() == nullptr ? "" : FullName(app->get_parent()));
}

// Words that `app` did not understand: an unknown flag, an unknown command, or an argument too
// many.
std::string ExplainUnknown(const CLI::App* app, const std::string& word) {
  std::vector<std::string> names;
  if (word[0] == '-') {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string flag = word.substr(0, word.find('='));
    return absl::StrCat("unknown flag ", Quote(flag), DidYouMean(flag, names));
  }
  for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (names.empty()) return absl::StrCat("unexpected argument \"", Quote(word), "\"");
  return absl::StrCat("unknown command \"", Quote(word), "\"", DidYouMean(word, names));
}

int UsageExit(const CLI::App& app, const std::string& message) {
  const std::string name = FullName(Deepest(&app));
  std::fprintf(stderr, "%s: %s\nTry `%s --help`.\n", name.c_str(), message.c_str(), name.c_str());
  return static_cast<int>(Exit::kUsage);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "cloze: %s\n", std::string(status.message()).c_str());
  return static_cast<int>(ExitOf(status));
}

int Print(const std::string& text) {
  const absl::Status status = WriteStdout(text);
  return status.ok() || IsReaderGone(status) ? 0 : Fail(status);
}

// A standard stream that the caller closed would be given to the next file that we open, a model or
// a checkpoint. Opened the wrong way round, the standard ones still fail.
void OccupyStandardStreams() {
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) == -1) ::open("/dev/null", fd == 1 ? O_RDONLY : O_WRONLY);
  }
}

void AddThreads(CLI::App* app, int* threads) {
  app->add_option("--threads", *threads, "Threads; 0: the cores this process may use.")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  for (CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; }))
    AddThreads(command, threads);
}

// What the standard library and oneDNN throw ends as a status too.
absl::Status RunCaught(const Run& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return Error(Exit::kLimit,
        "out of memory; a smaller model, a smaller batch.micro_tokens or shorter texts need less");
  } catch (const std::exception& error) {
    return Error(Exit::kLimit, absl::StrCat("the system refused: ", Quote(error.what()),
                                   "; is memory or the number of threads limited here?"));
  }
}

// Memory that runs out inside of a destructor (nlohmann's takes some) cannot be thrown on.
void OnTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    static constexpr char kMessage[] = "cloze: out of memory\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
    ::_exit(static_cast<int>(Exit::kLimit));
  } catch (...) {
  }
  std::abort();
}

constexpr char kMark = '\x01';

void TakeMarksAway(CLI::App* app) {
  const auto unmarked = [](std::string word) {
    return !word.empty() && word.front() == kMark ? word.substr(1) : word;
  };
  for (CLI::Option* option :
      app->get_options([](const CLI::Option* o) { return o->get_items_expected_max() > 0; }))
    option->transform(unmarked, "");
  for (CLI::App* command : app->get_subcommands([](CLI::App*) { return true; }))
    TakeMarksAway(command);
}

// CLI11 takes "[a, b]" for the list of a and b; here it is what the user wrote, "[MASK]" above all:
// a mark hides the bracket from CLI11.
void KeepBrackets(CLI::App* app, std::vector<std::string>* words) {
  bool any = false;
  for (std::string& word : *words) {
    if (word.size() < 2 || word.front() != '[' || word.back() != ']') continue;
    word.insert(word.begin(), kMark);
    any = true;
  }
  if (any) TakeMarksAway(app);
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  OccupyStandardStreams();
  CLI::App app("Cloze pretrains, fine-tunes and runs BERT-style encoders on CPUs.", "cloze");
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "Print this help and exit.");
  bool version = false;
  app.add_flag("--version", version, "Print version and number of threads, and exit.");
  int threads = 0;
  Run run;
  for (const AddCommand add : kCommands) add(app, &run);
  AddThreads(&app, &threads);
  const auto unknown = [&]() -> std::string {
    const CLI::App* deepest = Deepest(&app);
    for (const std::string& word : app.remaining(true)) {
      if (word != "--") return ExplainUnknown(deepest, word);
    }
    return "";
  };
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  KeepBrackets(&app, &words);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return Print(Help(Deepest(&app)));
  } catch (const CLI::ParseError& error) {
    const std::string word = unknown();
    return UsageExit(app, word.empty() ? error.what() : word);
  }
  SetThreads(threads);
  if (version) return Print(Version() + "\n");
  if (!run) return UsageExit(app, "a command is required");
  const absl::Status status = RunCaught(run);
  if (status.ok() || IsReaderGone(status)) return 0;
  return Fail(status);
}

}  // namespace
}  // namespace cloze

int main(int argc, char** argv) {
  std::set_terminate(cloze::OnTerminate);
  try {
    return cloze::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("cloze: out of memory\n", stderr);
    return static_cast<int>(cloze::Exit::kLimit);
  }
}
