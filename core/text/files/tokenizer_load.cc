// A tokenizer out of the files of a folder.
#include "core/base/file.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(
    const std::string& path, bool lowercase) {
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
  return FromData(byte_level ? ids : from_json ? json : vocab, !from_json && !byte_level, &data);
}

}  // namespace cloze
