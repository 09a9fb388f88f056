#include "encoder/folder/sentence_vectors.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/manifest/manifest.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

constexpr std::pair<const char*, const char*> kPools[] = {{"pooling_mode_cls_token", "cls"},
    {"pooling_mode_mean_tokens", "mean"}, {"pooling_mode_max_tokens", "max"}};

constexpr char kPromptsFile[] = "config_sentence_transformers.json";
constexpr char kPoolingFile[] = "1_Pooling/config.json";
constexpr char kLimitsFile[] = "sentence_bert_config.json";

// Reads the modules of a folder.
class SentenceFolder {
 public:
  explicit SentenceFolder(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<SentenceVectors> Read() {
    ASSIGN_OR_RETURN(const Json modules, Modules());
    std::set<std::string> seen;
    for (const Json& module : modules) {
      ASSIGN_OR_RETURN(const std::string name, ReadModule(module));
      const bool ordered = name == "Transformer" ? seen.empty()
                           : name == "Pooling"
                               ? seen == std::set<std::string>{"Transformer"}
                               : seen.contains("Pooling") && !seen.contains("Normalize");
      if (!ordered)
        return Wrong(Exit::kMismatch, kModules,
            "expected Transformer, Pooling and then Dense and Normalize, if there are any");
      seen.insert(name);
    }
    if (vectors_.pool.empty())
      return Wrong(Exit::kData, kModules, "expected a list of modules with a Pooling module");
    RETURN_IF_ERROR(ReadPrompts());
    RETURN_IF_ERROR(ReadLimits());
    vectors_.folder = folder_;
    return std::move(vectors_);
  }

  static constexpr char kModules[] = "modules.json";

 private:
  template <typename... Parts>
  absl::Status Wrong(Exit exit, const std::string& file, const Parts&... what) const {
    return Error(exit, QuotePath(JoinPath(folder_, file)), ": ", what...);
  }
  // Returns kMismatch with the error of `fields`, all of whose members have been read.
  static absl::Status Checked(const JsonFields& fields) {
    if (fields.status().ok()) return absl::OkStatus();
    return Error(Exit::kMismatch, fields.status().message());
  }

  // The file holds a list, and ParseJson takes an object.
  absl::StatusOr<Json> Modules() {
    const std::string path = JoinPath(folder_, kModules);
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
    ASSIGN_OR_RETURN(const Json file, ParseJson(absl::StrCat("{\"modules\":", text, "}"), path));
    if (file.size() != 1) return Wrong(Exit::kData, kModules, "expected a list of modules");
    vectors_.files.emplace_back(kModules);
    return JsonMember(file, "modules");
  }

  // Returns the object in a file of the folder, an empty one if there is no such file.
  absl::StatusOr<Json> ReadObject(const std::string& file) {
    if (!PathExists(JoinPath(folder_, file))) return Json::object();
    vectors_.files.push_back(file);
    return ReadJson(JoinPath(folder_, file));
  }

  // Returns the module's name.
  absl::StatusOr<std::string> ReadModule(const Json& module) {
    JsonFields fields(module, JoinPath(folder_, kModules));
    const std::string type = fields.String("type"), part = fields.String("path");
    RETURN_IF_ERROR(fields.status());
    if (absl::StartsWith(part, "/") || absl::StrContains(absl::StrCat("/", part, "/"), "/../"))
      return Wrong(
          Exit::kData, kModules, "path: ", JsonString(part), ": expected a folder inside this one");
    fields.AllowOnly({"idx", "name", "path", "type", "kwargs"});
    fields.AllowValues("kwargs", {nullptr, Json::array(), Json::object()});
    RETURN_IF_ERROR(Checked(fields));
    std::string name = type.substr(type.rfind('.') + 1);
    const bool known_package = absl::StartsWith(type, "sentence_transformers.");
    if (known_package && name == "Transformer") {
      if (!part.empty() && part != ".")
        return Wrong(Exit::kMismatch, kModules, "path: ", JsonString(part),
            ": expected the Transformer in this folder");
    } else if (known_package && name == "Pooling") {
      RETURN_IF_ERROR(ReadPooling(JoinPath(part, "config.json")));
    } else if (known_package && name == "Dense") {
      RETURN_IF_ERROR(ReadDense(part));
    } else if (known_package && name == "Normalize") {
      vectors_.normalize = true;
      ASSIGN_OR_RETURN(const Json config, ReadObject(JoinPath(part, "config.json")));
      JsonFields none(config, JoinPath(folder_, JoinPath(part, "config.json")));
      if (!part.empty()) none.AllowOnly({});
      RETURN_IF_ERROR(Checked(none));
    } else {
      return Wrong(Exit::kMismatch, kModules, "the module ", JsonString(type), " is not supported");
    }
    return name;
  }

  // Sets the only pooling that the config.json of a Pooling module turns on.
  absl::Status ReadPooling(const std::string& file) {
    ASSIGN_OR_RETURN(const Json config, ReadJson(JoinPath(folder_, file)));
    vectors_.files.push_back(file);
    std::set<std::string> pools;
    const Json& mode = JsonMember(config, "pooling_mode");  // of newer versions
    if (mode.is_string()) pools.insert(mode.get<std::string>());
    if (mode.is_null() && !config.contains("pooling_mode_mean_tokens")) pools.insert("mean");
    for (const auto& [field, value] : config.items()) {
      if (!absl::StartsWith(field, "pooling_mode_") || value != true) continue;
      pools.insert(field);
      for (const auto& [known, pool] : kPools)
        if (field == known) pools.erase(field), pools.insert(pool);
    }
    for (const auto& [field, pool] : kPools)
      if (pools == std::set<std::string>{pool}) vectors_.pool = pool;
    if (vectors_.pool.empty())
      return Wrong(Exit::kMismatch, file,
          "expected one pooling of cls, mean and max, the others are not supported");
    JsonFields fields(config, JoinPath(folder_, file));
    fields.AllowOnly({"pooling_mode", "pooling_mode_cls_token", "pooling_mode_mean_tokens",
        "pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
        "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken",
        // Do not change vectors without a prompt.
        "include_prompt", "word_embedding_dimension", "embedding_dimension"});
    if (!mode.is_null() && !mode.is_string()) fields.Fail("pooling_mode", "expected a string");
    vectors_.includes_prompt = JsonMember(config, "include_prompt") != false;
    for (const auto& [field, value] : config.items())
      if (absl::StartsWith(field, "pooling_mode_"))
        fields.AllowValues(field.c_str(), {true, false});
    return Checked(fields);
  }

  absl::Status ReadDense(const std::string& part) {
    ASSIGN_OR_RETURN(DenseLayer layer, ReadDenseLayer(JoinPath(folder_, part)));
    ASSIGN_OR_RETURN(const ModelConfig config, LoadConfig(folder_));
    const int64_t columns = vectors_.Columns(config.hidden);
    if (columns != layer.inputs)
      return Wrong(Exit::kMismatch, JoinPath(part, "config.json"), "in_features: ", layer.inputs,
          ": expected ", columns, ", the columns of the vectors before it");
    vectors_.dense.push_back(std::move(layer));
    for (const char* file : {"config.json", "model.safetensors"})
      vectors_.files.push_back(JoinPath(part, file));
    return absl::OkStatus();
  }

  absl::Status ReadPrompts() {
    ASSIGN_OR_RETURN(const Json config, ReadObject(kPromptsFile));
    JsonFields fields(config, JoinPath(folder_, kPromptsFile));
    fields.AllowOnly({"__version__", "prompts", "default_prompt_name", "similarity_fn_name",
        "model_type", "truncate_dim"});
    fields.AllowValues("truncate_dim", {nullptr});
    fields.AllowValues("model_type", {nullptr, "SentenceTransformer"});
    fields.AllowValues("similarity_fn_name", {nullptr, "cosine", "dot", "euclidean", "manhattan"});
    const Json& prompts = JsonMember(config, "prompts");
    const auto prompt = [&](const std::string& name) {
      const Json& text = JsonMember(prompts, name.c_str());
      return text.is_string() ? text.get<std::string>() : "";
    };
    if (const Json& name = JsonMember(config, "default_prompt_name"); name.is_string()) {
      if (!JsonMember(prompts, name.get<std::string>().c_str()).is_string())
        fields.Fail("default_prompt_name", JsonString(name), ": expected a name of prompts");
      vectors_.prompt = prompt(name.get<std::string>());
    }
    vectors_.query_prompt = prompt("query");
    vectors_.document_prompt = prompt("document").empty() ? prompt("passage") : prompt("document");
    const std::string similarity = fields.String("similarity_fn_name");
    if (!similarity.empty()) vectors_.similarity = similarity;
    if (!vectors_.includes_prompt && !vectors_.prompt.empty())
      fields.Fail("default_prompt_name", "with include_prompt false is not supported");
    return Checked(fields);
  }

  // Returns the settings of the Transformer module, from the first file that the folder has of
  // those that versions of sentence-transformers have written.
  absl::StatusOr<Json> TransformerSettings() {
    for (const char* family :
        {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
      const std::string file = absl::StrCat("sentence_", family, "_config.json");
      if (!PathExists(JoinPath(folder_, file))) continue;
      ASSIGN_OR_RETURN(Json settings, ReadObject(file));
      JsonFields fields(settings, JoinPath(folder_, file));
      fields.AllowOnly({"max_seq_length", "do_lower_case", "transformer_task", "modality_config",
          "module_output_name", "processing_kwargs", "unpad_inputs", "model_args", "model_kwargs",
          "tokenizer_args", "tokenizer_kwargs", "processor_kwargs", "config_args",
          "config_kwargs"});
      fields.AllowValues("do_lower_case", {nullptr, false, true});
      fields.AllowValues("transformer_task", {nullptr, "feature-extraction"});
      fields.AllowValues("module_output_name", {nullptr, "token_embeddings"});
      const Json text = {{"method", "forward"}, {"method_output_name", "last_hidden_state"}};
      fields.AllowValues("modality_config", {nullptr, Json::object(), Json{{"text", text}}});
      for (const char* more : {"processing_kwargs", "model_args", "model_kwargs", "tokenizer_args",
               "tokenizer_kwargs", "processor_kwargs", "config_args", "config_kwargs"})
        fields.AllowValues(more, {nullptr, Json::object()});
      int32_t length = 0;
      fields.Integer("max_seq_length", false, 1, 1'000'000'000, &length);
      RETURN_IF_ERROR(Checked(fields));
      return settings;
    }
    return Json::object();
  }

  // Sets max_tokens and lowercase.
  absl::Status ReadLimits() {
    constexpr double kNoLimit = 1e6;
    ASSIGN_OR_RETURN(const Json settings, TransformerSettings());
    const std::string file = JoinPath(folder_, "tokenizer_config.json");
    Json tokenizer = Json::object();
    if (PathExists(file)) {
      ASSIGN_OR_RETURN(tokenizer, ReadJson(file));
    }
    vectors_.lowercase = JsonMember(settings, "do_lower_case") == true;
    const Json &length = JsonMember(settings, "max_seq_length"),
               &limit = length.is_number() ? length : JsonMember(tokenizer, "model_max_length");
    const double tokens = limit.is_number() ? limit.get<double>() : 0;
    if (tokens >= 3 && tokens < kNoLimit) vectors_.max_tokens = static_cast<int64_t>(tokens);
    return absl::OkStatus();
  }

  std::string folder_;
  SentenceVectors vectors_;
};

// Returns kVectorsMember of config.json; nullopt without that member.
absl::StatusOr<std::optional<SentenceVectors>> ReadMember(const std::string& folder) {
  const std::string path = JoinPath(folder, "config.json");
  if (!PathExists(path)) return std::nullopt;
  ASSIGN_OR_RETURN(const Json config, ReadJson(path));
  const Json& member = JsonMember(JsonMember(config, "cloze"), kVectorsMember);
  if (!member.is_object()) return std::nullopt;
  JsonFields fields(member, path);
  SentenceVectors vectors;
  vectors.pool = fields.String("pooling");
  if (std::none_of(std::begin(kPools), std::end(kPools),
          [&](const auto& known) { return vectors.pool == known.second; }))
    fields.Fail("pooling", Quote(vectors.pool), ": expected cls, mean or max");
  vectors.normalize = fields.Bool("normalize", false);
  vectors.query_prompt = fields.String("query_prompt");
  vectors.document_prompt = fields.String("document_prompt");
  int32_t max_tokens = 0;
  fields.Integer("max_tokens", false, 3, 1'000'000, &max_tokens);
  vectors.max_tokens = max_tokens;
  vectors.folder = folder;
  RETURN_IF_ERROR(fields.status());
  return vectors;
}

// The modules of sentence-transformers: a list of {"idx", "name", "path", "type"}.
Json ModulesOf(const SentenceVectors& vectors) {
  Json modules = Json::array();
  const auto add = [&](const char* path, const char* type) {
    const size_t n = modules.size();
    modules.push_back({{"idx", n}, {"name", std::to_string(n)}, {"path", path},
        {"type", absl::StrCat("sentence_transformers.models.", type)}});
  };
  add("", "Transformer");
  add("1_Pooling", "Pooling");
  if (vectors.normalize) add("2_Normalize", "Normalize");
  return modules;
}

}  // namespace

Json VectorsMember(const SentenceVectors& vectors) {
  Json member = {{"pooling", vectors.pool}, {"normalize", vectors.normalize},
      {"max_tokens", vectors.max_tokens}};
  if (!vectors.query_prompt.empty()) member["query_prompt"] = vectors.query_prompt;
  if (!vectors.document_prompt.empty()) member["document_prompt"] = vectors.document_prompt;
  return member;
}

absl::Status WriteSentenceVectors(
    const SentenceVectors& vectors, int64_t hidden, const std::string& folder) {
  Json pooling = {{"word_embedding_dimension", hidden}, {"include_prompt", true}};
  for (const auto& [field, pool] : kPools) pooling[field] = vectors.pool == pool;
  for (const char* other : {"mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"})
    pooling[absl::StrCat("pooling_mode_", other)] = false;
  const Json prompts = {
      {"prompts", {{"query", vectors.query_prompt}, {"document", vectors.document_prompt}}},
      {"default_prompt_name", nullptr}, {"similarity_fn_name", vectors.similarity}};
  const Json limits = {{"max_seq_length", vectors.max_tokens}, {"do_lower_case", false}};
  RETURN_IF_ERROR(MakeDirectories(JoinPath(folder, "1_Pooling")));
  const std::pair<const char*, const Json*> files[] = {
      {kPoolingFile, &pooling}, {kPromptsFile, &prompts}, {kLimitsFile, &limits}};
  for (const auto& [file, json] : files)
    RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, file), json->dump(2) + "\n"));
  return WriteFileAtomically(
      JoinPath(folder, SentenceFolder::kModules), ModulesOf(vectors).dump(2) + "\n");
}

absl::StatusOr<std::optional<SentenceVectors>> ReadSentenceVectors(const std::string& folder) {
  const std::string modules = JoinPath(folder, SentenceFolder::kModules);
  if (!PathExists(modules)) return ReadMember(folder);
  ASSIGN_OR_RETURN(SentenceVectors vectors, SentenceFolder(folder).Read());
  if (!PathExists(JoinPath(folder, kManifestName))) return vectors;
  ASSIGN_OR_RETURN(const auto written, ReadMember(folder));
  if (!written.has_value()) return vectors;
  const Json expected = VectorsMember(*written), found = VectorsMember(vectors);
  if (found == expected && vectors.dense.empty() && vectors.prompt.empty() && !vectors.lowercase)
    return vectors;
  return Error(Exit::kMismatch, QuotePath(modules), ": it and the files that it names say ",
      vectors.dense.empty() ? found.dump() : "a Dense module", ": expected ", expected.dump(),
      ", as config.json says (restore the files, or delete ",
      QuotePath(JoinPath(folder, kManifestName)), " to accept them)");
}

absl::Status CheckSentenceVectors(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto written, ReadMember(folder));
  if (!written.has_value()) return absl::OkStatus();
  for (const char* name : {SentenceFolder::kModules, kPoolingFile, kPromptsFile, kLimitsFile}) {
    const std::string path = JoinPath(folder, name);
    if (!PathExists(path)) return Error(Exit::kMismatch, QuotePath(path), ": missing");
  }
  return ReadSentenceVectors(folder).status();
}

absl::Status CopySentenceVectors(
    const std::optional<SentenceVectors>& vectors, const std::string& to) {
  if (!vectors.has_value()) return absl::OkStatus();
  for (const std::string& file : vectors->files) {
    ASSIGN_OR_RETURN(
        const std::string text, ReadFile(JoinPath(vectors->folder, file), kMaxConfigBytes));
    const std::string path = JoinPath(to, file);
    RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
    RETURN_IF_ERROR(WriteFileAtomically(path, text));
  }
  return absl::OkStatus();
}

}  // namespace cloze
