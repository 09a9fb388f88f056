#include "core/text/files/tokenizer_files.h"

#include "core/base/file.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path, bool lowercase) {
  TokenizerData data;
  data.options.lowercase = data.options.strip_accents = lowercase;
  const bool folder = IsDirectory(path);
  const std::string json = folder ? JoinPath(path, "tokenizer.json") : path;
  const std::string config = JoinPath(path, "tokenizer_config.json"),
                    vocab = folder ? JoinPath(path, "vocab.txt") : path;
  const bool from_json = folder
                             ? PathExists(json)
                             : path.size() >= 5 && path.compare(path.size() - 5, 5, ".json") == 0;
  const std::string ids = JoinPath(path, "vocab.json"), merges = JoinPath(path, "merges.txt");
  const bool byte_level =
      folder && !from_json && !PathExists(vocab) && (PathExists(ids) || PathExists(merges));
  if (folder && !from_json && !PathExists(vocab) && !byte_level) {
    return Error(Exit::kNoInput,
        absl::StrCat(QuotePath(path),
            ": holds neither tokenizer.json nor vocab.txt nor vocab.json with merges.txt"));
  }
  if (byte_level) {
    for (const std::string& file : {ids, merges}) {
      if (!PathExists(file))
        return Error(
            Exit::kNoInput, absl::StrCat(QuotePath(file),
                                ": missing; byte-level BPE needs vocab.json and merges.txt"));
    }
    RETURN_IF_ERROR(ReadVocabAndMerges(ids, merges, &data));
  } else if (from_json) {
    ASSIGN_OR_RETURN(data, ReadTokenizerJson(json));
  } else {
    ASSIGN_OR_RETURN(data.tokens, ReadVocabFile(vocab));
  }
  if (folder && PathExists(config)) RETURN_IF_ERROR(ReadTokenizerConfig(config, !from_json, &data));
  return Tokenizer::Create(std::move(data),
      byte_level  ? ids
      : from_json ? json
                  : vocab,
      !from_json && !byte_level);
}

absl::Status SaveTokenizer(
    const Tokenizer& tokenizer, const std::string& directory, int64_t max_length) {
  const TokenizerData& data = tokenizer.data();
  const auto write = [&](const char* name, const std::string& content) {
    return WriteFileAtomically(JoinPath(directory, name), content);
  };
  std::vector<int32_t> special_ids;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id)) special_ids.push_back(id);
  }
  // LoadTokenizer prefers tokenizer.json, so an interrupted save is never a mixture.
  RETURN_IF_ERROR(write("tokenizer.json", TokenizerJson(data, special_ids)));
  if (data.byte_level) {
    RETURN_IF_ERROR(write("vocab.json", VocabJson(data)));
    RETURN_IF_ERROR(write("merges.txt", MergesText(data)));
  } else {
    std::string vocab;
    for (const std::string& token : data.tokens) absl::StrAppend(&vocab, token, "\n");
    RETURN_IF_ERROR(write("vocab.txt", vocab));
  }
  RETURN_IF_ERROR(write("special_tokens_map.json", SpecialTokensMapJson(data)));
  return write("tokenizer_config.json", TokenizerConfigJson(data, max_length));
}

}  // namespace cloze
