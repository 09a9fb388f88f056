// The routes of OpenAI's API.
#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "tools/serve/fields.h"

namespace cloze {
namespace {

// An id of another vocabulary would be a wrong token of ours.
absl::Status CheckNoIds(const Json& input) {
  const auto has_number = [](const Json& list) {
    return list.is_array() && absl::c_any_of(list, [](const Json& x) { return x.is_number(); });
  };
  if (!has_number(input) && !(input.is_array() && absl::c_any_of(input, has_number)))
    return absl::OkStatus();
  return Error(Exit::kData,
      "input: token ids of another vocabulary: expected texts (in LangChain's OpenAIEmbeddings, "
      "set check_embedding_ctx_length=False)");
}

// Returns the vector as JSON: a list, or its bytes, little-endian f32, in base64.
std::string Spelled(const std::vector<float>& values, bool base64) {
  if (!base64) return JsonOfVector(values);
  const absl::string_view bytes(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return absl::StrCat("\"", absl::Base64Escape(bytes), "\"");
}

}  // namespace

absl::StatusOr<Work> ReadEmbeddings(const ServeContext& context, const Json& body) {
  Work work;
  ASSIGN_OR_RETURN(work.model, ModelField(context, body, kEmbedding));
  RETURN_IF_ERROR(CheckNoIds(JsonMember(body, "input")));
  ASSIGN_OR_RETURN(auto texts, TextsField(context, body, "input"));
  ASSIGN_OR_RETURN(const std::string encoding, StringField(body, "encoding_format"));
  if (encoding != "" && encoding != "float" && encoding != "base64")
    return Error(
        Exit::kData, "encoding_format: \"", Quote(encoding), "\": expected float or base64");
  const Engine& engine = *work.model.engine;
  ASSIGN_OR_RETURN(work.operation.options.dimensions,
      IntegerField(body, "dimensions", 0, 1, engine.dimensions()));
  ASSIGN_OR_RETURN(work.records, RecordsOf(work.model, body, "input", std::move(texts)));
  work.operation.embed = true;
  work.operation.options.normalize = true;
  int64_t tokens = 0;
  for (const Record& record : work.records) {
    ASSIGN_OR_RETURN(const Encoding encoded, engine.Tokenize(record));
    tokens += std::min<int64_t>(std::ssize(encoded.ids), engine.max_tokens());
  }
  work.format = [name = work.model.name, tokens, base64 = encoding == "base64"](
                    const std::vector<Outcome>& outcomes) {
    std::string out = "{\"object\": \"list\", \"data\": [";
    for (size_t i = 0; i < outcomes.size(); ++i)
      absl::StrAppend(&out, i == 0 ? "" : ", ", "{\"object\": \"embedding\", \"index\": ", i,
          ", \"embedding\": ", Spelled(outcomes[i].values, base64), "}");
    return absl::StrCat(out, "], \"model\": ", JsonString(name),
        ", \"usage\": {\"prompt_tokens\": ", tokens, ", \"total_tokens\": ", tokens, "}}");
  };
  return work;
}

absl::StatusOr<Work> ReadModels(const ServeContext& context, const Json&) {
  OrderedJson data = OrderedJson::array();
  for (const ServedModel& model : context.models->All())
    data.push_back(
        {{"id", model.name}, {"object", "model"}, {"created", 0}, {"owned_by", "cloze"}});
  return Immediate(ToJsonLine({{"object", "list"}, {"data", data}}));
}

}  // namespace cloze
