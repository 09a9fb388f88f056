#include "tasks/build.h"

#include <array>
#include <bit>

#include "core/base/text.h"
#include "core/ops/matmul.h"

namespace cloze {

absl::Status CheckFit(const LoadedSpec& loaded, const Task& task, const ModelConfig& config,
    const Tokenizer& tokenizer) {
  if (tokenizer.vocab_size() > config.vocab) {
    return AtField(loaded, TokenizerField(loaded.spec),
        Error(Exit::kMismatch, "the tokenizer has ", tokenizer.vocab_size(),
            " tokens: expected at most ", config.vocab, ", the vocabulary of the model"));
  }
  const bool causal = config.causal, pairs = config.encoder != nullptr;
  if (pairs != (task.head() == HeadKind::kSequenceToSequence)) {
    return SpecError(loaded, task.name(),
        pairs ? "the model is an encoder-decoder: expected sequence_to_sequence"
              : "the model is a decoder: expected an encoder or an encoder-decoder");
  }
  if (!pairs && causal != (task.head() == HeadKind::kCausalLm)) {
    return SpecError(loaded, task.name(),
        causal ? "the model is a decoder: expected causal_lm"
               : "the model is an encoder: expected model.encoder.architecture GPT2 or a gpt2 "
                 "folder");
  }
  if (loaded.spec.masked_lm().causal_share() > 0 && config.relative.any())
    return SpecError(loaded, "masked_lm.causal_share",
        "cannot be used with a model with relative positions: expected 0");
  const auto check = [&](const char* field, int32_t tokens, const ModelConfig& of) {
    if (tokens <= of.max_tokens()) return absl::OkStatus();
    return SpecError(loaded, absl::StrCat(task.name(), field),
        absl::StrCat(tokens, ", but the model has ", of.max_tokens(), " positions"));
  };
  const int32_t target = task.max_new_tokens();
  RETURN_IF_ERROR(check(".max_target_tokens", target, config));
  return check(".max_tokens", task.max_tokens() - target, pairs ? *config.encoder : config);
}

std::string TokenizerField(const TaskSpec& spec) {
  return spec.model().tokenizer().empty() ? "model.start_from" : "model.tokenizer";
}

absl::Status AtData(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status) {
  const Exit exit = ExitOf(status);
  return exit == Exit::kSpec || exit == Exit::kNoInput
             ? AtField(loaded, exit == Exit::kNoInput ? field + ".files" : field, status)
             : status;
}

absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, Task& task, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options) {
  RETURN_IF_ERROR(CheckFit(loaded, task, config, tokenizer));
  const bool held_out = &data == &loaded.spec.validation();
  auto built =
      task.Build(data, held_out ? DataUse::kEvaluation : DataUse::kTraining, tokenizer, options);
  if (!built.ok()) return AtData(loaded, held_out ? "validation" : "train", built.status());
  return built;
}

std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built) {
  const DataStats& s = built.store.stats();
  std::vector<std::string> lines = {absl::StrCat(name, ": ", Counted(s.examples, "example"), ", ",
      Counted(s.tokens, "token"), built.reused ? " (cached)" : "")};
  if (!built.note.empty()) lines.push_back(absl::StrCat(name, ": ", built.note));
  if (s.truncated > 0 && s.cut_tokens == 0) {
    lines.push_back(
        absl::StrCat(name, ": read in several windows: ", Counted(s.truncated, "text")));
  }
  for (std::string& line : DescribeOddities(name, s)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> DescribeOddities(absl::string_view name, const DataStats& s) {
  std::vector<std::string> lines;
  const auto say = [&](const auto&... parts) {
    lines.push_back(absl::StrCat(name, ": ", parts...));
  };
  if (s.empty_documents > 0) say("empty: ", Counted(s.empty_documents, "text"));
  if (s.truncated > 0 && s.cut_tokens > 0)
    say("too long: ", Counted(s.truncated, s.words > 0 ? "word" : "text"), ", ",
        Counted(s.cut_tokens, "token"), " cut off");
  if (s.empty_words > 0) say("without pieces, taken as <unk>: ", Counted(s.empty_words, "word"));
  if (s.invalid_bytes > 0) say("not UTF-8, read as U+FFFD: ", Counted(s.invalid_bytes, "byte"));
  if (s.text_tokens > 0 && s.unknown_tokens * 20 > s.text_tokens)
    say(100 * s.unknown_tokens / s.text_tokens,
        " % of the tokens are <unk>: expected at most 5 % (choose a vocabulary that fits the "
        "text)");
  return lines;
}

DType ComputeOf(RuntimeSpec::Compute compute, Use use) {
  const bool bf16 = compute == RuntimeSpec::AUTO ? Bf16IsFaster() && use == Use::kTraining
                                                 : compute == RuntimeSpec::BF16;
  return bf16 ? DType::kBf16 : DType::kF32;
}

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
