// The members of config.json that describe the head and its labels.
#include <set>

#include "absl/strings/match.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

void ReadClass(JsonFields& fields, ModelConfig* config) {
  const Json* classes = fields.Find("architectures");
  if (classes == nullptr) return;
  if (classes->is_array() && classes->empty()) return;
  if (!classes->is_array() || !classes->front().is_string())
    return fields.Fail("architectures", "expected a list of class names");
  const std::string name = classes->front().get<std::string>();
  for (const HeadType& type : kHeadTypes) {
    if (absl::EndsWith(name, type.class_suffix)) config->head = type.kind;
  }
  const Family& family = *config->family;
  HeadKind& head = config->head;
  if (family.joined.encoder != nullptr) {
    head = name == family.joined.class_name ? HeadKind::kSequenceToSequence : HeadKind::kNone;
  } else if ((head == HeadKind::kCausalLm) != config->attention.causal ||
             head == HeadKind::kSequenceToSequence) {
    head = HeadKind::kNone;
  }
  // The other classes of this name have a masked-LM head.
  if (head == HeadKind::kReplacedTokens && !config->has(Role::kDiscriminatorOutput))
    head = HeadKind::kMaskedLm;
  config->pooler = TypeOf(config->head).pooler;
}

// The object "cloze", which transformers ignores: our members, then those of the task.
void ReadOwn(JsonFields& fields, ModelConfig* config) {
  const Json* json = fields.Find("cloze");
  if (json == nullptr) return;
  if (!json->is_object()) return fields.Fail("cloze", "expected an object");
  JsonFields ours = fields.Part("cloze", *json);
  if (ours.String("head") == "sequence_classification")
    config->head = HeadKind::kSequenceClassification;
  if (config->head != HeadKind::kReplacedTokens)
    config->pooler = ours.Bool("pooler", config->pooler);
  if (const std::string pooling = ours.String("pooling"); !pooling.empty()) {
    config->pooling = pooling == "mean" ? Pool::kMean : Pool::kMax;
    if (pooling != "mean" && pooling != "max")
      ours.Fail("pooling", Quote(pooling), ": expected \"mean\" or \"max\"");
  }
  if (ours.String("positions") == "sinusoidal") config->positions.kind = Positions::kSinusoidal;
  ours.Number("sinusoid_base", 2, 1e9, &config->positions.sinusoid_base);
  config->crf = ours.Bool("crf", false) && config->head == HeadKind::kTokenTagging;
  config->task_fields = *json;
  for (const char* known : {"head", "pooler", "pooling", "positions", "sinusoid_base", "crf"})
    config->task_fields.erase(known);
  fields.Take(ours.status());
}

// id2label, or num_labels, or two labels.
void ReadNames(JsonFields& fields, ModelConfig* config) {
  const Json* names = fields.Find("id2label");
  if (names == nullptr) {
    int32_t count = 2;  // transformers omits two labels of these names
    fields.Integer("num_labels", false, 1, kMaxLabels, &count);
    for (int32_t i = 0; i < count; ++i) config->labels.push_back(absl::StrCat("LABEL_", i));
    return;
  }
  const auto fail = [&](const auto&... what) { fields.Fail("id2label", what...); };
  if (!names->is_object()) return fail("expected an object of ids and names");
  if (names->empty()) return fail("no labels");
  if (names->size() > kMaxLabels) return fail("more than ", kMaxLabels, " labels");
  std::set<std::string> seen;
  for (size_t i = 0; i < names->size(); ++i) {
    const auto entry = names->find(std::to_string(i));
    if (entry == names->end())
      return fail("no \"", i, "\": expected ids from 0 to ", names->size() - 1);
    if (!entry->is_string()) return fail("\"", i, "\": expected a string");
    config->labels.push_back(entry->get<std::string>());
    if (config->labels.back().size() > kMaxLabelBytes)
      return fail("\"", i, "\": expected at most ", kMaxLabelBytes, " bytes");
    if (!seen.insert(config->labels.back()).second)
      return fail(Quote(config->labels.back()), " is given twice");
  }
}

void ReadLabels(JsonFields& fields, ModelConfig* config) {
  if (!TypeOf(config->head).labelled) return;
  ReadNames(fields, config);
  config->problem_type = fields.String("problem_type");
}

// True if the class of transformers reads something else of a text.
bool PoolsOtherwise(const ModelConfig& config) {
  return TypeOf(config.head).per_text && config.pooling != Pool::kClass &&
         !(config.pooling == Pool::kMean && config.classifiers_pool_mean);
}

// Name of the class of transformers that computes the same, or of its encoder.
std::string ClassOf(const ModelConfig& config) {
  if (config.head == HeadKind::kSequenceToSequence) return config.family->joined.class_name;
  const HeadType& type = TypeOf(config.head);
  const bool other = (type.pooler && !config.pooler) || PoolsOtherwise(config);
  const HeadType& known = other ? TypeOf(HeadKind::kNone) : type;
  return absl::StrCat(config.family->classes, known.class_suffix);
}

Json OwnFields(const ModelConfig& config) {
  Json ours = config.task_fields;
  const bool classifier = config.head == HeadKind::kSequenceClassification;
  if (classifier && (!config.pooler || PoolsOtherwise(config)))
    ours["head"] = "sequence_classification";
  if (PoolsOtherwise(config)) ours["pooling"] = config.pooling == Pool::kMean ? "mean" : "max";
  // The pooler of folders of another class is none unless this says so.
  if (config.pooler != (TypeOf(config.head).pooler && !PoolsOtherwise(config)))
    ours["pooler"] = config.pooler;
  if (config.head == HeadKind::kTokenTagging && config.crf) ours["crf"] = true;
  if (config.positions.kind == Positions::kSinusoidal)
    ours["positions"] = "sinusoidal",
    ours["sinusoid_base"] = Decimal(config.positions.sinusoid_base);
  return ours;
}

}  // namespace

void ReadHead(JsonFields& fields, ModelConfig* config) {
  ReadClass(fields, config);
  ReadOwn(fields, config);
  ReadLabels(fields, config);
}

void WriteHead(const ModelConfig& config, Json* json) {
  (*json)["architectures"] = {ClassOf(config)};
  // nlohmann's [] on null crashes when memory runs out.
  Json names = Json::object(), ids = Json::object();
  for (size_t i = 0; i < config.labels.size(); ++i)
    names[std::to_string(i)] = config.labels[i], ids[config.labels[i]] = i;
  if (!names.empty()) (*json)["id2label"] = std::move(names), (*json)["label2id"] = std::move(ids);
  if (TypeOf(config.head).per_text) {
    (*json)["problem_type"] = !config.problem_type.empty() ? config.problem_type
                              : config.labels.size() == 1  ? "regression"
                                                           : "single_label_classification";
  }
  const Json ours = OwnFields(config);
  if (!ours.empty()) (*json)["cloze"] = ours;
}

}  // namespace cloze
