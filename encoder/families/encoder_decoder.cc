// Encoder-decoders that begin as two encoders (Rothe et al. 2020, "BERT2BERT"), as
// transformers' EncoderDecoderModel: config.json and the names of tensors hold both models, the
// decoder with attention to the encoder in each block. The two share no parameters.
#include <map>

#include "absl/algorithm/container.h"
#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kCrossNames[] = {
    {Role::kCrossQuery, "@encoder.layer.#.crossattention.self.query"},
    {Role::kCrossKey, "@encoder.layer.#.crossattention.self.key"},
    {Role::kCrossValue, "@encoder.layer.#.crossattention.self.value"},
    {Role::kCrossOutput, "@encoder.layer.#.crossattention.output.dense"},
    {Role::kCrossNorm, "@encoder.layer.#.crossattention.output.LayerNorm"},
};

// A family as that of an encoder and, if it can be, of a decoder.
struct JoinedFamilies {
  Family encoder, decoder;
};

JoinedFamilies JoinedFamiliesFrom(const Family& family) {
  JoinedFamilies pair = {family, family};
  pair.encoder.joined.prefix = "encoder.", pair.encoder.prefix = "";
  pair.decoder.joined.prefix = "decoder.";
  pair.decoder.joined.class_name = "EncoderDecoderModel";
  if (family.joined.can_be_decoder) {
    *absl::c_find_if(pair.decoder.names, [](const auto& part) { return part.empty(); }) =
        kCrossNames;
  }
  for (Family* part : {&pair.encoder, &pair.decoder}) part->joined.standalone = &family;
  return pair;
}

// Returns these of a family, or null if it is a decoder.
const JoinedFamilies* JoinedFamiliesOf(const Family* family) {
  static const auto& all = *[] {
    auto* made = new std::map<const Family*, JoinedFamilies>();
    for (const Family* each : kFamilies)
      if (!each->architecture.attention.causal) made->emplace(each, JoinedFamiliesFrom(*each));
    return made;
  }();
  const auto found = all.find(family);
  return found == all.end() ? nullptr : &found->second;
}

// Returns the model_types of the families that can be decoders.
std::vector<std::string> DecoderNames() {
  std::vector<std::string> names;
  for (const Family* family : kFamilies)
    if (family->joined.can_be_decoder) names.emplace_back(family->model_type);
  return names;
}

// Makes a model a part of an encoder-decoder: without labels and what a task stores.
void AsPart(const Family& family, HeadKind head, ModelConfig* config) {
  config->family = &family;
  config->head = head;
  config->pooler = config->crf = config->untied = false;
  config->labels.clear();
  config->problem_type.clear();
  config->task_fields = Json::object();
}

// config.json of a part as a model of its own.
Json FormatPart(const ModelConfig& part, HeadKind head) {
  ModelConfig config = part;
  AsPart(*part.family->joined.standalone, head, &config);
  config.encoder = nullptr;
  config.int8 = config.is_encoder = false;
  return Json::parse(FormatConfig(config));
}

}  // namespace

absl::StatusOr<ModelConfig> JoinEncoderDecoder(ModelConfig encoder, ModelConfig decoder) {
  const auto wrong = [](const auto&... what) { return Error(Exit::kMismatch, what...); };
  const JoinedFamilies *first = JoinedFamiliesOf(encoder.family),
                       *second = JoinedFamiliesOf(decoder.family);
  if (first == nullptr)
    return wrong("the encoder is of the family ", encoder.family->model_type,
        ": expected an encoder, such as bert");
  if (second == nullptr || !decoder.family->joined.can_be_decoder)
    return wrong("the decoder is of the family ", decoder.family->model_type, ": expected ",
        ListOr(DecoderNames()));
  if (encoder.hidden != decoder.hidden || encoder.vocab != decoder.vocab)
    return wrong("the encoder has hidden ", encoder.hidden, " and ", encoder.vocab,
        " tokens, the decoder ", decoder.hidden, " and ", decoder.vocab,
        ": expected the same sizes");
  if (encoder.int8 || decoder.int8)
    return wrong("a quantized part: expected floating-point weights");
  AsPart(first->encoder, HeadKind::kNone, &encoder);
  AsPart(second->decoder, HeadKind::kSequenceToSequence, &decoder);
  encoder.is_encoder = true;
  decoder.attention.causal = decoder.attention.cross = true;
  decoder.encoder = std::make_shared<const ModelConfig>(std::move(encoder));
  return decoder;
}

namespace {

// Single ids of bad_words_ids; longer sequences are an error.
void ReadBanned(JsonFields& fields, std::vector<int32_t>* banned) {
  const Json* words = fields.Find("bad_words_ids");
  if (words == nullptr) return;
  const auto is_id = [](const Json& word) {
    return word.is_array() && word.size() == 1 && word.front().is_number_unsigned() &&
           word.front().get<uint64_t>() <= kMaxTokenId;
  };
  if (!words->is_array()) return fields.Fail("bad_words_ids", "expected a list");
  for (const Json& word : *words) {
    if (!is_id(word))
      return fields.Fail("bad_words_ids", "expected lists of one id (not supported)");
    banned->push_back(word.front().get<int32_t>());
  }
}

}  // namespace

void ReadGeneration(JsonFields& fields, GenerationConfig* generation) {
  fields.Integer("forced_bos_token_id", false, 0, kMaxTokenId, &generation->forced_first_id);
  fields.Integer("forced_eos_token_id", false, 0, kMaxTokenId, &generation->forced_last_id);
  ReadBanned(fields, &generation->banned);
  fields.Integer("min_length", false, 0, kMaxTokenId, &generation->min_length);
  fields.Integer("min_new_tokens", false, 0, kMaxTokenId, &generation->min_new_tokens);
  fields.Integer("no_repeat_ngram_size", false, 0, kMaxTokenId, &generation->no_repeat_ngram);
}

void CheckTokenIds(JsonFields& fields, const ModelConfig& config, int32_t vocab) {
  const GenerationConfig& generation = config.generation;
  std::vector<int32_t> ids = generation.banned;
  ids.insert(ids.end(),
      {config.end_id, generation.start_id, generation.forced_first_id, generation.forced_last_id});
  if (const int32_t id = *absl::c_max_element(ids); id >= vocab)
    fields.Fail("vocab_size", vocab, ": expected more than ", id, ", the id of a token");
}

void WriteGeneration(const GenerationConfig& generation, Json* json) {
  const auto id = [](int32_t id) { return id < 0 ? Json() : Json(id); };
  (*json)["forced_bos_token_id"] = id(generation.forced_first_id);
  (*json)["forced_eos_token_id"] = id(generation.forced_last_id);
  Json banned = Json::array();
  for (const int32_t token : generation.banned) banned.push_back(Json::array({token}));
  if (!banned.empty()) (*json)["bad_words_ids"] = std::move(banned);
  for (const auto& [key, value] : {std::pair("min_length", generation.min_length),
           std::pair("min_new_tokens", generation.min_new_tokens),
           std::pair("no_repeat_ngram_size", generation.no_repeat_ngram)})
    if (value > 0) (*json)[key] = value;
}

absl::StatusOr<ModelConfig> ParseEncoderDecoder(const Json& root, absl::string_view path) {
  JsonFields fields(root, path);
  std::vector<ModelConfig> parts;
  for (const char* name : {"encoder", "decoder"}) {
    Json part = JsonMember(root, name);
    if (!part.is_object()) fields.Fail(name, "expected an object");
    RETURN_IF_ERROR(fields.status());
    for (const char* member : {"is_decoder", "add_cross_attention"}) {
      const bool decodes = name == absl::string_view("decoder");
      JsonFields part_fields = fields.Part(name, part);
      if (part_fields.Bool(member, false) != decodes)
        part_fields.Fail(member, "expected ", decodes ? "true" : "false");
      RETURN_IF_ERROR(part_fields.status());
      part.erase(member);
    }
    part["architectures"] = Json::array();
    ASSIGN_OR_RETURN(
        ModelConfig config, ParseConfig(ToJsonText(part), absl::StrCat(path, ": ", name)));
    parts.push_back(std::move(config));
  }
  auto joined = JoinEncoderDecoder(std::move(parts[0]), std::move(parts[1]));
  if (!joined.ok()) return Error(Exit::kData, QuotePath(path), ": ", joined.status().message());
  const int32_t most = joined->vocab - 1;
  fields.Integer("pad_token_id", false, 0, most, &joined->pad_id);
  fields.Integer("eos_token_id", false, 0, most, &joined->end_id);
  fields.Integer("decoder_start_token_id", false, 0, most, &joined->generation.start_id);
  ReadGeneration(fields, &joined->generation);
  CheckTokenIds(fields, *joined, joined->vocab);
  // transformers gives padding a position of its own.
  if (joined->positions.after_pad && joined->generation.start_id == joined->pad_id)
    fields.Fail(
        "decoder_start_token_id", "is pad_token_id: expected another token (not supported)");
  if (const Json* cloze = fields.Find("cloze"); cloze != nullptr && cloze->is_object())
    joined->task_fields = *cloze;
  ReadQuantization(fields, &*joined);
  CheckSearch(fields);
  const Json* tied =
      fields.Find("tie_word_embeddings");  // of encoder and decoder: see JoinEncoderDecoder
  if (tied != nullptr && !tied->is_boolean()) fields.Fail("tie_word_embeddings", "expected true");
  std::vector<absl::string_view> known = CommonMembers();
  known.insert(known.end(), {"encoder", "decoder", "vocab_size"});
  fields.AllowOnlyUnset(known);
  RETURN_IF_ERROR(fields.status());
  return joined;
}

Json FormatEncoderDecoder(const ModelConfig& config) {
  Json decoder = FormatPart(config, HeadKind::kMaskedLm);
  decoder["is_decoder"] = decoder["add_cross_attention"] = true;
  Json json = {{"architectures", {config.family->joined.class_name}}, {"dtype", "float32"},
      {"model_type", kEncoderDecoderType}, {"is_encoder_decoder", true},
      {"pad_token_id", config.pad_id}, {"tie_word_embeddings", true}, {"vocab_size", config.vocab},
      {"encoder", FormatPart(*config.encoder, HeadKind::kNone)}, {"decoder", std::move(decoder)}};
  if (config.end_id >= 0) json["eos_token_id"] = config.end_id;
  if (config.generation.start_id >= 0) json["decoder_start_token_id"] = config.generation.start_id;
  WriteGeneration(config.generation, &json);
  if (!config.task_fields.empty()) json["cloze"] = config.task_fields;
  if (config.int8) WriteQuantization(config, &json);
  return json;
}

}  // namespace cloze
