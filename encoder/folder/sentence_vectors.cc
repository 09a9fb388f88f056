#include "encoder/folder/sentence_vectors.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

// Returns the object in a file of the folder, an empty one if there is no such file.
absl::StatusOr<Json> ReadObject(const std::string& path) {
  if (!PathExists(path)) return Json::object();
  return ReadJson(path);
}

// Returns the only pooling that the config.json of a Pooling module turns on.
absl::StatusOr<std::string> PoolingIn(const std::string& path) {
  static const std::map<std::string, std::string> kPools = {{"pooling_mode_cls_token", "cls"},
      {"pooling_mode_mean_tokens", "mean"}, {"pooling_mode_max_tokens", "max"}};
  ASSIGN_OR_RETURN(const Json config, ReadJson(path));
  std::set<std::string> pools;
  const Json& mode = JsonMember(config, "pooling_mode");  // of newer versions
  if (mode.is_string()) pools.insert(mode.get<std::string>());
  for (const auto& [field, value] : config.items()) {
    if (!absl::StartsWith(field, "pooling_mode_") || value != true) continue;
    const auto known = kPools.find(field);
    pools.insert(known == kPools.end() ? field : known->second);
  }
  for (const auto& [field, pool] : kPools) {
    if (pools == std::set<std::string>{pool}) return pool;
  }
  return Error(Exit::kMismatch, QuotePath(path),
      ": expected one pooling of cls, mean and max, the others are not supported");
}

// Returns the settings of a Transformer module, from the first file that it has of those that
// versions of sentence-transformers have written.
absl::StatusOr<Json> TransformerSettings(const std::string& module) {
  for (const char* family :
      {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const std::string path = JoinPath(module, absl::StrCat("sentence_", family, "_config.json"));
    if (PathExists(path)) return ReadJson(path);
  }
  return Json::object();
}

// Sets max_tokens and lowercase.
absl::Status ReadLimits(
    const std::string& folder, const std::string& module, SentenceVectors* vectors) {
  constexpr double kNoLimit = 1e6;
  ASSIGN_OR_RETURN(const Json settings, TransformerSettings(module));
  ASSIGN_OR_RETURN(const Json tokenizer, ReadObject(JoinPath(folder, "tokenizer_config.json")));
  vectors->lowercase = JsonMember(settings, "do_lower_case") == true;
  const Json &own = JsonMember(settings, "max_seq_length"),
             &limit = own.is_number() ? own : JsonMember(tokenizer, "model_max_length");
  const double tokens = limit.is_number() ? limit.get<double>() : 0;
  if (tokens >= 3 && tokens < kNoLimit) vectors->max_tokens = static_cast<int64_t>(tokens);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<SentenceVectors>> ReadSentenceVectors(const std::string& folder) {
  const std::string path = JoinPath(folder, "modules.json");
  if (!PathExists(path)) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  // The file holds a list, and ParseJson takes an object.
  ASSIGN_OR_RETURN(const Json file, ParseJson(absl::StrCat("{\"modules\":", text, "}"), path));
  if (file.size() != 1) return Error(Exit::kData, QuotePath(path), ": expected a list of modules");
  SentenceVectors vectors;
  std::string transformer = folder;
  for (const Json& module : JsonMember(file, "modules")) {
    JsonFields fields(module, path);
    const std::string type = fields.String("type"), name = type.substr(type.rfind('.') + 1),
                      at = JoinPath(folder, fields.String("path"));
    RETURN_IF_ERROR(fields.status());
    if (const std::string part = fields.String("path");
        absl::StartsWith(part, "/") || absl::StrContains(absl::StrCat("/", part, "/"), "/../"))
      return Error(Exit::kData, QuotePath(path), ": path: ", JsonString(part),
          ": expected a folder inside this one");
    if (name == "Transformer") {
      transformer = at;
    } else if (name == "Pooling") {
      ASSIGN_OR_RETURN(vectors.pool, PoolingIn(JoinPath(at, "config.json")));
    } else if (name == "Normalize") {
      vectors.normalize = true;
    } else {
      return Error(
          Exit::kMismatch, QuotePath(path), ": the module ", JsonString(type), " is not supported");
    }
  }
  if (vectors.pool.empty()) {
    return Error(
        Exit::kData, QuotePath(path), ": expected a list of modules with a Pooling module");
  }
  const std::string prompts = JoinPath(folder, "config_sentence_transformers.json");
  ASSIGN_OR_RETURN(const Json config, ReadObject(prompts));
  if (JsonMember(config, "default_prompt_name").is_string()) {
    return Error(
        Exit::kMismatch, QuotePath(prompts), ": default_prompt_name: prompts are not supported");
  }
  RETURN_IF_ERROR(ReadLimits(folder, transformer, &vectors));
  return vectors;
}

}  // namespace cloze
