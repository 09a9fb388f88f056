#include "tools/file_options.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/spec.h"

namespace cloze {

void AddFileOptions(
    Command& command, std::vector<std::string>* overrides, const std::string& default_text) {
  command.Add("--set", overrides,
      absl::StrCat("How files are written that do not tell it: delimiter=';' (between the columns "
                   "of csv and tsv), "
                   "encoding=WINDOWS1252 (or LATIN1, UTF16), header=false (columns have numbers as "
                   "names). Repeatable. Default: ",
          default_text, "."),
      {.type = "FIELD=VALUE", .repeatable = true});
}

absl::Status OverrideFileOptions(const std::vector<std::string>& overrides, DataSpec* data) {
  constexpr absl::string_view kFields[] = {"delimiter", "encoding", "header"};
  LoadedSpec loaded;
  *loaded.spec.mutable_validation() = *data;
  for (const std::string& assignment : overrides) {
    const std::string field = assignment.substr(0, assignment.find('='));
    if (!absl::c_linear_search(kFields, field))
      return UsageError(
          absl::StrCat("--set ", Quote(field), ": expected delimiter, encoding or header"));
    RETURN_IF_ERROR(ApplyOverride(&loaded, assignment, "--set", "validation."));
  }
  RETURN_IF_ERROR(VerifyValues(loaded));
  *data = loaded.spec.validation();
  return absl::OkStatus();
}

}  // namespace cloze
