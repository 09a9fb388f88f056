#include "encoder/families/model_config.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_replace.h"
#include "core/ops/matmul.h"

namespace cloze {
namespace {

// True if `param` is the weight of a linear layer of a block.
bool IsBlockWeight(const Param& param) {
  constexpr Role kRoles[] = {Role::kQuery, Role::kKey, Role::kValue, Role::kQueryKeyValue,
      Role::kAttentionOutput, Role::kGate, Role::kIntermediate, Role::kOutput};
  return param.kind == ParamKind::kWeight && !param.vector &&
         absl::c_linear_search(kRoles, param.role);
}

// Returns the key of a module in a model that stands by itself.
ParamKey StandaloneKey(const ModelConfig& config, Role role, int layer) {
  const bool head = role == Role::kHeadOutput;
  const bool transformed = head && !config.transform_always;
  if (transformed) return {TypeOf(config.head).output, role, layer};
  if (config.sharing.groups == 0 || layer < 0 || layer >= config.layers)
    return {config.family->Name(head ? Role::kPooledOutput : role, layer), role, layer};
  const int size = config.layers / config.sharing.groups, group = layer / size,
            block = layer % config.sharing.blocks_per_layer;
  return {.name = config.family->Name(role, group, block),
      .role = role,
      .layer = (group + 1) * size - config.sharing.blocks_per_layer + block,
      .shared = layer % size >= config.sharing.blocks_per_layer};
}

}  // namespace

std::string Family::Fill(const char* name, int layer, int inner) const {
  return joined.prefix + absl::StrReplaceAll(name, {{"@", prefix}, {"#", absl::StrCat(layer)},
                                                       {"&", absl::StrCat(inner)}});
}

std::string Family::Name(Role role, int layer, int inner) const {
  for (const absl::Span<const RoleName> part : names) {
    for (const RoleName& entry : part) {
      if (entry.role == role) return Fill(entry.name, layer, inner);
    }
  }
  return "";
}

bool ModelConfig::shares(Role role) const {
  return training.shares_embeddings && role >= Role::kWordEmbeddings &&
         role <= Role::kEmbeddingsNorm;
}

ParamKey ModelConfig::Key(Role role, int layer) const {
  ParamKey key = StandaloneKey(*this, role, layer);
  if (!training.name.empty()) {
    if (shares(role)) {
      key.shared = true;
    } else if (!key.name.empty()) {
      key.name = absl::StrCat(training.name, ".", key.name);
    }
  }
  if (is_encoder) {
    key.layer -= layers + 1;
    key.shared |= role == Role::kWordEmbeddings && family->joined.standalone == nullptr;
  }
  return key;
}

Encoder NewEncoder(ParamStore* store, const ModelConfig& config) {
  const auto key = [&](Role role, int layer) { return config.Key(role, layer); };
  Encoder encoder(store, config, key);
  for (ParamId id = 0; config.family->transposed && id < store->size(); ++id)
    if (IsBlockWeight(store->param(id))) store->Edit(id).transposed = true;
  return encoder;
}

Backbone NewBackbone(ParamStore* store, const ModelConfig& config) {
  Encoder encoder = NewEncoder(store, config);
  if (config.encoder == nullptr) return Backbone(std::move(encoder));
  return Backbone(EncoderDecoder(NewEncoder(store, *config.encoder), std::move(encoder)));
}

Head NewHead(ParamStore* store, const ModelConfig& config, ParamId word_embeddings) {
  const auto key = [&](Role role, int layer) { return config.Key(role, layer); };
  return Head(store, config, key, word_embeddings);
}

bool IsInt8Layer(const Param& param, const ModelConfig& config) {
  return IsBlockWeight(param) && param.adapter < 0 && param.cols <= kInt8MaxDepth &&
         absl::c_none_of(config.unquantized,
             [&](const std::string& module) { return param.name == module + ".weight"; });
}

}  // namespace cloze
