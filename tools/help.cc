// `cloze help`: the help of commands, and man pages and completion from the same declarations.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "tools/command.h"

namespace cloze {
namespace {

struct ManualOptions {
  std::vector<std::string> command;
  std::string write;
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
  absl::StrAppend(
      &out, commands.empty() ? " [\\fIOPTIONS\\fR]" : " \\fICOMMAND\\fR [\\fIOPTIONS\\fR]");
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

std::string NamesOf(const std::vector<const CLI::App*>& commands) {
  const auto name = [](std::string* out, const CLI::App* a) { *out += a->get_name(); };
  return absl::StrJoin(commands, " ", name);
}

// Returns "|cloze|cloze spec|": those that consist of commands.
std::string Parents(const CLI::App& app) {
  std::string parents = "|";
  ForEach(app, "cloze", [&](const CLI::App& command, const std::string& path) {
    if (!CommandsOf(command).empty()) absl::StrAppend(&parents, path, "|");
  });
  return parents;
}

std::string ShellQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string BashCompletion(const CLI::App& app) {
  std::string options, commands, values;
  ForEach(app, "cloze", [&](const CLI::App& command, const std::string& path) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& flag : FlagsOf(*option)) flags.push_back(flag);
      if (IsArgument(*option) || ChoicesOf(*option).empty()) continue;
      absl::StrAppend(&values, "    '", path, " ", flags.back(), "') words='",
          absl::StrJoin(ChoicesOf(*option), " "), "' ;;\n");
    }
    absl::StrAppend(&options, "    '", path, "') options='", absl::StrJoin(flags, " "), "' ;;\n");
    if (const auto below = CommandsOf(command); !below.empty())
      absl::StrAppend(&commands, "    '", path, "') words='", NamesOf(below), "' ;;\n");
  });
  return absl::StrCat(
      "# bash completion of cloze. Written by `cloze help --write`.\n_cloze() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path=cloze words='' options='' i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    [[ '",
      Parents(app),
      "' == *\"|$path|\"* ]] || break\n"
      "    path+=\" ${COMP_WORDS[i]}\"\n"
      "  done\n  case $path in\n",
      options, "  esac\n  case $path in\n", commands,
      "  esac\n  case \"$path ${COMP_WORDS[COMP_CWORD - 1]}\" in\n", values,
      "  esac\n  [[ $current != -* ]] || words=$options\n  COMPREPLY=()\n"
      "  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "}\ncomplete -o default -F _cloze cloze\n");
}

// What zsh's _arguments completes after a flag or as an argument.
std::string ZshValue(const CLI::Option& option) {
  const std::string value = ValueOf(option);
  if (value.empty()) return "";
  const std::vector<std::string> choices = ChoicesOf(option);
  const bool number = value == "INT" || value == "FLOAT" || value == "N";
  return absl::StrCat(":", choices.empty() ? absl::StrReplaceAll(value, {{":", "\\:"}}) : "value",
      ":",
      !choices.empty() ? absl::StrCat("(", absl::StrJoin(choices, " "), ")")
      : number         ? ""
                       : "_files");
}

std::string ZshCompletion(const CLI::App& app) {
  std::string cases;
  ForEach(app, "cloze", [&](const CLI::App& command, const std::string& path) {
    absl::StrAppend(&cases, "    '", path, "') _arguments");
    for (const CLI::Option* option : command.get_options()) {
      const std::string help = absl::StrReplaceAll(
          option->get_description(), {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
      if (IsArgument(*option)) absl::StrAppend(&cases, " ", ShellQuote("*" + ZshValue(*option)));
      for (const std::string& flag : FlagsOf(*option))
        absl::StrAppend(&cases, " \\\n      ",
            ShellQuote(absl::StrCat("*", flag, "[", help, "]", ZshValue(*option))));
    }
    if (const auto below = CommandsOf(command); !below.empty())
      absl::StrAppend(&cases, " '1:command:(", NamesOf(below), ")'");
    cases += " ;;\n";
  });
  return absl::StrCat(
      "#compdef cloze\n# Written by `cloze help --write`.\n_cloze() {\n"
      "  local at=cloze\n  local -i i=2\n"
      "  while (( i < CURRENT )) && [[ '",
      Parents(app),
      "' == *\"|$at|\"* ]]; do\n    at+=\" $words[i]\"\n    (( ++i ))\n  done\n"
      "  words=(\"${(@)words[i-1,-1]}\")\n  (( CURRENT -= i - 2 ))\n  case $at in\n",
      cases, "  esac\n}\n_cloze \"$@\"\n");
}

std::string FishCompletion(const CLI::App& app) {
  std::string out = "# fish completion of cloze. Written by `cloze help --write`.\n";
  ForEach(app, "cloze", [&](const CLI::App& command, const std::string& path) {
    const auto below = CommandsOf(command);
    std::vector<std::string> when;  // the commands that were typed
    for (const absl::string_view word : absl::StrSplit(path, ' '))
      if (word != "cloze") when.push_back(absl::StrCat("__fish_seen_subcommand_from ", word));
    if (!below.empty()) when.push_back("not __fish_seen_subcommand_from " + NamesOf(below));
    const std::string head =
        absl::StrCat("complete -c cloze -n '", absl::StrJoin(when, "; and "), "'");
    for (const CLI::App* next : below)
      absl::StrAppend(
          &out, head, " -f -a ", next->get_name(), " -d ", ShellQuote(FirstSentence(*next)), "\n");
    for (const CLI::Option* option : command.get_options()) {
      if (IsArgument(*option)) continue;
      absl::StrAppend(&out, head);
      for (const std::string& name : option->get_snames()) absl::StrAppend(&out, " -s ", name);
      for (const std::string& name : option->get_lnames()) absl::StrAppend(&out, " -l ", name);
      if (const auto choices = ChoicesOf(*option); !choices.empty())
        absl::StrAppend(&out, " -x -a '", absl::StrJoin(choices, " "), "'");
      else if (!ValueOf(*option).empty())
        out += " -r";
      absl::StrAppend(&out, " -d ", ShellQuote(option->get_description()), "\n");
    }
  });
  return out;
}

absl::Status WriteManual(const std::string& folder) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  const std::shared_ptr<CLI::App> app = DeclareAll();
  const auto write = [&](const std::string& name, const std::string& text) {
    return WriteFileAtomically(absl::StrCat(folder, "/", name), text);
  };
  RETURN_IF_ERROR(write("cloze.bash", BashCompletion(*app)));
  RETURN_IF_ERROR(write("_cloze", ZshCompletion(*app)));
  RETURN_IF_ERROR(write("cloze.fish", FishCompletion(*app)));
  absl::Status status;
  ForEach(*app, "cloze", [&](const CLI::App& command, const std::string& path) {
    if (status.ok())
      status = write(absl::StrReplaceAll(path, {{" ", "-"}}) + ".1", ManPage(command, path));
  });
  return status;
}

absl::Status Help(const ManualOptions& options) {
  if (!options.write.empty()) return WriteManual(options.write);
  std::vector<std::string> words = options.command;
  words.push_back("--help");
  const absl::StatusOr<CommandLine> line = ParseCommandLine(words);
  if (line.ok()) return line->run();
  absl::string_view message = line.status().message();  // the caller names the program
  if (!absl::ConsumePrefix(&message, "cloze: ")) absl::ConsumePrefix(&message, "cloze ");
  return UsageError(std::string(message));
}

}  // namespace

void AddHelp(Command& app) {
  const auto declare = [](Command& command, ManualOptions& options) {
    command.Add("command", &options.command, "Command to describe. Default: the list of all.");
    command.Add("--write", &options.write,
        "Write man pages and the completion of bash, zsh and fish to this folder.",
        {.type = "FOLDER"});
  };
  app.AddCommand<ManualOptions>("help", "Describe a command, as `cloze COMMAND --help` does.",
      "  cloze help finetune\n  cloze help spec check", declare, Help);
}

}  // namespace cloze
