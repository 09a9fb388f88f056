// How each kind of tokenizer is stored in Hugging Face's files. Private to this folder.
#ifndef CLOZE_CORE_TEXT_FILES_FORMATS_H_
#define CLOZE_CORE_TEXT_FILES_FORMATS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/text/files/json_reader.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

struct VocabFile {
  const char* name;
  std::string (*content)(const TokenizerData& data);
};

struct TokenizerFormat {
  SubwordKind kind;
  const char* model;  // its type in tokenizer.json
  // Reads all of a tokenizer.json but the added tokens. Returns kData naming the component that
  // this kind does not have.
  absl::Status (*read)(const std::string& path, const Json& json, TokenizerData* data);
  // Adds normalizer, pre_tokenizer, post_processor, decoder and model to a tokenizer.json.
  void (*write)(const Tokenizer& tokenizer, OrderedJson* json);
  // Returns tokenizer_config.json without the names of all special tokens.
  OrderedJson (*config)(const TokenizerData& data, int64_t max_length);
  // The files of a folder without tokenizer.json; the first has the tokens.
  absl::Span<const VocabFile> vocab_files;
  bool token_per_line;
  absl::Status (*read_vocab)(const std::vector<std::string>& paths, TokenizerData* data);
  // Checks the other files of a folder against `data` of its tokenizer.json. May be null.
  absl::Status (*check_folder)(const std::string& folder, const TokenizerData& data);
};

extern const TokenizerFormat kBertFormat, kRobertaFormat;

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_FORMATS_H_
