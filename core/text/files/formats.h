// How each kind of tokenizer is stored in Hugging Face's files. Private to this folder.
#ifndef CLOZE_CORE_TEXT_FILES_FORMATS_H_
#define CLOZE_CORE_TEXT_FILES_FORMATS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "core/text/tokenizer/schemes.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

// A JSON file, whose values are named by JSON pointers without escapes: "/model/type".
class JsonFile {
 public:
  // Reads a file of at most 512 MB with ParseJson.
  static absl::StatusOr<JsonFile> Read(const std::string& path);
  // Reads `text`; messages call it `path`.
  static absl::StatusOr<JsonFile> Parse(const std::string& path, std::string text);

  const std::string& path() const { return path_; }
  // The text of the file.
  const std::string& text() const { return text_; }
  // Returns a value; a JSON null if there is none.
  const Json& Get(const std::string& pointer) const;
  // Return the value, or "" and `fallback` if there is none of this type.
  std::string String(const std::string& pointer) const;
  bool Bool(const std::string& pointer, bool fallback) const;

  // Returns kData: "path: what".
  template <typename... Parts>
  absl::Status Wrong(const Parts&... what) const {
    return Error(Exit::kData, QuotePath(path_), ": ", what...);
  }
  // Returns a reader of the members of an object.
  JsonFields Fields(const std::string& pointer) const;
  // Returns kData naming the first member of an object that is not in `known`; also if it is none.
  absl::Status AllowOnly(
      const std::string& pointer, absl::Span<const absl::string_view> known) const;
  // Checks the type of a component: "normalizer".
  absl::Status CheckType(const std::string& component, const char* expected) const;
  // Reads an object of tokens and their ids, which must be 0 ... n - 1. `what` names it in
  // messages.
  absl::Status ReadVocab(
      const std::string& pointer, const char* what, std::vector<std::string>* tokens) const;

 private:
  JsonFile(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  std::string path_, text_;
  JsonList vocab_ = {{"model", "vocab"}, {}};
  Json json_;
};

// Returns an object of tokens and their ids.
OrderedJson VocabObject(absl::Span<const std::string> tokens);

// Appends the steps of the normalizer at pointer `at`. Returns kData naming a component that is not
// supported.
absl::Status ReadTextSteps(const JsonFile& file, const std::string& at, TextSteps* steps);
// Checks that the decoder, if there is one, is of the type and has no other members than `known`.
absl::Status CheckDecoder(
    const JsonFile& file, const char* type, absl::Span<const absl::string_view> known);
// Sets data->templates and the names of the class and separator tokens, the first and the last
// token around a single text. Requires all of data->tokens.
absl::Status ReadPostProcessor(const JsonFile& file, TokenizerData* data);
// Returns a post-processor that puts special tokens, whose ids are id_of(token), around texts.
OrderedJson TemplatesJson(
    const Templates& templates, absl::FunctionRef<int32_t(const std::string&)> id_of);

// The fields of tokenizer_config.json and special_tokens_map.json that name special tokens.
std::vector<std::pair<const char*, std::string*>> NameFields(SpecialNames* names);

// Puts an added token at its id; appends it if the vocabulary ends there, behind the tokens of the
// model. Returns false if it does not fit: the id has another token, or ids before it have none.
bool AddToken(uint64_t id, const std::string& token, TokenizerData* data);

struct AddedToken {
  std::string content;
  bool special = false, lstrip = false, rstrip = false, single_word = false, normalized = false;
};

// Reads a token with its flags; `what` names it in messages. `usually_special`: it is special
// unless the object says otherwise.
absl::StatusOr<AddedToken> ReadAddedToken(
    const JsonFile& file, const Json& json, const std::string& what, bool usually_special = false);
// Reads added_tokens of a tokenizer.json. Requires the tokens of the model in *data.
absl::Status ReadAddedTokens(const JsonFile& file, TokenizerData* data);
// Adds the tokens of added_tokens_decoder of tokenizer_config.json, which may be null, or of
// added_tokens.json, and then `more`. The flags of special tokens are taken from there, else from
// `named`, unless a tokenizer.json has been read.
absl::Status AddFurtherTokens(const std::string& folder, const JsonFile* config,
    absl::Span<const AddedToken> named, absl::Span<const AddedToken> more, TokenizerData* data);

// Completes *data, read from a vocabulary or a tokenizer.json, with the other files in `folder`:
// names of special tokens, options of the normalizer, further tokens. kData for tokens that do not
// fit, and for files that contradict a tokenizer.json that is kept as it is.
absl::Status ReadBeside(const std::string& folder, bool from_json, TokenizerData* data);

// Reads a tokenizer.json.
absl::StatusOr<TokenizerData> ReadTokenizerJson(const JsonFile& file);

struct VocabFile {
  const char* name;
  std::string (*content)(const TokenizerData& data);
};

struct TokenizerFormat {
  const char* type;  // SubwordScheme::type()
  // Reads all of a tokenizer.json but added tokens and post-processor. Returns kData naming the
  // component that this kind does not have.
  absl::Status (*read)(const JsonFile& file, TokenizerData* data);
  // tokenizer_config.json beside a kept tokenizer.json has bos_token and eos_token.
  bool has_text_ends;
  // The rest is null for kinds that are saved as they were read.
  // True if `write` reproduces the tokenizer.json from which *data was read.
  bool (*can_write)(const TokenizerData& data) = nullptr;
  // Adds normalizer, pre_tokenizer, post_processor, decoder and model to a tokenizer.json.
  void (*write)(const Tokenizer& tokenizer, OrderedJson* json) = nullptr;
  // Returns tokenizer_config.json; the caller adds the names of the special tokens.
  OrderedJson (*config)(const TokenizerData& data, int64_t max_length) = nullptr;
  // Applies the settings in tokenizer_config.json. Returns true if they change `data`.
  absl::StatusOr<bool> (*read_config)(
      const JsonFile& file, bool from_json, TokenizerData* data) = nullptr;
  // The files of a folder without tokenizer.json; the first has the tokens.
  absl::Span<const VocabFile> vocab_files = {};
  // `lowercase`: as for LoadTokenizer.
  absl::Status (*read_vocab)(
      const std::vector<std::string>& paths, bool lowercase, TokenizerData* data) = nullptr;
  // Checks the other files of a folder against `data` of its tokenizer.json. May be null.
  absl::Status (*check_folder)(const std::string& folder, const TokenizerData& data) = nullptr;
};

#define CLOZE_DECLARE_FORMAT(Name) extern const TokenizerFormat k##Name##Format;
CLOZE_SUBWORD_SCHEMES(CLOZE_DECLARE_FORMAT)

// Returns the format of data.scheme.
const TokenizerFormat& FormatOf(const TokenizerData& data);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_FORMATS_H_
