#include "encoder/halves.h"

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "encoder/folder/model_folder.h"

namespace cloze {

absl::Status LoadHalves(const std::string& encoder, const std::string& decoder, uint64_t seed,
    Model* model, std::vector<std::string>* fresh) {
  const ModelConfig& pair = model->config();
  ParamStore& params = model->params();
  std::vector<bool> known(params.size());
  for (const bool decodes : {false, true}) {
    const std::string& folder = decodes ? decoder : encoder;
    ASSIGN_OR_RETURN(ModelConfig config, LoadConfig(folder));
    config.head = decodes ? HeadKind::kMaskedLm : HeadKind::kNone;
    config.pooler = config.crf = false;
    Model half(config, /*training=*/false);
    std::vector<std::string> missing;
    RETURN_IF_ERROR(half.Load(folder, seed, &missing));
    const Family& family = decodes ? *pair.family : *pair.source[0].family;
    for (ParamId from = 0; from < half.params().size(); ++from) {
      const std::string& name = half.params().param(from).name;
      const ParamId to = params.Find(absl::StrCat(family.half,
          decodes ? name : std::string(absl::StripPrefix(name, config.family->prefix))));
      CLOZE_CHECK(to >= 0);
      if (absl::c_linear_search(missing, name)) continue;
      const ConstMat values = half.params().value(from);
      absl::c_copy(absl::MakeSpan(values.f32(), params.param(to).size()), params.value(to).f32());
      known[to] = true;
    }
  }
  bool crosses = false;
  for (ParamId id = 0; id < params.size(); ++id) {
    if (known[id]) continue;
    params.Initialize(id, seed, pair.initializer_range);
    const bool cross = params.param(id).layer < pair.layers;
    if (!cross || !std::exchange(crosses, true))
      fresh->push_back(cross ? "the decoder's attention to the encoder" : params.param(id).name);
  }
  params.Changed();
  return absl::OkStatus();
}

}  // namespace cloze
