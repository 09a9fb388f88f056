// Model folders as Hugging Face keeps them.
#include "encoder/folder/model_folder.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/tensor/safetensors.h"
#include "core/tensor/safetensors_writer.h"
#include "encoder/folder/adapter.h"

namespace cloze {
namespace {

constexpr int64_t kMaxConfig = 64 << 20;

// Names of the file's tensors as our parameters are called.
using Tensors = std::map<std::string, const TensorInfo*>;

// Names of the output layer of masked language models: the two that are tied, and where their
// values stand.
struct Decoder {
  std::string weight, bias, tied_bias;
};

Decoder DecoderNames(const ModelConfig& config) {
  if (config.like_roberta())
    return {"lm_head.decoder.weight", "lm_head.decoder.bias", "lm_head.bias"};
  return {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "cls.predictions.bias"};
}

std::vector<int64_t> ShapeOf(const Param& param) {
  return param.vector ? std::vector<int64_t>{param.cols}
                      : std::vector<int64_t>{param.rows, param.cols};
}

bool IsEncoder(const std::string& name, const std::string& prefix) {
  return absl::StartsWith(name, prefix) && !absl::StartsWith(name, prefix + "pooler.");
}

bool IsFloat(FileType type) {
  return type == FileType::kF32 || type == FileType::kF16 || type == FileType::kBf16 ||
         type == FileType::kF64;
}

// What is wrong with `tensor` for `param`, or "".
std::string Disagreement(const Param& param, const TensorInfo& tensor) {
  const std::vector<int64_t> shape = ShapeOf(param);
  if (tensor.shape != shape) {
    return absl::StrCat(Quote(tensor.name), ": shape ", ShapeString(tensor.shape), ", ",
        ShapeString(shape), " expected by config and labels");
  }
  return IsFloat(tensor.type) ? ""
                              : absl::StrCat(Quote(tensor.name), ": type ", NameOf(tensor.type),
                                    ", a floating-point type expected");
}

absl::Status Mismatch(const std::string& folder, const std::vector<std::string>& lines) {
  return Error(Exit::kMismatch, absl::StrCat(QuotePath(folder), ": ", lines.size(),
                                    lines.size() == 1 ? " tensor does" : " tensors do",
                                    " not fit the model:\n  ", absl::StrJoin(lines, "\n  ")));
}

// Checks a stored output layer against the values it is tied to.
absl::Status CheckTied(const TensorFolder& files, const std::string& folder,
    const TensorInfo& stored, const ParamStore& store, ParamId tied) {
  const Param& param = store.param(tied);
  if (const std::string wrong = Disagreement(param, stored); !wrong.empty())
    return Mismatch(folder, {wrong});
  std::vector<float> values(param.size());
  RETURN_IF_ERROR(files.ReadF32(stored.name, absl::MakeSpan(values)));
  if (std::equal(values.begin(), values.end(), store.values().data() + param.offset))
    return absl::OkStatus();
  return Mismatch(folder, {absl::StrCat(Quote(stored.name), ": differs from ", Quote(param.name),
                              "; models whose output layer is not tied cannot be computed")});
}

// Parameters of the encoder and of the smallest head.
double EncoderSize(const ModelConfig& c) {
  const double hidden = c.hidden, layer = 4 * hidden * hidden + 2.0 * hidden * c.intermediate;
  return hidden * (double{0} + c.vocab + c.max_positions + c.token_types) + c.layers * layer;
}

}  // namespace

std::string CanonicalName(const std::string& name, const std::string& prefix) {
  std::string out = name;
  for (const char* bare : {"embeddings.", "encoder.", "pooler.", "LayerNorm."}) {
    if (absl::StartsWith(name, bare)) out = prefix + name;
  }
  if (absl::EndsWith(out, "LayerNorm.gamma")) out.replace(out.size() - 5, 5, "weight");
  if (absl::EndsWith(out, "LayerNorm.beta")) out.replace(out.size() - 4, 4, "bias");
  return out;
}

absl::StatusOr<ModelConfig> LoadConfig(const std::string& folder) {
  const std::string path = JoinPath(folder, "config.json");
  if (IsAdapter(folder) && !PathExists(JoinPath(folder, "model.safetensors"))) {
    return Error(Exit::kMismatch,
        absl::StrCat(QuotePath(folder),
            ": holds an adapter, not a model; `cloze merge` makes a model of it and its base"));
  }
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxConfig));
  ASSIGN_OR_RETURN(const ModelConfig config, ParseConfig(json, path));
  ASSIGN_OR_RETURN(const TensorFolder files, TensorFolder::Open(folder));
  double stored = 0;
  for (const TensorInfo* tensor : files.tensors())
    stored += static_cast<double>(tensor->elements());
  if (EncoderSize(config) > 2 * stored + 1e6) {
    return Error(
        Exit::kMismatch, absl::StrCat(QuotePath(path), ": describes a model of ",
                             EncoderSize(config), " parameters, the weights have ", stored));
  }
  return config;
}

absl::Status LoadWeights(const std::string& folder, const ModelConfig& config, ParamStore* store,
    LoadReport* report, const std::vector<std::string>& except, LazyRows* words) {
  *report = {};
  ASSIGN_OR_RETURN(TensorFolder files, TensorFolder::Open(folder));
  const std::string prefix = EncoderPrefix(config),
                    word_embeddings = prefix + "embeddings.word_embeddings.weight";
  const Decoder decoder = DecoderNames(config);
  Tensors tensors;
  std::vector<std::string> wrong;
  for (const TensorInfo* tensor : files.tensors()) {
    const auto [known, added] = tensors.emplace(CanonicalName(tensor->name, prefix), tensor);
    if (!added)
      wrong.push_back(
          absl::StrCat(Quote(tensor->name), ": the same tensor as ", Quote(known->second->name)));
  }
  const bool predicts_tokens = store->Find(decoder.tied_bias) >= 0;
  if (predicts_tokens && tensors.count(decoder.tied_bias) == 0 && tensors.count(decoder.bias) > 0)
    tensors[decoder.tied_bias] = tensors[decoder.bias];
  const auto skipped = [&](const std::string& name) {
    return IsOfAdapter(name) || std::find(except.begin(), except.end(), name) != except.end();
  };
  std::vector<std::pair<ParamId, const TensorInfo*>> reads;
  for (ParamId id = 0; id < store->size(); ++id) {
    const Param& param = store->param(id);
    if (skipped(param.name)) continue;
    const auto found = tensors.find(param.name);
    if (found == tensors.end()) {
      if (IsEncoder(param.name, prefix)) {
        wrong.push_back(absl::StrCat(
            Quote(param.name), ": missing, shape ", ShapeString(ShapeOf(param)), " expected"));
      } else {
        report->initialised.push_back(param.name);
      }
      continue;
    }
    if (std::string line = Disagreement(param, *found->second); !line.empty())
      wrong.push_back(std::move(line));
    reads.emplace_back(id, found->second);
  }
  if (!wrong.empty()) return Mismatch(folder, wrong);
  std::pair<ParamId, const TensorInfo*> later = {-1, nullptr};
  for (const auto& [id, tensor] : reads) {
    const Param& param = store->param(id);
    if (words != nullptr && !predicts_tokens && param.name == word_embeddings) {
      later = {id, tensor};
    } else {
      RETURN_IF_ERROR(
          files.ReadF32(tensor->name, store->values().subspan(param.offset, param.size())));
    }
  }
  store->Changed();
  for (const auto& [name, tensor] : tensors) {
    const bool weight = name == decoder.weight, bias = name == decoder.bias;
    if (predicts_tokens && (weight || bias)) {
      const ParamId tied = store->Find(weight ? word_embeddings : decoder.tied_bias);
      if (!skipped(store->param(tied).name))
        RETURN_IF_ERROR(CheckTied(files, folder, *tensor, *store, tied));
    } else if (store->Find(name) < 0 && !absl::EndsWith(name, "embeddings.position_ids")) {
      report->ignored.push_back(tensor->name);
    }
  }
  if (later.second != nullptr)
    *words = LazyRows(std::move(files), later.second->name, store->value(later.first));
  return absl::OkStatus();
}

absl::Status SaveWeights(
    const std::string& folder, const ModelConfig& config, const ParamStore& store) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  std::vector<TensorData> tensors;
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (IsOfAdapter(param.name)) continue;
    tensors.push_back(
        {param.name, ShapeOf(param), FileType::kF32, store.values().data() + param.offset});
  }
  RETURN_IF_ERROR(ReplaceSafetensors(JoinPath(folder, "model.safetensors"), tensors));
  return WriteFileAtomically(JoinPath(folder, "config.json"), FormatConfig(config));
}

}  // namespace cloze
