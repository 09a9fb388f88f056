// `help`: the help of commands, and man pages and completion from the same declarations.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "tools/command.h"
#include "tools/process.h"

namespace cloze {
namespace {

struct ManualOptions {
  std::vector<std::string> command;
  std::string write;
  bool complete = false;
};

// --- Reading the declarations.

// Returns the subcommands of `app`.
std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string FirstSentence(const CLI::App& app) {
  const std::string text = app.get_description() + " ";
  return text.substr(0, text.find(". "));
}

// Returns the name of the value in the help: "FILE", "a|b"; empty for a flag.
std::string ValueOf(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();  // with its checks: "INT:INT in [0 - 4096]"
  return type.substr(0, type.find(':'));
}

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string value = ValueOf(option);
  if (value.find('|') == std::string::npos) return {};
  return absl::StrSplit(value, '|');
}

bool IsArgument(const CLI::Option& option) {
  return option.get_lnames().empty() && option.get_snames().empty();
}

// Returns "--help", "-h" and so on.
std::vector<std::string> FlagsOf(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

// --- Man pages.

// Escapes text for roff.
std::string Roff(absl::string_view text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"},
                                                  {"`", "\\(ga"}, {"^", "\\(ha"}, {"~", "\\(ti"}});
  if (!out.empty() && out[0] == '.') out.insert(0, "\\&");
  return out;
}

std::string RoffOptions(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    const std::string value = ValueOf(*option);
    const auto bold = [](std::string* text, const std::string& flag) {
      absl::StrAppend(text, "\\fB", Roff(flag), "\\fR");
    };
    absl::StrAppend(&out, ".TP\n",
        IsArgument(*option) ? "\\fI" + Roff(option->get_name(true)) + "\\fR"
                            : absl::StrJoin(FlagsOf(*option), ", ", bold),
        IsArgument(*option) || value.empty() ? "" : " \\fI" + Roff(value) + "\\fR", "\n",
        Roff(option->get_description()), "\n");
  }
  return out;
}

std::string RoffExamples(const CLI::App& app) {
  const std::string footer = app.get_footer();
  if (!absl::StartsWith(footer, "Examples:\n")) return "";
  const std::string lines = footer.substr(10, footer.find("\n\n") - 10);
  return absl::StrCat(".SH EXAMPLES\n.nf\n", Roff(lines), "\n.fi\n");
}

std::string ManPage(const CLI::App& app, const std::string& name) {
  const std::string page = absl::StrReplaceAll(name, {{" ", "-"}});
  std::string out = absl::StrCat(".TH ", absl::AsciiStrToUpper(page), " 1 \"\" \"cloze ", Version(),
      "\" \"Cloze\"\n.SH NAME\n", Roff(page), " \\- ", Roff(FirstSentence(app)),
      "\n.SH SYNOPSIS\n\\fB", Roff(name), "\\fR");
  const std::vector<const CLI::App*> commands = CommandsOf(app);
  const bool needs_command = app.get_parent() != nullptr || kProgram.needs_command;
  absl::StrAppend(&out, commands.empty() ? " [\\fIOPTIONS\\fR]"
                        : needs_command  ? " \\fICOMMAND\\fR [\\fIOPTIONS\\fR]"
                                         : " [\\fIOPTIONS\\fR] [\\fICOMMAND\\fR]");
  for (const CLI::Option* option : app.get_options()) {
    if (!IsArgument(*option)) continue;
    const std::string several = option->get_expected_max() > 1 ? "..." : "";
    const std::string name = absl::StrCat("\\fI", Roff(option->get_name(true)), "\\fR", several);
    absl::StrAppend(&out, " ", option->get_required() ? name : absl::StrCat("[", name, "]"));
  }
  absl::StrAppend(&out, "\n.SH DESCRIPTION\n", Roff(app.get_description()), "\n");
  if (!commands.empty()) absl::StrAppend(&out, ".SH COMMANDS\n");
  for (const CLI::App* command : commands)
    absl::StrAppend(&out, ".TP\n\\fB", Roff(command->get_name()), "\\fR\n",
        Roff(FirstSentence(*command)), ".\n");
  absl::StrAppend(&out, ".SH OPTIONS\n", RoffOptions(app), RoffExamples(app));
  const std::string footer = app.get_footer();
  if (const size_t codes = footer.find("Exit codes: "); codes != std::string::npos)
    absl::StrAppend(&out, ".SH EXIT STATUS\n", Roff(footer.substr(codes + 12)), "\n");
  absl::StrAppend(&out, ".SH SEE ALSO\n\\fBcloze\\fR(1), ",
      Roff("`cloze spec explain` for the fields of a spec"), "\n");
  return out;
}

// --- Completion.

// Calls `visit(command, "cloze spec check")` for `app` and all commands below it.
void ForEach(const CLI::App& app, const std::string& path,
    const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, path);
  for (const CLI::App* command : CommandsOf(app))
    ForEach(*command, absl::StrCat(path, " ", command->get_name()), visit);
}

// Returns what can stand for the last of `words`, a command line without "cloze": a line
// "word TAB description" for each flag, command or choice. None: a file or free text.
std::string Candidates(absl::Span<const std::string> words) {
  const std::shared_ptr<CLI::App> app = DeclareAll();
  const CLI::App* at = app.get();
  for (const std::string& word : words.first(words.size() - 1)) {
    for (const CLI::App* next : CommandsOf(*at)) {
      if (next->get_name() == word) at = next;
    }
  }
  std::string out;
  const bool flags = absl::StartsWith(words.back(), "-");
  for (const CLI::Option* option : at->get_options()) {
    const std::vector<std::string> names = FlagsOf(*option);
    if (words.size() > 1 && absl::c_linear_search(names, words[words.size() - 2])) {
      for (const std::string& choice : ChoicesOf(*option)) absl::StrAppend(&out, choice, "\t\n");
      if (!ValueOf(*option).empty()) return out;
    }
    for (const std::string& name : names) {
      if (flags) absl::StrAppend(&out, name, "\t", option->get_description(), "\n");
    }
  }
  for (const CLI::App* command : CommandsOf(*at)) {
    if (!flags) absl::StrAppend(&out, command->get_name(), "\t", FirstSentence(*command), "\n");
  }
  return out;
}

// The shells ask the program for the candidates. The name of the program replaces "cloze".
constexpr char kBash[] = R"(# bash completion of cloze. Written by `cloze help --write`.
_cloze() {
  local IFS=$'\n' words
  words=$(cloze help --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null | cut -f 1)
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _cloze cloze
)";
constexpr char kZsh[] = R"(#compdef cloze
# Written by `cloze help --write`.
local -a found lines
local line
lines=("${(@f)$(cloze help --complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
for line in $lines; do found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); done
if (( $#found )); then _describe cloze found; else _files; fi
)";
constexpr char kFish[] = R"(# fish completion of cloze. Written by `cloze help --write`.
complete -c cloze -a \
  '(cloze help --complete -- (commandline -opc)[2..] (commandline -ct) 2> /dev/null)'
)";

absl::Status WriteManual(const std::string& folder) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  const std::shared_ptr<CLI::App> app = DeclareAll();
  const std::string program = kProgram.name;
  const auto write = [&](const std::string& name, const std::string& text) {
    return WriteFileAtomically(absl::StrCat(folder, "/", name), text);
  };
  const auto script = [&](const char* text) {
    return absl::StrReplaceAll(text, {{"cloze", program}});
  };
  RETURN_IF_ERROR(write(program + ".bash", script(kBash)));
  RETURN_IF_ERROR(write("_" + program, script(kZsh)));
  RETURN_IF_ERROR(write(program + ".fish", script(kFish)));
  absl::Status status;
  ForEach(*app, kProgram.name, [&](const CLI::App& command, const std::string& path) {
    if (status.ok())
      status = write(absl::StrReplaceAll(path, {{" ", "-"}}) + ".1", ManPage(command, path));
  });
  return status;
}

absl::Status Help(const ManualOptions& options) {
  if (!options.write.empty()) return WriteManual(options.write);
  if (options.complete)
    return WriteStdout(options.command.empty() ? "" : Candidates(options.command));
  std::vector<std::string> words = options.command;
  words.push_back("--help");
  const absl::StatusOr<CommandLine> line = ParseCommandLine(words);
  if (line.ok()) return line->run();
  absl::string_view message = line.status().message();  // the caller names the program
  absl::ConsumePrefix(&message, kProgram.name);
  if (!absl::ConsumePrefix(&message, ": ")) absl::ConsumePrefix(&message, " ");
  return UsageError(std::string(message));
}

}  // namespace

void AddHelp(Command& app) {
  const auto declare = [](Command& command, ManualOptions& options) {
    command.Add("command", &options.command, "Command to describe. Default: the list of all.");
    command.Add("--write", &options.write,
        "Write man pages and the completion of bash, zsh and fish to this folder.",
        {.type = "FOLDER"});
    command.Add("--complete", &options.complete,
        "Print what can complete the last word of the command line that follows `--`, for shells.");
  };
  const bool cloze = absl::string_view(kProgram.name) == "cloze";
  app.AddCommand<ManualOptions>("help",
      absl::StrCat("Describe a command, as `", kProgram.name, " COMMAND --help` does."),
      cloze ? "  cloze help finetune\n  cloze help spec check" : "", declare, Help);
}

}  // namespace cloze
