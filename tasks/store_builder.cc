#include "tasks/store_builder.h"

#include <array>
#include <bit>

namespace cloze {

absl::Status ForEachFile(
    const DataSpec& data, absl::FunctionRef<absl::Status(const DataSpec& one)> f) {
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  DataSpec one = data;
  one.clear_share();
  one.clear_leave_out();
  for (const DataFile& file : files) {
    if (IsStream(file.path)) continue;
    one.clear_files();
    one.add_files(file.path);
    RETURN_IF_ERROR(f(one));
  }
  return absl::OkStatus();
}

absl::Status RequireTokens(const Tokenizer& tokenizer, NeededTokens needed) {
  const SpecialIds& special = tokenizer.special();
  struct {
    bool required;
    int32_t id;
    const char* name;
  } tokens[] = {{true, special.cls, "<class> or [CLS]"},
      {needed.sep, special.sep, "<sep> or [SEP]"}, {needed.mask, special.mask, "<mask> or [MASK]"},
      {needed.unk, special.unk, "<unk> or [UNK]"}};
  for (const auto& [required, id, name] : tokens) {
    if (required && id < 0)
      return Error(Exit::kMismatch, "tokenizer: no token ", name, ", which the task needs");
  }
  return absl::OkStatus();
}

StoreKind StoreKindOf(const std::string& name, const Tokenizer& tokenizer,
    const std::vector<std::string>& labels, int32_t max_tokens, bool append_sep) {
  StoreKind kind;
  kind.name = name;
  kind.vocab = tokenizer.vocab_size();
  kind.labels = labels.size();
  for (const std::string& label : labels) kind.key.AddText(label);
  kind.key.AddNumber(max_tokens);
  kind.key.AddNumber(append_sep);
  return kind;
}

void AddStats(const DataStats& stats, DataStats* sum) {
  using Numbers = std::array<int64_t, sizeof(DataStats) / sizeof(int64_t)>;
  const auto added = std::bit_cast<Numbers>(stats);
  auto numbers = std::bit_cast<Numbers>(*sum);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += added[i];
  *sum = std::bit_cast<DataStats>(numbers);
}

}  // namespace cloze
