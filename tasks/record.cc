#include "tasks/record.h"

#include <algorithm>

namespace cloze {

Example ExampleOf(Encoding encoding, int64_t max_tokens, int64_t* dropped) {
  *dropped = Truncate(&encoding, max_tokens);
  Example example;
  example.second = static_cast<int32_t>(
      std::find(encoding.types.begin(), encoding.types.end(), 1) - encoding.types.begin());
  example.ids = std::move(encoding.ids);
  return example;
}

absl::StatusOr<Example> EncodeRecord(
    const Record& record, const ModelInput& input, CutCounts* cut) {
  if (record.kind == Record::Kind::kIds || !record.ids.empty()) {
    const int64_t count = record.ids.size();
    if (count == 0 || count > input.longest)
      return Error(Exit::kData, "ids: ", count, " tokens, the model takes 1 to ", input.longest);
    Example example;
    example.ids = record.ids;
    example.second = static_cast<int32_t>(count);
    return example;
  }
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
  Encoding encoding = record.kind == Record::Kind::kPair
                          ? tokenizer->EncodePair(record.text, record.text_pair)
                      : record.kind == Record::Kind::kWords ? tokenizer->EncodeWords(record.words)
                                                            : tokenizer->Encode(record.text);
  int64_t dropped = 0;
  Example example = ExampleOf(std::move(encoding), input.longest, &dropped);
  cut->texts += dropped > 0;
  cut->tokens += dropped;
  cut->max_tokens = input.longest;
  return example;
}

}  // namespace cloze
