// How each kind of tokenizer is stored in Hugging Face's files. Private to this folder.
#ifndef CLOZE_CORE_TEXT_FILES_FORMATS_H_
#define CLOZE_CORE_TEXT_FILES_FORMATS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

// A JSON file, whose values are named by JSON pointers: "/model/type".
class JsonFile {
 public:
  // Reads a file of at most 512 MB with ParseJson.
  static absl::StatusOr<JsonFile> Read(const std::string& path);

  const std::string& path() const { return path_; }
  // Returns a value; a JSON null if there is none.
  const Json& Get(const std::string& pointer) const;
  // Return the value, or "" and `otherwise` if there is none of this type.
  std::string String(const std::string& pointer) const;
  bool Bool(const std::string& pointer, bool otherwise) const;

  // Returns kData: "path: what".
  template <typename... Parts>
  absl::Status Wrong(const Parts&... what) const {
    return Error(Exit::kData, QuotePath(path_), ": ", what...);
  }
  // Checks the type of a component: "normalizer".
  absl::Status CheckType(const std::string& component, const char* expected) const;
  // Reads an object of tokens and their ids, which must be 0 ... n - 1. `what` names it in
  // messages.
  absl::Status ReadVocab(
      const std::string& pointer, const char* what, std::vector<std::string>* tokens) const;
  // Reads "cls" and "sep" of a BertProcessing or RobertaProcessing, pairs of a token and its id.
  absl::Status ReadClsAndSep(SpecialNames* names) const;

 private:
  JsonFile(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}

  std::string path_;
  Json json_;
};

// Returns an object of tokens and their ids.
OrderedJson VocabObject(const std::vector<std::string>& tokens);

struct VocabFile {
  const char* name;
  std::string (*content)(const TokenizerData& data);
};

struct TokenizerFormat {
  SubwordKind kind;
  const char* model;  // its type in tokenizer.json
  // Reads all of a tokenizer.json but the added tokens. Returns kData naming the component that
  // this kind does not have.
  absl::Status (*read)(const JsonFile& file, TokenizerData* data);
  // Adds normalizer, pre_tokenizer, post_processor, decoder and model to a tokenizer.json.
  void (*write)(const Tokenizer& tokenizer, OrderedJson* json);
  // Returns tokenizer_config.json without the names of all special tokens.
  OrderedJson (*config)(const TokenizerData& data, int64_t max_length);
  // The files of a folder without tokenizer.json; the first has the tokens.
  absl::Span<const VocabFile> vocab_files;
  absl::Status (*read_vocab)(const std::vector<std::string>& paths, TokenizerData* data);
  // Checks the other files of a folder against `data` of its tokenizer.json. May be null.
  absl::Status (*check_folder)(const std::string& folder, const TokenizerData& data) = nullptr;
};

extern const TokenizerFormat kBertFormat, kRobertaFormat;

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_FORMATS_H_
