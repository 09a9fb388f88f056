#include "tools/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "proto/spec_text.h"
#include "tools/process.h"

namespace cloze {
namespace {

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

// Prints the help in plain words, wrapped, and in one form with every version of CLI11.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(
      const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return absl::StrCat(make_description(app), make_usage(app, std::move(name)),
        make_positionals(app), make_groups(app, mode), make_subcommands(app, mode), "\n",
        make_footer(app));
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    const std::string text = CLI::Formatter::make_usage(app, std::move(name));
    const absl::string_view usage = absl::StripAsciiWhitespace(text);
    return absl::StrCat("Usage: ", absl::StripPrefix(usage, "Usage: "), "\n");
  }
  std::string make_group(
      std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    std::string out = absl::StrCat("\n", group == "OPTIONS" ? "Options" : group, ":\n");
    for (const CLI::Option* option : options) out += make_option(option, positional);
    return out;
  }
  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? "" : app->get_footer() + "\n";
  }
  std::string make_description(const CLI::App* app) const override {
    return Wrap("", app->get_description(), 0);
  }
  // The list of commands shows the first sentence of each description.
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description() + " ";
    return Wrap("  " + command->get_name(), text.substr(0, text.find(". ") + 1), kIndent / 2 + 1);
  }
  std::string make_option(const CLI::Option* option, bool positional) const override {
    // The type, followed by its checks: "INT:INT in [0 - 4096]".
    const std::string types = option->get_type_name(), type = types.substr(0, types.find(':'));
    std::string name = "  " + option->get_name(positional, !positional);
    if (option->get_type_size() != 0 && !type.empty() && !positional) name += " " + type;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) name += " ...";
    return Wrap(name, option->get_description(), kIndent);
  }
};

// Returns the last command on the command line.
const CLI::App* Deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

std::string FullName(const CLI::App* app) {
  return app->get_parent() == nullptr
             ? kProgram.name
             : absl::StrCat(FullName(app->get_parent()), " ", app->get_name());
}

// The beginning of the help of --set in commands that read a spec.
constexpr char kSetHelp[] = "Override a field of the spec: ";

// Describes a word that `app` did not understand: a flag, a command, or one argument too many.
// `next` is the word after it, or "".
std::string ExplainUnknown(const CLI::App* app, const std::string& word, const std::string& next) {
  std::vector<std::string> names;
  if (word[0] == '-') {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const CLI::Option* set = app->get_option_no_throw("--set");
    const bool trains = set != nullptr && absl::StartsWith(set->get_description(), kSetHelp);
    const std::vector<std::string> fields = trains ? FieldsNamed(flag) : std::vector<std::string>();
    if (!fields.empty()) {
      const std::string value = equals == word.npos ? next : word.substr(equals + 1);
      return absl::StrCat("unknown flag ", Quote(flag), "; did you mean --set ",
          absl::StrJoin(fields, " or --set "), "=", value.empty() ? "..." : Quote(value), "?");
    }
    if (flag.size() == 2) {  // -m
      const auto begins = [&](const std::string& name) { return name[2] == flag[1]; };
      const auto name = absl::c_find_if(names, begins);
      if (name != names.end())
        return absl::StrCat("unknown flag ", Quote(flag), "; did you mean \"", *name, "\"?");
    }
    return absl::StrCat("unknown flag ", Quote(flag), DidYouMean(flag, names));
  }
  for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return absl::StrCat(names.empty() ? "unexpected argument" : "unknown command", " \"", Quote(word),
      "\"", DidYouMean(word, names));
}

absl::Status ParseFailure(const CLI::App& app, std::string message) {
  const CLI::App* deepest = Deepest(&app);
  const std::vector<std::string> words = app.remaining(true);
  if (const size_t most = message.find(": At Most 1 required but received "); most != message.npos)
    message = absl::StrCat(message.substr(0, most), ": given ",
        message.substr(message.rfind(' ') + 1), " times: expected one");
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") continue;
    const bool value = i + 1 < words.size() && words[i + 1][0] != '-';
    message = ExplainUnknown(deepest, words[i], value ? words[i + 1] : "");
    break;
  }
  const std::string name = FullName(deepest);
  return UsageError(absl::StrCat(name, ": ", message, "\nTry `", name, " --help`."));
}

void AddThreads(Command command, int* threads) {
  command.Add("--threads", threads, "Number of threads; 0: all cores this process may use.",
      {.max = 4096, .type = "N"});
}

// CLI11 splits "[a, b]" into a and b. This mark before the bracket keeps words such as "[MASK]"
// whole until the option has it.
constexpr char kMark[] = "\x01";

absl::Status PrintVersion() {
  return WriteStdout(absl::StrCat(kProgram.name, " ", Version(), "\ncommit ", kCommit, "\nkernels ",
      KernelsName(), "\nmatmul ", MatmulLibrary(), "\nthreads ", Threads(), "\n"));
}

// Adds everything to `app`; `line` receives what is chosen.
void Declare(CLI::App* app, CommandLine* line) {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("SUBCOMMAND", "COMMAND");
  formatter->label("POSITIONALS", "Positionals");
  app->formatter(formatter);
  app->require_subcommand(0, 1);
  app->set_help_flag("-h,--help", "Print this help and exit.");
  app->add_flag_callback(
      "-v,--version", [line] { line->run = PrintVersion; },
      "Print the version and the number of threads, and exit.");
  Command root(app, line);
  kProgram.declare(root, line);
  AddThreads(root, &line->threads);
  app->footer(kProgram.footer);
}

}  // namespace

void Command::Add(
    const std::string& name, Variable variable, std::string help, const OptionLimits& limits) {
  const auto add = [&](auto* value) -> CLI::Option* {
    using T = std::decay_t<decltype(*value)>;
    if constexpr (std::is_same_v<T, bool>) {
      return app_->add_flag(name, *value);
    } else {
      CLI::Option* option = app_->add_option(name, *value);
      if constexpr (std::is_arithmetic_v<T>) {
        const T min = limits.min, max = limits.max;
        if (min < max) {
          option->check([min, max](const std::string& word) {
            T value;
            const bool in_range =
                CLI::detail::lexical_cast(word, value) && value >= min && value <= max;  // not NaN
            return in_range ? ""
                            : absl::StrCat("expected ", std::is_integral_v<T> ? "an integer, " : "",
                                  min, " to ", max, ", found ", Quote(word));
          });
          absl::StrAppend(&help, " Range: ", min, " to ", max, ".");
        }
        if (*value != 0) absl::StrAppend(&help, " Default: ", *value, ".");
      } else if constexpr (std::is_same_v<T, std::string>) {
        if (!value->empty()) absl::StrAppend(&help, " Default: ", *value, ".");
      }
      return option->transform(
          [](const std::string& word) { return std::string(absl::StripPrefix(word, kMark)); }, "");
    }
  };
  CLI::Option* option = std::visit(add, variable);
  if (!limits.choices.empty()) {
    option->type_name(absl::StrJoin(limits.choices, "|"));
    option->check([choices = limits.choices](const std::string& word) {
      return absl::c_linear_search(choices, word)
                 ? ""
                 : absl::StrCat("expected ", ListOr(choices), ", found ", Quote(word));
    });
  }
  if (!limits.type.empty()) option->type_name(limits.type);
  if (limits.type == "FILE" || limits.type == "FOLDER") {
    option->check(
        [](const std::string& word) { return word.empty() ? "expected a name, found none" : ""; });
  }
  if (limits.count > 0) option->expected(limits.count);
  if (limits.repeatable) option->allow_extra_args(false);
  if (limits.required) option->required();
  option->description(help + (limits.required ? " Required." : ""));
}

void Command::AddSwitch(const std::string& name, std::optional<bool>* variable,
    const std::string& help, const std::string& help_of_no) {
  CLI::Option* on = app_->add_flag_callback(
      "--" + name, [=] { *variable = true; }, help);
  app_->add_flag_callback(
          "--no-" + name, [=] { *variable = false; }, help_of_no)
      ->excludes(on);
}

void Command::AddLazily(const std::string& name, const std::string& help,
    const std::string& examples, const std::function<Run(Command&)>& declare) {
  CLI::App* app = app_->add_subcommand(name, help);
  app->group("Commands");
  if (!examples.empty()) app->footer("Examples:\n" + examples);
  const auto add = [declare, app, line = line_](size_t) {
    Command command(app, line);
    line->run = declare(command);
    line->command = app->get_name();
    if (!line->run) app->require_subcommand(1);
    AddThreads(command, &line->threads);
  };
  if (line_->all) return add(0);
  app->preparse_callback(add);
}

void AddSetOption(Command& command, std::vector<std::string>* overrides) {
  command.Add("--set", overrides,
      absl::StrCat(kSetHelp,
          "optimizer.learning_rate=1e-4, or a list: train.files=a.tsv,b.tsv. Repeatable."),
      {.type = "FIELD=VALUE"});
}

std::shared_ptr<CLI::App> DeclareAll() {
  auto line = std::make_shared<CommandLine>();
  line->all = true;
  auto app = std::shared_ptr<CLI::App>(
      new CLI::App(kProgram.description, kProgram.name), [line](CLI::App* old) { delete old; });
  Declare(app.get(), line.get());
  return app;
}

absl::string_view Version() { return CLOZE_VERSION; }

void AddVersion(Command& app) {
  struct None {};
  app.AddCommand<None>(
      "version", "Print the version and the number of threads.",
      absl::StrCat("  ", kProgram.name, " version\n  ", kProgram.name, " version --threads 2"),
      [](Command&, None&) {}, [](const None&) { return PrintVersion(); });
}

absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> words) {
  CLI::App app(kProgram.description, kProgram.name);
  CommandLine line;
  Declare(&app, &line);
  for (std::string& word : words) {
    if (word.size() > 1 && word.front() == '[' && word.back() == ']') word.insert(0, kMark);
  }
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    if (!app.remaining(true).empty()) return ParseFailure(app, "");
    const CLI::App* deepest = Deepest(&app);
    const std::string help = deepest->help(deepest == &app ? "" : FullName(deepest->get_parent()));
    line.run = [help] { return WriteStdout(help); };
    return line;
  } catch (const CLI::ParseError& error) {
    return ParseFailure(app, error.what());
  }
  if (!line.run) return ParseFailure(app, "a command is required");
  return line;
}

}  // namespace cloze
