// The shape of a model: from a spec, from config.json, to config.json.
#include "encoder/modules/config.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/base/limits.h"
#include "core/base/number.h"
#include "core/tensor/json.h"
#include "proto/spec.h"

namespace cloze {
namespace {

using Json = nlohmann::json;

constexpr char kPost[] = "bert", kRoberta[] = "roberta", kPre[] = "roberta-prelayernorm";
// problem_type of each Problem.
constexpr absl::string_view kProblems[] = {
    "single_label_classification", "multi_label_classification", "regression"};

absl::Status SpecError(absl::string_view what) {
  return Error(Exit::kSpec, absl::StrCat("model.encoder.", what));
}

// One config.json, read field by field. The first thing that is wrong stays in status(); later
// reads do no harm.
class Fields {
 public:
  Fields(const Json& json, absl::string_view path) : json_(json), path_(path) {}

  const absl::Status& status() const { return status_; }

  void Fail(absl::string_view field, absl::string_view what) {
    if (status_.ok())
      status_ = Error(Exit::kData, absl::StrCat(QuotePath(path_), ": ", field, ": ", what));
  }

  // The member, or nullptr when it is missing or null.
  const Json* Find(const char* field) const {
    const auto found = json_.find(field);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  void Integer(const char* field, bool required, int64_t low, int64_t high, int32_t* out) {
    const Json* value = Find(field);
    if (value == nullptr) return required ? Fail(field, "missing") : void();
    const bool fits = value->is_number_unsigned() &&
                      value->get<uint64_t>() >= static_cast<uint64_t>(low) &&
                      value->get<uint64_t>() <= static_cast<uint64_t>(high);
    if (!fits)
      return Fail(field, absl::StrCat(Quote(value->dump(-1, ' ', true)), ", a whole number from ",
                             low, " to ", high, " expected"));
    *out = static_cast<int32_t>(value->get<uint64_t>());
  }

  void Number(const char* field, double low, double high, float* out) {
    const Json* value = Find(field);
    if (value == nullptr) return;
    const bool fits =
        value->is_number() && value->get<double>() >= low && value->get<double>() <= high;
    if (!fits)
      return Fail(field, absl::StrCat(Quote(value->dump(-1, ' ', true)), ", a number from ", low,
                             " to ", high, " expected"));
    *out = static_cast<float>(value->get<double>());
  }

  // "" when it is missing.
  std::string String(const char* field) {
    const Json* value = Find(field);
    if (value == nullptr) return "";
    if (!value->is_string()) Fail(field, "a string expected");
    return value->is_string() ? value->get<std::string>() : "";
  }

  bool Bool(const char* field, bool otherwise) {
    const Json* value = Find(field);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) Fail(field, "true or false expected");
    return value->is_boolean() ? value->get<bool>() : otherwise;
  }

 private:
  const Json& json_;
  std::string path_;
  absl::Status status_;
};

void ReadKind(Fields& fields, ModelConfig* config) {
  const std::string type = fields.String("model_type");
  config->norm = type == kPre ? EncoderSpec::PRE : EncoderSpec::POST;
  config->roberta = type == kRoberta;
  if (type != kPre && type != kPost && type != kRoberta) {
    fields.Fail("model_type",
        type.empty() ? "missing"
                     : absl::StrCat(Quote(type), ", \"", kPost, "\", \"", kRoberta, "\" or \"",
                           kPre, "\" expected; other kinds cannot be loaded"));
  }
  if (fields.Bool("is_decoder", false))
    fields.Fail("is_decoder", "true; only encoders can be loaded");
  if (fields.Bool("add_cross_attention", false))
    fields.Fail("add_cross_attention", "true; only encoders can be loaded");
  const std::string positions = fields.String("position_embedding_type");
  if (!positions.empty() && positions != "absolute") {
    fields.Fail("position_embedding_type",
        absl::StrCat(Quote(positions), ", \"absolute\" expected; other kinds cannot be computed"));
  }
}

void ReadActivation(Fields& fields, ModelConfig* config) {
  static constexpr struct {
    absl::string_view name;
    EncoderSpec::Activation kind;
  } kNames[] = {{"", EncoderSpec::GELU}, {"gelu", EncoderSpec::GELU},
      {"gelu_python", EncoderSpec::GELU}, {"gelu_new", EncoderSpec::GELU_TANH},
      {"gelu_pytorch_tanh", EncoderSpec::GELU_TANH}, {"gelu_fast", EncoderSpec::GELU_TANH},
      {"gelu_accurate", EncoderSpec::GELU_TANH}, {"gelu_python_tanh", EncoderSpec::GELU_TANH},
      {"relu", EncoderSpec::RELU}};
  const std::string name = fields.String("hidden_act");
  for (const auto& known : kNames) {
    if (known.name == absl::string_view(name)) {
      config->activation = known.kind;
      return;
    }
  }
  fields.Fail(
      "hidden_act", absl::StrCat(Quote(name), " cannot be computed; gelu, gelu_new and relu can"));
}

void ReadSizes(Fields& fields, ModelConfig* config) {
  fields.Integer("vocab_size", true, 1, 100'000'000, &config->vocab);
  fields.Integer("hidden_size", true, 1, 16384, &config->hidden);
  fields.Integer("num_hidden_layers", true, 1, 1024, &config->layers);
  fields.Integer("num_attention_heads", true, 1, 1024, &config->heads);
  fields.Integer("intermediate_size", true, 1, 262144, &config->intermediate);
  fields.Integer("max_position_embeddings", true, 1, 1'000'000, &config->max_positions);
  fields.Integer("type_vocab_size", false, 1, 1024, &config->token_types);
  fields.Number("hidden_dropout_prob", 0, 0.999, &config->dropout);
  fields.Number("attention_probs_dropout_prob", 0, 0.999, &config->attention_dropout);
  fields.Number("classifier_dropout", 0, 0.999, &config->classifier_dropout);
  fields.Number("layer_norm_eps", 0, 0.1, &config->norm_epsilon);
  fields.Number("initializer_range", 0, 100, &config->initializer_range);
  config->pad_id = config->like_roberta() ? 1 : 0;  // what transformers takes when it is not set
  fields.Integer("pad_token_id", false, 0, 100'000'000, &config->pad_id);
  if (config->like_roberta()) config->position_offset = config->pad_id + 1;
  if (!fields.status().ok()) return;
  if (config->hidden % config->heads != 0) {
    fields.Fail("num_attention_heads",
        absl::StrCat(config->heads, " does not divide hidden_size ", config->hidden));
  }
  if (config->pad_id >= config->vocab)
    fields.Fail("pad_token_id", absl::StrCat(config->pad_id, ", vocab_size is ", config->vocab));
  if (config->max_tokens() < 3) {
    fields.Fail("max_position_embeddings",
        absl::StrCat(config->max_positions, ", at least ", config->position_offset + 3, " expected",
            config->position_offset > 0 ? "; positions start at pad_token_id + 1" : ""));
  }
}

void ReadHead(Fields& fields, ModelConfig* config) {
  const Json* architectures = fields.Find("architectures");
  std::string name;
  if (architectures != nullptr) {
    const bool strings =
        architectures->is_array() && (architectures->empty() || architectures->front().is_string());
    if (!strings) return fields.Fail("architectures", "a list of class names expected");
    if (!architectures->empty()) name = architectures->front().get<std::string>();
  }
  const auto ends_with = [&](absl::string_view end) {
    return name.size() >= end.size() &&
           name.compare(name.size() - end.size(), end.size(), std::string(end)) == 0;
  };
  if (ends_with("ForMaskedLM") || ends_with("ForPreTraining")) config->head = HeadKind::kMaskedLm;
  if (ends_with("ForSequenceClassification")) config->head = HeadKind::kSequenceClassification;
  if (ends_with("ForTokenClassification")) config->head = HeadKind::kTokenTagging;
  config->pooler = config->head == HeadKind::kSequenceClassification;
}

// What we add for ourselves.
void ReadOwn(Fields& fields, absl::string_view path, ModelConfig* config) {
  const Json* json = fields.Find("cloze");
  if (json == nullptr) return;
  if (!json->is_object()) return fields.Fail("cloze", "an object expected");
  Fields own(*json, path);
  if (own.String("head") == "sequence_classification")
    config->head = HeadKind::kSequenceClassification;
  config->pooler = own.Bool("pooler", config->pooler);
  if (own.String("positions") == "sinusoidal") config->positions = EncoderSpec::SINUSOIDAL;
  own.Number("sinusoid_base", 2, 1e9, &config->sinusoid_base);
  config->crf = own.Bool("crf", false);
  config->viterbi = own.Bool("viterbi", true);
  own.Integer("window", false, 3, 1'000'000, &config->window);
  own.Integer("max_tokens", false, 8, 1'000'000, &config->reading.max_tokens);
  own.Number("threshold", 0, 1, &config->reading.threshold);
  config->reading.pairs = own.Bool("pairs", false);
  const std::string long_texts = absl::AsciiStrToUpper(own.String("long_texts"));
  if (!long_texts.empty() &&
      !SequenceClassificationSpec::LongTexts_Parse(long_texts, &config->reading.long_texts))
    own.Fail("long_texts",
        absl::StrCat(Quote(long_texts), ", head, tail, head_tail or windows expected"));
  if (!own.status().ok()) fields.Fail("cloze", own.status().message());
}

void ReadLabels(Fields& fields, ModelConfig* config) {
  if (config->head != HeadKind::kSequenceClassification && config->head != HeadKind::kTokenTagging)
    return;
  const std::string problem = fields.String("problem_type");
  const bool sequence = config->head == HeadKind::kSequenceClassification;
  const auto* const known =
      std::find(std::begin(kProblems), std::end(kProblems), absl::string_view(problem));
  if (!problem.empty() && (known == std::end(kProblems) || !sequence) && problem != kProblems[0]) {
    return fields.Fail("problem_type",
        absl::StrCat(Quote(problem), ", \"", kProblems[0], "\"",
            sequence ? absl::StrCat(", \"", kProblems[1], "\" or \"", kProblems[2], "\"") : "",
            " expected"));
  }
  if (!problem.empty()) config->problem = static_cast<Problem>(known - std::begin(kProblems));
  const Json* names = fields.Find("id2label");
  int32_t count = 2;  // transformers leaves out two labels of these names
  if (names == nullptr) {
    fields.Integer("num_labels", false, 1, kMaxLabels, &count);
    for (int32_t i = 0; i < count; ++i) config->labels.push_back(absl::StrCat("LABEL_", i));
  } else if (!names->is_object()) {
    return fields.Fail("id2label", "an object of ids and names expected");
  } else if (names->size() > kMaxLabels) {
    return fields.Fail("id2label", absl::StrCat("more than ", kMaxLabels, " labels"));
  } else {
    std::set<std::string> seen;
    for (size_t i = 0; i < names->size(); ++i) {
      const auto entry = names->find(std::to_string(i));
      if (entry == names->end())
        return fields.Fail("id2label",
            absl::StrCat("no \"", i, "\", ids from 0 to ", names->size() - 1, " expected"));
      if (!entry->is_string())
        return fields.Fail("id2label", absl::StrCat("\"", i, "\": a string expected"));
      config->labels.push_back(entry->get<std::string>());
      if (!seen.insert(config->labels.back()).second)
        return fields.Fail("id2label", absl::StrCat(Quote(config->labels.back()), " comes twice"));
    }
  }
  const Json* ids = fields.Find("label2id");
  for (size_t i = 0; ids != nullptr && i < config->labels.size(); ++i) {
    const auto id = ids->find(config->labels[i]);
    const bool same = ids->size() == config->labels.size() && id != ids->end() &&
                      id->is_number_unsigned() && id->get<uint64_t>() == i;
    if (!same)
      return fields.Fail(
          "label2id", absl::StrCat("does not fit id2label at ", Quote(config->labels[i])));
  }
  if (config->labels.empty()) fields.Fail("id2label", "no labels");
  if (!sequence) return;
  const bool one = config->labels.size() == 1;
  if (problem.empty() && one) config->problem = Problem::kRegression;  // as transformers takes it
  if (config->problem == Problem::kSingleLabel && one)
    fields.Fail("id2label", "one label leaves nothing to choose");
  if (config->problem == Problem::kRegression && !one) {
    fields.Fail("id2label",
        absl::StrCat(config->labels.size(),
            " labels, but problem_type is regression; one number can be learned, not more"));
  }
}

// Name of the class of transformers that computes the same.
std::string Architecture(const ModelConfig& config) {
  const std::string family = config.norm == EncoderSpec::PRE ? "RobertaPreLayerNorm"
                             : config.roberta                ? "Roberta"
                                                             : "Bert";
  switch (config.head) {
    case HeadKind::kNone: break;
    case HeadKind::kMaskedLm: return family + "ForMaskedLM";
    case HeadKind::kSequenceClassification:
      if (config.pooler) return family + "ForSequenceClassification";
      break;
    case HeadKind::kTokenTagging: return family + "ForTokenClassification";
  }
  return family + "Model";
}

Json OwnFields(const ModelConfig& config) {
  Json own = Json::object();
  const bool classifier = config.head == HeadKind::kSequenceClassification;
  if (classifier && !config.pooler) own["head"] = "sequence_classification";
  if (config.pooler != classifier) own["pooler"] = config.pooler;
  if (config.head == HeadKind::kTokenTagging) {
    if (config.crf) own["crf"] = true;
    if (!config.viterbi) own["viterbi"] = false;
    if (config.window > 0) own["window"] = config.window;
  }
  if (config.positions == EncoderSpec::SINUSOIDAL)
    own["positions"] = "sinusoidal", own["sinusoid_base"] = Decimal(config.sinusoid_base);
  if (!classifier) return own;
  if (config.reading.max_tokens > 0) own["max_tokens"] = config.reading.max_tokens;
  if (config.reading.long_texts != SequenceClassificationSpec::HEAD)
    own["long_texts"] = absl::AsciiStrToLower(
        SequenceClassificationSpec::LongTexts_Name(config.reading.long_texts));
  if (config.reading.pairs) own["pairs"] = true;
  if (config.problem == Problem::kMultiLabel) own["threshold"] = Decimal(config.reading.threshold);
  return own;
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& given) {
  const EncoderSpec spec = FillSizes(given);
  if (!spec.has_layers() || !spec.has_hidden() || !spec.has_heads() || !spec.has_intermediate()) {
    return SpecError(given.preset() == EncoderSpec::CUSTOM
                         ? "preset: CUSTOM: expected layers, hidden, heads and intermediate"
                         : absl::StrCat("heads: not set, and hidden ", spec.hidden(),
                               " is not a multiple of 64: expected a divisor of hidden"));
  }
  ModelConfig config;
  config.layers = spec.layers();
  config.hidden = spec.hidden();
  config.heads = spec.heads();
  config.intermediate = spec.intermediate();
  if (config.heads < 1 || config.hidden % config.heads != 0) {
    return SpecError(
        absl::StrCat("heads: ", config.heads, " does not divide hidden ", config.hidden));
  }
  config.norm = spec.norm();
  config.position_offset = config.norm == EncoderSpec::PRE ? 1 : 0;
  config.max_positions = spec.max_positions() + config.position_offset;
  config.token_types = spec.token_types();
  config.positions = spec.positions();
  config.sinusoid_base = spec.sinusoid_base();
  config.activation = spec.activation();
  config.norm_epsilon = spec.norm_epsilon();
  config.initializer_range = spec.initializer_range();
  config.query_key_start = spec.query_key_start();
  return config;
}

absl::StatusOr<ModelConfig> ParseConfig(absl::string_view json, absl::string_view path) {
  ASSIGN_OR_RETURN(const Json root, ParseJson(json, path));
  Fields fields(root, path);
  ModelConfig config;
  ReadKind(fields, &config);
  ReadActivation(fields, &config);
  ReadSizes(fields, &config);
  ReadHead(fields, &config);
  ReadOwn(fields, path, &config);
  ReadLabels(fields, &config);
  if (!fields.status().ok()) return fields.status();
  return config;
}

std::string FormatConfig(const ModelConfig& config) {
  Json json = {
      {"architectures", {Architecture(config)}},
      {"attention_probs_dropout_prob", Decimal(config.attention_dropout)},
      {"classifier_dropout", nullptr},
      {"dtype", "float32"},
      {"hidden_act", config.activation == EncoderSpec::GELU   ? "gelu"
                     : config.activation == EncoderSpec::RELU ? "relu"
                                                              : "gelu_new"},
      {"hidden_dropout_prob", Decimal(config.dropout)},
      {"hidden_size", config.hidden},
      {"initializer_range", Decimal(config.initializer_range)},
      {"intermediate_size", config.intermediate},
      {"layer_norm_eps", Decimal(config.norm_epsilon)},
      {"max_position_embeddings", config.max_positions},
      {"model_type", config.norm == EncoderSpec::PRE ? kPre
                     : config.roberta                ? kRoberta
                                                     : kPost},
      {"num_attention_heads", config.heads},
      {"num_hidden_layers", config.layers},
      {"pad_token_id", config.pad_id},
      {"tie_word_embeddings", true},
      {"type_vocab_size", config.token_types},
      {"vocab_size", config.vocab},
  };
  if (config.classifier_dropout >= 0)
    json["classifier_dropout"] = Decimal(config.classifier_dropout);
  Json names = Json::object(),
       ids = Json::object();  // nlohmann's [] on null crashes when memory runs out
  for (size_t i = 0; i < config.labels.size(); ++i)
    names[std::to_string(i)] = config.labels[i], ids[config.labels[i]] = i;
  if (!names.empty()) json["id2label"] = std::move(names), json["label2id"] = std::move(ids);
  if (config.head == HeadKind::kSequenceClassification)
    json["problem_type"] = std::string(kProblems[static_cast<int>(config.problem)]);
  const Json own = OwnFields(config);
  if (!own.empty()) json["cloze"] = own;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string EncoderPrefix(const ModelConfig& config) {
  return config.norm == EncoderSpec::PRE ? "roberta_prelayernorm."
         : config.roberta                ? "roberta."
                                         : "bert.";
}

int LayerOf(const std::string& param, const ModelConfig& config) {
  const std::string prefix = EncoderPrefix(config), layer = prefix + "encoder.layer.";
  if (absl::StartsWith(param, prefix + "embeddings.")) return -1;
  if (absl::StartsWith(param, prefix + "LayerNorm.")) return config.layers - 1;
  int number = config.layers;
  if (absl::StartsWith(param, layer))
    std::from_chars(param.data() + layer.size(), param.data() + param.size(), number);
  return std::clamp(number, 0, config.layers);
}

}  // namespace cloze
