#include "encoder/folder/model_folder.h"

#include <list>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/manifest/manifest.h"
#include "core/ops/stored_matrix.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/adapter.h"

namespace cloze {
namespace {

bool IsTransposed(const Param& param, const TensorInfo& tensor) {
  return param.transposed && tensor.type != FileType::kI8;
}

// The tensors of a folder by the name of our parameter.
using Tensors = std::map<std::string, const TensorInfo*>;

Tensors ByOurNames(
    const SafetensorsReader& files, const Family& family, std::vector<std::string>* wrong) {
  Tensors tensors;
  for (const TensorInfo& tensor : files.tensors()) {
    const std::string name = CanonicalName(tensor.name, family);
    if (name.empty() || absl::EndsWith(name, ".weight_scale")) continue;  // read with the weight
    const auto [known, added] = tensors.emplace(name, &tensor);
    if (!added)
      wrong->push_back(
          absl::StrCat(Quote(tensor.name), ": the same tensor as ", Quote(known->second->name)));
  }
  return tensors;
}

// True for the output matrix of a head, which tied models have not.
bool IsOutput(const Param& param) {
  return param.role == Role::kDecoder && param.kind == ParamKind::kWeight;
}

// Prefix of the names of the parameters of an auxiliary model, otherwise "".
std::string PrefixOf(const ModelConfig& config) {
  const std::string& name = config.training.name;
  return name.empty() ? name : name + ".";
}

// True if the files of `config`, which may be that of an auxiliary model, hold the parameter.
bool Stores(const ModelConfig& config, const Param& param) {
  const bool fixed = config.positions.kind == Positions::kSinesFirst;
  if (param.adapter >= 0 || (fixed && param.role == Role::kPositionEmbeddings) ||
      (IsOutput(param) && !config.untied))
    return false;
  const auto has = [&](const ModelConfig& model) {
    return absl::StartsWith(param.name, PrefixOf(model));
  };
  return (has(config) && absl::c_none_of(config.training.auxiliary, has)) ||
         config.shares(param.role);
}

// Name of a parameter in the files.
std::string StoredName(const ModelConfig& config, const Param& param) {
  return std::string(absl::StripPrefix(param.name, PrefixOf(config)));
}

// Returns the parameters that folders may hold more than once, the tied ones of the head and the
// word embeddings, by the names of their copies.
std::map<std::string, ParamId> CopiesOf(const ModelConfig& config, const ParamStore& store) {
  if (!TypeOf(config.head).tied) return {};
  const auto name = [&](Role role, ParamKind kind) {
    return KeyOf(config.Key(role, config.layers), kind).name;
  };
  std::map<std::string, ParamId> copies;
  const ParamId words = FindWeight(store, Role::kWordEmbeddings, -1);
  if (!config.untied) copies[name(Role::kDecoder, ParamKind::kWeight)] = words;
  for (const char* copy : config.family->word_embedding_copies)
    copies[config.family->Fill(copy, 0)] = words;
  if (const ParamId bias = store.Find(name(Role::kDecoderBias, ParamKind::kBias)); bias >= 0)
    copies[name(Role::kDecoder, ParamKind::kBias)] = bias;
  return copies;
}

// True if the output matrix in `store` differs from the word embeddings.
bool OutputDiffers(const ModelConfig& config, const ParamStore& store) {
  const ParamId output = FindWeight(store, Role::kDecoder, config.layers),
                words = FindWeight(store, Role::kWordEmbeddings, -1);
  const auto values = [&](ParamId id) {
    return store.values().subspan(store.param(id).offset, store.param(id).size());
  };
  return output >= 0 && !absl::c_equal(values(output), values(words));
}

// Returns why `tensor` cannot be read into `param` and the `count` - 1 parameters of the same shape
// after it; "" if it can.
std::string ShapeError(const Param& param, const TensorInfo& tensor, int64_t count = 1) {
  constexpr FileType kFloats[] = {
      FileType::kF32, FileType::kF16, FileType::kBf16, FileType::kF64, FileType::kI8};
  std::vector<int64_t> shape = param.shape();
  if (param.transposed && !IsTransposed(param, tensor)) shape = {param.rows, param.cols};
  shape[0] *= count;
  if (tensor.shape != shape) {
    return absl::StrCat(Quote(tensor.name), ": expected shape ", ShapeString(shape), ", found ",
        ShapeString(tensor.shape));
  }
  if (absl::c_linear_search(kFloats, tensor.type)) return "";
  return absl::StrCat(
      Quote(tensor.name), ": type ", NameOf(tensor.type), "; expected floating point");
}

absl::Status Mismatch(const std::string& folder, std::vector<std::string> lines) {
  constexpr size_t kShown = 10;
  const size_t count = lines.size();
  if (count > kShown) lines.resize(kShown), lines.push_back("...");
  return Error(Exit::kMismatch, QuotePath(folder), ": ", count,
      count == 1 ? " tensor does" : " tensors do", " not fit the model:\n  ",
      absl::StrJoin(lines, "\n  "));
}

// Checks a stored output layer against the values it is tied to.
absl::Status CheckTied(const SafetensorsReader& files, const std::string& folder,
    const TensorInfo& stored, const ParamStore& store, ParamId tied) {
  const Param& param = store.param(tied);
  if (const std::string wrong = ShapeError(param, stored); !wrong.empty())
    return Mismatch(folder, {wrong});
  std::vector<float> values(param.size());
  RETURN_IF_ERROR(files.ReadF32(stored.name, absl::MakeSpan(values)));
  if (absl::c_equal(values, store.values().subspan(param.offset, param.size())))
    return absl::OkStatus();
  return Mismatch(folder, {absl::StrCat(Quote(stored.name), ": differs from ", Quote(param.name),
                              ": expected equal values, or tie_word_embeddings false")});
}

// True for a name that is that of a parameter of the first layer but for the number of the layer.
bool IsOfFurtherLayer(const std::string& name, const ParamStore& store) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  const auto number = absl::c_find_if(
      parts, [](const std::string& part) { return absl::c_all_of(part, absl::ascii_isdigit); });
  if (number == parts.end() || *number == "0") return false;
  *number = "0";
  return store.Find(absl::StrJoin(parts, ".")) >= 0;
}

// A tensor to read into parameter `id` and the `count` - 1 after it, which are adjacent.
struct Read {
  ParamId id;
  const TensorInfo* tensor;
  int64_t count;
};

// Finds the tensors of all parameters but the skipped ones; the three projections of attention may
// be one. Adds parameters of the head without a tensor to *report, and other faults to *wrong.
std::vector<Read> ReadsOf(const ModelConfig& config, const ParamStore& store,
    const Tensors& tensors, absl::FunctionRef<bool(const Param&)> skipped, LoadReport* report,
    std::vector<std::string>* wrong) {
  std::vector<Read> reads;
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (skipped(param)) continue;
    const bool projection =
        param.role == Role::kQuery || param.role == Role::kKey || param.role == Role::kValue;
    const auto fused =
        tensors.find(config.family->Fill(config.family->query_key_value, param.layer));
    const bool in_three = projection && fused != tensors.end();
    if (in_three && param.role != Role::kQuery) continue;
    const auto found = in_three ? fused : tensors.find(StoredName(config, param));
    if (found != tensors.end()) {
      reads.push_back({id, found->second, in_three ? 3 : 1});
      if (std::string line = ShapeError(param, *found->second, reads.back().count); !line.empty())
        wrong->push_back(std::move(line));
    } else if (param.layer < config.layers) {
      wrong->push_back(absl::StrCat(
          Quote(param.name), ": missing: expected shape ", ShapeString(param.shape())));
    } else {
      report->missing.push_back(param.name);
    }
  }
  return reads;
}

// Reads the first of `reads` and the matrices adjacent to it, calls f with the values of all, and
// returns the number of reads done.
absl::StatusOr<size_t> ReadLayer(const SafetensorsReader& files, const ParamStore& store,
    absl::Span<const Read> reads, const std::function<void(ParamId, ConstMat)>& f) {
  const Param& first = store.param(reads[0].id);
  std::vector<float> values;
  size_t i = 0;
  do {
    const size_t begin = values.size(), size = reads[i].count * store.param(reads[i].id).size();
    values.resize(begin + size);
    RETURN_IF_ERROR(
        files.ReadF32(reads[i].tensor->name, absl::MakeSpan(values).subspan(begin, size)));
    ++i;
  } while (
      i < reads.size() && store.param(reads[i].id).adjacent && !store.param(reads[i].id).vector);
  f(reads[0].id, View(values.data(), values.size() / first.cols, first.cols));
  return i;
}

// Reads the values of `reads`, except for the `deferred` ones (may be null). Sets *words to the
// read of the word embeddings if they are deferred.
absl::Status ReadValues(const SafetensorsReader& files, const ModelConfig& config,
    absl::Span<const Read> reads, DeferredWeights* deferred, ParamStore* store,
    const Read** words) {
  const bool tied = TypeOf(config.head).tied;
  for (size_t i = 0; i < reads.size(); ++i) {
    const auto& [id, tensor, count] = reads[i];
    const Param& param = store->param(id);
    const bool packs = param.int8 && !param.adjacent && !IsTransposed(param, *tensor);
    if (deferred != nullptr && param.role == Role::kWordEmbeddings && !tied) {
      *words = &reads[i];
    } else if (deferred != nullptr && packs) {
      ASSIGN_OR_RETURN(
          const size_t all, ReadLayer(files, *store, reads.subspan(i), deferred->pack));
      i += all - 1;
    } else {
      const absl::Span<float> to = store->values().subspan(param.offset, count * param.size());
      RETURN_IF_ERROR(files.ReadF32(tensor->name, to));
      if (IsTransposed(param, *tensor))
        absl::c_copy(Transposed(to.data(), param.cols, param.rows), to.begin());
    }
  }
  store->Changed();
  return absl::OkStatus();
}

}  // namespace

bool IsStoredAsInt8(const Param& param, const ModelConfig& config) {
  return param.role == Role::kWordEmbeddings || IsInt8Layer(param, config);
}

std::string WeightsFile(absl::string_view auxiliary) {
  return absl::StrCat("model", auxiliary.empty() ? "" : ".", auxiliary, ".safetensors");
}

absl::Status LoadWeights(const std::string& folder, const ModelConfig& config, ParamStore* store,
    LoadReport* report, const std::vector<std::string>& except, DeferredWeights* deferred) {
  *report = {};
  const bool auxiliary = !config.training.name.empty();
  const auto skipped = [&](const Param& param) {
    return !Stores(config, param) || (auxiliary && config.shares(param.role)) ||
           absl::c_linear_search(except, param.name);
  };
  const std::string path = JoinPath(folder, WeightsFile(config.training.name));
  if (auxiliary && !PathExists(path)) {
    for (ParamId id = 0; id < store->size(); ++id) {
      if (!skipped(store->param(id))) report->missing.push_back(store->param(id).name);
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(SafetensorsReader files,
      auxiliary ? SafetensorsReader::Open(path) : SafetensorsReader::OpenFolder(folder));
  std::vector<std::string> wrong;
  Tensors tensors = ByOurNames(files, *config.family, &wrong);
  const std::map<std::string, ParamId> copies = CopiesOf(config, *store);
  for (const auto& [name, id] : copies) {  // a folder may hold only the copy
    const auto copy = tensors.find(name);
    if (copy == tensors.end()) continue;
    const auto [entry, added] = tensors.emplace(store->param(id).name, copy->second);
    if (!added && config.untied) entry->second = copy->second;  // transformers uses this bias
  }
  if (config.untied) {  // the base of an adapter may be tied
    const auto words =
        tensors.find(store->param(FindWeight(*store, Role::kWordEmbeddings, -1)).name);
    const ParamId output = FindWeight(*store, Role::kDecoder, config.layers);
    if (words != tensors.end()) tensors.emplace(store->param(output).name, words->second);
  }
  const std::vector<Read> reads = ReadsOf(config, *store, tensors, skipped, report, &wrong);
  if (!wrong.empty()) return Mismatch(folder, wrong);
  const Read* words = nullptr;
  RETURN_IF_ERROR(ReadValues(files, config, reads, deferred, store, &words));
  for (const auto& [name, tensor] : tensors) {
    const auto* const whole = tensor;  // clang 14 does not capture structured bindings
    const bool read = absl::c_any_of(reads, [&](const Read& r) { return r.tensor == whole; });
    if (read || store->Find(name) >= 0) continue;
    const auto copy = copies.find(name);
    if (copy == copies.end() && IsOfFurtherLayer(name, *store)) {
      wrong.push_back(absl::StrCat(Quote(tensor->name), ": expected none after the layers that ",
          "config.json has, ", config.layers));
    } else if (copy == copies.end()) {
      report->ignored.push_back(tensor->name);
    } else if (!skipped(store->param(copy->second))) {
      RETURN_IF_ERROR(CheckTied(files, folder, *tensor, *store, copy->second));
    }
  }
  if (!wrong.empty()) return Mismatch(folder, wrong);
  if (words == nullptr) return absl::OkStatus();
  if (words->tensor->type == FileType::kI8) {  // of all rows, before one of them is used
    const int64_t rows = store->param(words->id).rows;
    RETURN_IF_ERROR(files.ReadScales(*words->tensor, 0, rows).status());
  }
  deferred->words = LazyRows(std::move(files), words->tensor->name, store->value(words->id));
  return absl::OkStatus();
}

absl::Status SaveWeights(
    const std::string& folder, const ModelConfig& config, const ParamStore& store) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  std::vector<TensorData> tensors;
  std::vector<std::vector<float>> copies;
  std::list<Int8Matrix> quantized;  // both live until they are written
  ModelConfig stored = config;
  stored.unquantized.clear();
  stored.untied = config.untied && OutputDiffers(config, store);
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (!Stores(stored, param)) continue;
    const std::string name = StoredName(config, param);
    if (config.int8 && IsStoredAsInt8(param, config)) {
      const Int8Matrix& m = quantized.emplace_back(QuantizeMatrix(store.value(id)));
      tensors.push_back({name, {param.rows, param.cols}, FileType::kI8, m.q.data()});
      tensors.push_back({name + "_scale", {param.rows, 1}, FileType::kF32, m.scale.data()});
      continue;
    }
    if (config.int8 && !param.vector)
      stored.unquantized.emplace_back(absl::StripSuffix(name, ".weight"));
    const float* values = store.values().data() + param.offset;
    if (param.transposed)
      values = copies.emplace_back(Transposed(values, param.rows, param.cols)).data();
    tensors.push_back({name, param.shape(), FileType::kF32, values});
  }
  for (const auto& [name, id] : CopiesOf(stored, store)) {  // has no tensor of its own
    const Param& param = store.param(id);
    if (config.int8 && !param.vector)
      stored.unquantized.emplace_back(absl::StripSuffix(name, ".weight"));
    if (stored.untied && name != param.name)  // transformers uses this bias
      tensors.push_back(
          {name, param.shape(), FileType::kF32, store.values().data() + param.offset});
  }
  const std::string& model = config.training.name;
  RETURN_IF_ERROR(ReplaceSafetensors(JoinPath(folder, WeightsFile(model)), tensors));
  for (const ModelConfig& auxiliary : config.training.auxiliary)
    RETURN_IF_ERROR(SaveWeights(folder, auxiliary, store));
  return WriteFileAtomically(
      JoinPath(folder, absl::StrCat(model, model.empty() ? "" : "_", "config.json")),
      FormatConfig(stored));
}

}  // namespace cloze
