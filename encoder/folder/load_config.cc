// Reads config.json and generation_config.json of a folder, and checks them against the weights.
#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "core/manifest/manifest.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

// True if the files hold an output matrix that differs from the word embeddings.
absl::StatusOr<bool> OutputDiffers(const ModelConfig& config, const SafetensorsReader& files) {
  const ParamKey modules[] = {
      config.Key(Role::kWordEmbeddings, -1), config.Key(Role::kDecoder, config.layers)};
  std::vector<float> values[2];
  for (const int i : {0, 1}) {
    const std::string name = KeyOf(modules[i], ParamKind::kWeight).name;
    const auto tensor = absl::c_find_if(files.tensors(),
        [&](const TensorInfo& t) { return CanonicalName(t.name, *config.family) == name; });
    if (tensor == files.tensors().end()) return false;
    values[i].resize(tensor->elements());
    RETURN_IF_ERROR(files.ReadF32(tensor->name, absl::MakeSpan(values[i])));
  }
  return values[0] != values[1];
}

// Returns about the number of parameters of the encoder.
double EncoderSize(const ModelConfig& c) {
  const double hidden = c.hidden, block = 4 * hidden * hidden + 2.0 * hidden * c.intermediate;
  const double positions = c.positions.has_table() ? c.positions.count : 0;
  const double encoder = c.encoder == nullptr ? 0 : EncoderSize(*c.encoder);
  return encoder + c.embedding_size() * (positions + c.vocab + c.embeddings.token_types) +
         2 * hidden * c.relative.span + c.own_blocks() * block;
}

// Returns `config`, read from `json`, with the members of generation_config.json, which
// transformers prefers to those of config.json.
absl::StatusOr<ModelConfig> WithGenerationConfig(
    const std::string& folder, const std::string& json, ModelConfig config) {
  const std::string path = JoinPath(folder, "generation_config.json");
  if (!PathExists(path)) return config;
  ASSIGN_OR_RETURN(const Json generation, ReadJson(path));
  JsonFields fields(generation, path);
  CheckSearch(fields);
  CheckMembers(fields, nullptr);
  RETURN_IF_ERROR(fields.status());
  ASSIGN_OR_RETURN(Json all, ParseJson(json, path));
  for (const char* key :
      {"decoder_start_token_id", "eos_token_id", "forced_bos_token_id", "forced_eos_token_id",
          "bad_words_ids", "min_length", "min_new_tokens", "no_repeat_ngram_size"}) {
    if (!generation.contains(key)) continue;
    const Json& value = generation[key];
    const bool ends = absl::string_view(key) == "eos_token_id" && value.is_array();
    if (ends && value.size() != 1)
      return Error(Exit::kMismatch, QuotePath(path), ": eos_token_id: ", value.size(),
          " end tokens: expected one (not supported)");
    all[key] = ends ? value[0] : value;
  }
  return ParseConfig(ToJsonText(all), path);
}

// Returns the last model folder directly in `folder`, or "".
std::string InnerModel(const std::string& folder) {
  std::string last;
  const auto names = ListDirectory(folder);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string inner = JoinPath(folder, name);
    if (inner > last && PathExists(JoinPath(inner, "config.json"))) last = inner;
  }
  return last;
}

}  // namespace

absl::StatusOr<Json> ReadJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  return ParseJson(text, path);
}

absl::StatusOr<ModelConfig> LoadConfig(const std::string& folder) {
  if (!PathExists(folder)) return NoSuchModel(folder);
  const std::string path = JoinPath(folder, "config.json");
  if (IsAdapter(folder) && !PathExists(JoinPath(folder, "model.safetensors"))) {
    return Error(Exit::kMismatch, QuotePath(folder),
        ": holds an adapter, not a model; `cloze merge` makes a model of it and its base");
  }
  RETURN_IF_ERROR(CheckFolder(folder));
  const std::string inner = PathExists(path) ? "" : InnerModel(folder);
  if (!inner.empty()) {
    return Error(Exit::kNoInput, QuotePath(folder), ": holds no model, but ", QuotePath(inner),
        " is one (a run keeps its best model from its first evaluation on)");
  }
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxConfigBytes));
  ASSIGN_OR_RETURN(ModelConfig config, ParseConfig(json, path));
  if (config.attention.causal) {
    ASSIGN_OR_RETURN(config, WithGenerationConfig(folder, json, std::move(config)));
  }
  ASSIGN_OR_RETURN(const SafetensorsReader files, SafetensorsReader::OpenFolder(folder));
  if (config.untied) {
    ASSIGN_OR_RETURN(config.untied, OutputDiffers(config, files));
  }
  double stored = 0;
  for (const TensorInfo& tensor : files.tensors()) stored += static_cast<double>(tensor.elements());
  if (EncoderSize(config) > 2 * stored + 1e6) {
    return Error(Exit::kMismatch, QuotePath(path), ": describes a model of ", EncoderSize(config),
        " parameters, the weights have ", stored);
  }
  return config;
}

}  // namespace cloze
