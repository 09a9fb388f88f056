// Pairs of an encoder and a decoder that begin as two encoders (Rothe et al. 2020, "BERT2BERT"), as
// transformers' EncoderDecoderModel: config.json and the names of tensors hold both models, the
// decoder with attention to the encoder in each block. The halves share no parameters.
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

struct Halves {
  Family encoder, decoder;  // the decoder is only for families that decode in pairs
};

Halves MakeHalves(const Family& family) {
  Halves halves = {family, family};
  halves.encoder.half = "encoder.", halves.encoder.prefix = "";
  halves.decoder.half = "decoder.";
  halves.decoder.causal = true;
  halves.decoder.source_class = "EncoderDecoderModel";
  if (family.decodes_in_pairs) {
    *absl::c_find_if(halves.decoder.names, [](const auto& part) { return part.empty(); }) =
        kCrossNames;
  }
  for (Family* half : {&halves.encoder, &halves.decoder}) half->plain = &family;
  return halves;
}

// Returns the halves of a family, or null if it is a decoder.
const Halves* HalvesOf(const Family* family) {
  static const auto& all = *[] {
    auto* made = new std::map<const Family*, Halves>();
    for (const Family* each : kFamilies)
      if (!each->causal) made->emplace(each, MakeHalves(*each));
    return made;
  }();
  const auto found = all.find(family);
  return found == all.end() ? nullptr : &found->second;
}

// Returns the model_types of the families that decode in pairs.
std::vector<std::string> DecoderNames() {
  std::vector<std::string> names;
  for (const Family* family : kFamilies)
    if (family->decodes_in_pairs) names.emplace_back(family->model_type);
  return names;
}

// Makes a half of a model: without head, labels and what a task stores.
void Strip(const Family& family, HeadKind head, ModelConfig* config) {
  config->family = &family;
  config->head = head;
  config->pooler = config->crf = config->untied = false;
  config->labels.clear();
  config->problem_type.clear();
  config->task_fields = Json::object();
}

// config.json of a half as a model of its own.
Json FormatHalf(const ModelConfig& half, HeadKind head) {
  ModelConfig config = half;
  Strip(*half.family->plain, head, &config);
  config.source.clear();
  config.int8 = config.is_source = false;
  return Json::parse(FormatConfig(config));
}

}  // namespace

absl::StatusOr<ModelConfig> PairOf(ModelConfig encoder, ModelConfig decoder) {
  const auto wrong = [](const auto&... what) { return Error(Exit::kMismatch, what...); };
  const Halves *first = HalvesOf(encoder.family), *second = HalvesOf(decoder.family);
  if (first == nullptr)
    return wrong("the encoder is of the family ", encoder.family->model_type,
        ": expected an encoder, such as bert");
  if (second == nullptr || !decoder.family->decodes_in_pairs)
    return wrong("the decoder is of the family ", decoder.family->model_type, ": expected ",
        ListOr(DecoderNames()));
  if (encoder.hidden != decoder.hidden || encoder.vocab != decoder.vocab)
    return wrong("the encoder has hidden ", encoder.hidden, " and ", encoder.vocab,
        " tokens, the decoder ", decoder.hidden, " and ", decoder.vocab,
        ": expected the same sizes");
  if (encoder.int8 || decoder.int8)
    return wrong("a quantized half: expected floating-point weights");
  Strip(first->encoder, HeadKind::kNone, &encoder);
  Strip(second->decoder, HeadKind::kSequenceToSequence, &decoder);
  encoder.is_source = true;
  decoder.source = {std::move(encoder)};
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

void ReadForcedTokens(JsonFields& fields, GenerationConfig* generation) {
  fields.Integer("forced_bos_token_id", false, 0, kMaxTokenId, &generation->forced_first_id);
  fields.Integer("forced_eos_token_id", false, 0, kMaxTokenId, &generation->forced_last_id);
  ReadBanned(fields, &generation->banned);
}

void CheckTokenIds(JsonFields& fields, const ModelConfig& config, int32_t vocab) {
  const GenerationConfig& generation = config.generation;
  std::vector<int32_t> ids = generation.banned;
  ids.insert(ids.end(),
      {config.end_id, generation.start_id, generation.forced_first_id, generation.forced_last_id});
  if (const int32_t id = *absl::c_max_element(ids); id >= vocab)
    fields.Fail("vocab_size", vocab, ": expected more than ", id, ", the id of a token");
}

void WriteForcedTokens(const GenerationConfig& generation, Json* json) {
  const auto id = [](int32_t id) { return id < 0 ? Json() : Json(id); };
  (*json)["forced_bos_token_id"] = id(generation.forced_first_id);
  (*json)["forced_eos_token_id"] = id(generation.forced_last_id);
  Json banned = Json::array();
  for (const int32_t token : generation.banned) banned.push_back(Json::array({token}));
  if (!banned.empty()) (*json)["bad_words_ids"] = std::move(banned);
}

absl::StatusOr<ModelConfig> ParsePair(const Json& root, absl::string_view path) {
  JsonFields fields(root, path);
  std::vector<ModelConfig> halves;
  for (const char* name : {"encoder", "decoder"}) {
    Json half = JsonMember(root, name);
    if (!half.is_object()) fields.Fail(name, "expected an object");
    RETURN_IF_ERROR(fields.status());
    for (const char* member : {"is_decoder", "add_cross_attention"}) {
      const bool decodes = name == absl::string_view("decoder");
      JsonFields own = fields.Part(name, half);
      if (own.Bool(member, false) != decodes)
        own.Fail(member, "expected ", decodes ? "true" : "false");
      RETURN_IF_ERROR(own.status());
      half.erase(member);
    }
    half["architectures"] = Json::array();
    ASSIGN_OR_RETURN(
        ModelConfig config, ParseConfig(ToJsonText(half), absl::StrCat(path, ": ", name)));
    halves.push_back(std::move(config));
  }
  auto pair = PairOf(std::move(halves[0]), std::move(halves[1]));
  if (!pair.ok()) return Error(Exit::kData, QuotePath(path), ": ", pair.status().message());
  const int32_t most = pair->vocab - 1;
  fields.Integer("pad_token_id", false, 0, most, &pair->pad_id);
  fields.Integer("eos_token_id", false, 0, most, &pair->end_id);
  fields.Integer("decoder_start_token_id", false, 0, most, &pair->generation.start_id);
  ReadForcedTokens(fields, &pair->generation);
  CheckTokenIds(fields, *pair, pair->vocab);
  // transformers gives padding a position of its own.
  if (pair->family->positions_after_pad && pair->generation.start_id == pair->pad_id)
    fields.Fail(
        "decoder_start_token_id", "is pad_token_id: expected another token (not supported)");
  if (const Json* own = fields.Find("cloze"); own != nullptr && own->is_object())
    pair->task_fields = *own;
  ReadQuantization(fields, &*pair);
  CheckSearch(fields);
  const Json* tied = fields.Find("tie_word_embeddings");  // of encoder and decoder: see PairOf
  if (tied != nullptr && !tied->is_boolean()) fields.Fail("tie_word_embeddings", "expected true");
  std::vector<absl::string_view> known = CommonMembers();
  known.insert(known.end(), {"encoder", "decoder", "vocab_size"});
  fields.AllowOnlyUnset(known);
  RETURN_IF_ERROR(fields.status());
  return pair;
}

Json FormatPair(const ModelConfig& config) {
  Json decoder = FormatHalf(config, HeadKind::kMaskedLm);
  decoder["is_decoder"] = decoder["add_cross_attention"] = true;
  Json json = {{"architectures", {config.family->source_class}}, {"dtype", "float32"},
      {"model_type", kPairType}, {"is_encoder_decoder", true}, {"pad_token_id", config.pad_id},
      {"tie_word_embeddings", true}, {"vocab_size", config.vocab},
      {"encoder", FormatHalf(config.source[0], HeadKind::kNone)}, {"decoder", std::move(decoder)}};
  if (config.end_id >= 0) json["eos_token_id"] = config.end_id;
  if (config.generation.start_id >= 0) json["decoder_start_token_id"] = config.generation.start_id;
  WriteForcedTokens(config.generation, &json);
  if (!config.task_fields.empty()) json["cloze"] = config.task_fields;
  if (config.int8) WriteQuantization(config, &json);
  return json;
}

}  // namespace cloze
