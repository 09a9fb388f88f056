// JSON that comes with a model or with data: config.json, tokenizer.json, tokenizer_config.json,
// the index of shards, lines of input. The first byte says which.
#include "core/base/json.h"
#include "core/tensor/safetensors.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "encoder/families/families.h"
#include "tasks/data/record.h"
#include "tests/fuzz/input.h"

namespace cloze {
namespace {

constexpr char kText[] = "A b<mask>bb [CLS] \xC3\xA9\xE4\xBD\xA0 ##b, \xFF";
constexpr char kVocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n";

void Config(absl::string_view json) {
  const auto config = ParseConfig(json, "config.json");
  fuzz::CheckError(config.status());
  if (!config.ok()) return;
  CLOZE_CHECK(config->hidden % config->heads == 0 && config->max_tokens() >= 3 &&
              config->pad_id < config->vocab && config->layers <= 1024 &&
              config->Key(Role::kQuery, config->layers - 1).layer < config->layers);
  const std::string text = FormatConfig(*config);
  const auto again = ParseConfig(text, "config.json");
  CLOZE_CHECK(again.ok() && FormatConfig(*again) == text);
}

void TokenizerFolder(const char* name, absl::string_view json) {
  static const fuzz::Folder folder, copy;
  for (const char* other : {"tokenizer.json", "tokenizer_config.json"})
    ::unlink(JoinPath(folder.path(), other).c_str());
  folder.Write("vocab.txt", kVocab);
  folder.Write(name, json);
  const auto tokenizer = LoadTokenizer(folder.path(), true);
  fuzz::CheckError(tokenizer.status());
  if (!tokenizer.ok()) return;
  const Encoding encoding = (*tokenizer)->Encode(kText);
  for (const int32_t id : encoding.ids) CLOZE_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
  CLOZE_CHECK(SaveTokenizer(**tokenizer, copy.path(), 128).ok());
  const auto again = LoadTokenizer(copy.path(), true);
  CLOZE_CHECK(again.ok() && (*again)->Encode(kText).ids == encoding.ids);
}

void Index(absl::string_view json) {
  static const fuzz::Folder folder;
  folder.Write("model.safetensors.index.json", json);
  for (const char* name : {"a", "b"}) {
    const std::string header =
        std::string("{\"") + name + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    folder.Write(std::string(name) + ".safetensors",
        std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "x");
  }
  const auto files = SafetensorsReader::OpenFolder(folder.path());
  fuzz::CheckError(files.status());
  if (files.ok()) CLOZE_CHECK(files->tensors().size() <= 2);
}

void InputLine(absl::string_view json) {
  Record record;
  fuzz::CheckError(ParseJsonRecord(std::string(json), {}, {}, &record));
}

}  // namespace
}  // namespace cloze

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cloze::fuzz::Input input(data, size);
  switch (input.Byte()) {
    case 'c': cloze::Config(input.Rest()); break;
    case 't': cloze::TokenizerFolder("tokenizer.json", input.Rest()); break;
    case 'k': cloze::TokenizerFolder("tokenizer_config.json", input.Rest()); break;
    case 'i': cloze::Index(input.Rest()); break;
    case 'l': cloze::InputLine(input.Rest()); break;
    default: cloze::fuzz::CheckError(cloze::ParseJson(input.Rest(), "x.json").status());
  }
  return 0;
}
