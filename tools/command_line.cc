#include "tools/command_line.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/suggest.h"
#include "core/base/threads.h"
#include "tools/output.h"

namespace cloze {
namespace {

constexpr AddCommand kCommands[] = {
#define CLOZE_LIST(Name) Add##Name,
    CLOZE_COMMANDS(CLOZE_LIST)
#undef CLOZE_LIST
};
constexpr size_t kColumns = 100, kIndent = 24;  // of the help

// Returns `text` in lines of kColumns, after `head` and at column `indent`.
std::string Wrap(std::string head, absl::string_view text, size_t indent) {
  std::string out, line = std::move(head);
  if (!line.empty() && line.size() + 2 > indent) out = line + "\n", line.clear();
  line.resize(indent, ' ');
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() > indent && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&out, line, "\n");
      line.assign(indent, ' ');
    }
    absl::StrAppend(&line, line.size() > indent ? " " : "", word);
  }
  return absl::StrCat(out, line, "\n");
}

// Prints the help in plain words, wrapped.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return Wrap("", app->get_description(), 0);
  }
  // The list of commands shows the first sentence of each description.
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description() + " ";
    return Wrap("  " + command->get_name(), text.substr(0, text.find(". ") + 1), kIndent / 2 + 1);
  }
  std::string make_option(const CLI::Option* option, bool positional) const override {
    // The type and its checks: "INT:INT in [0 - 4096]" or "TEXT:{a,b}".
    const std::vector<std::string> types = absl::StrSplit(option->get_type_name(), ':');
    std::string name = "  " + option->get_name(positional, !positional), type = types[0];
    std::string text = option->get_description();
    for (size_t i = 1; i < types.size(); ++i) {
      if (types[i][0] == '{')
        type = absl::StrReplaceAll(types[i], {{"{", ""}, {"}", ""}, {",", "|"}});
      if (const size_t range = types[i].find(" in ["); range != std::string::npos)
        absl::StrAppend(&text, " Range: ",
            absl::StrReplaceAll(types[i].substr(range + 5), {{" - ", " to "}, {"]", "."}}));
    }
    if (option->get_type_size() != 0 && !type.empty() && !positional) name += " " + type;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) name += " ...";
    if (!option->get_default_str().empty())
      absl::StrAppend(&text, " Default: ", option->get_default_str(), ".");
    if (option->get_required()) text += " Required.";
    return Wrap(name, text, kIndent);
  }
};

// Returns the last command on the command line.
const CLI::App* Deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

std::vector<CLI::App*> AllCommands(CLI::App* app) {
  return app->get_subcommands([](const CLI::App*) { return true; });
}

std::string FullName(const CLI::App* app) {
  return app->get_parent() == nullptr
             ? "cloze"
             : absl::StrCat(FullName(app->get_parent()), " ", app->get_name());
}

// Describes a word that `app` did not understand: a flag, a command, or one argument too many.
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
  return absl::StrCat(names.empty() ? "unexpected argument" : "unknown command", " \"", Quote(word),
      "\"", DidYouMean(word, names));
}

absl::Status ParseFailure(const CLI::App& app, std::string message) {
  const CLI::App* deepest = Deepest(&app);
  for (const std::string& word : app.remaining(true)) {
    if (word == "--") continue;
    message = ExplainUnknown(deepest, word);
    break;
  }
  const std::string name = FullName(deepest);
  return UsageError(absl::StrCat(name, ": ", message, "\nTry `", name, " --help`."));
}

// Adds --threads to `app` and all commands below.
void CompleteCommands(CLI::App* app, int* threads) {
  app->add_option("--threads", *threads, "Number of threads; 0: all cores this process may use.")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  for (CLI::App* command : AllCommands(app)) {
    command->group("Commands");
    CompleteCommands(command, threads);
  }
}

constexpr char kMark = '\x01';

void RemoveMarks(CLI::App* app) {
  const auto unmarked = [](std::string word) {
    return !word.empty() && word.front() == kMark ? word.substr(1) : word;
  };
  for (CLI::Option* option :
      app->get_options([](const CLI::Option* o) { return o->get_items_expected_max() > 0; }))
    option->transform(unmarked, "");
  for (CLI::App* command : AllCommands(app)) RemoveMarks(command);
}

// CLI11 splits "[a, b]" into a and b. A mark before the bracket keeps words such as "[MASK]" whole.
void KeepBrackets(CLI::App* app, std::vector<std::string>* words) {
  bool any = false;
  for (std::string& word : *words) {
    if (word.size() < 2 || word.front() != '[' || word.back() != ']') continue;
    word.insert(word.begin(), kMark);
    any = true;
  }
  if (any) RemoveMarks(app);
}

absl::Status PrintVersion() {
  return WriteStdout(absl::StrCat("cloze ", CLOZE_VERSION, "\nthreads ", Threads(), "\n"));
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv) {
  CLI::App app("Pretrains, fine-tunes and runs BERT-style encoders on CPUs.", "cloze");
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("SUBCOMMAND", "COMMAND");
  app.formatter(formatter);
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "Print this help and exit.");
  bool version = false;
  app.add_flag("--version", version, "Print the version and the number of threads, and exit.");
  CommandLine line;
  for (const AddCommand add : kCommands) add(app, &line.run);
  CompleteCommands(&app, &line.threads);
  app.footer(
      "`cloze COMMAND --help` describes a command, `cloze spec explain` the fields of a spec.\n"
      "Exit codes: 0 success, 2 usage, 65 data, 66 input missing, 70 internal, 73 output exists, "
      "74 I/O,\n75 interrupted, 76 mismatch, 77 limit, 78 spec.");
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  KeepBrackets(&app, &words);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    const CLI::App* deepest = Deepest(&app);
    const std::string help = deepest->help(deepest == &app ? "" : FullName(deepest->get_parent()));
    line.run = [help] { return WriteStdout(help); };
    return line;
  } catch (const CLI::ParseError& error) {
    return ParseFailure(app, error.what());
  }
  if (version) line.run = PrintVersion;
  if (!line.run) return ParseFailure(app, "a command is required");
  return line;
}

}  // namespace cloze
