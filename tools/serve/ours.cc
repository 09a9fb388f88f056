// /tag, /fill-mask, and POST / for a model of any kind, as @huggingface/inference calls it.
#include "tools/serve/fields.h"

namespace cloze {
namespace {

// Reads texts of the member "inputs". The body is form(answer), or a list of these; answers of the
// kind have `member`.
absl::StatusOr<Work> ReadTexts(const ServeContext& context, const Json& body,
    absl::Span<const absl::string_view> kinds, absl::string_view member,
    OrderedJson (*form)(const Record& record, OrderedJson answer)) {
  Work work;
  ASSIGN_OR_RETURN(work.model, ModelField(context, body, kinds, /*only=*/true));
  bool list;
  ASSIGN_OR_RETURN(auto texts, TextsField(context, body, "inputs", &list));
  ASSIGN_OR_RETURN(work.records, RecordsOf(work.model, body, "inputs", std::move(texts)));
  ASSIGN_OR_RETURN(const int64_t top, IntegerField(body, "top_k", 5, 1, 1000));
  work.operation.top = static_cast<int>(top);
  work.format = [list, form, member, records = work.records](
                    const std::vector<Outcome>& outcomes) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(CheckAnswers(outcomes, {member}));
    OrderedJson out = OrderedJson::array();
    for (size_t i = 0; i < outcomes.size(); ++i)
      out.push_back(form(records[i], outcomes[i].answer));
    return ToJsonLine(list ? out : out[0]);
  };
  return work;
}

OrderedJson AsItIs(const Record&, OrderedJson answer) { return answer; }

// Returns the entities or, if the labels are no spans, the words, in the form of transformers.
OrderedJson Entities(const Record&, OrderedJson answer) {
  if (answer.contains("entities")) return answer["entities"];
  OrderedJson out = OrderedJson::array();
  for (const OrderedJson& word : answer["words"])
    out.push_back({{"entity_group", word["label"]}, {"score", word["score"]},
        {"word", word["text"]}, {"start", word["start"]}, {"end", word["end"]}});
  return out;
}

// Returns the fillings of a mask, or a list of them for each of several masks.
OrderedJson Fillings(const Record& record, OrderedJson answer) {
  OrderedJson out = OrderedJson::array();
  size_t at = 0;
  for (const OrderedJson& mask : answer["masks"]) {
    const std::string& text = record.text;
    const size_t begin = std::min(text.find("[MASK]", at), text.find("<mask>", at));
    OrderedJson fillings = OrderedJson::array();
    for (const OrderedJson& filling : mask) {
      std::string sequence = text;
      if (begin != text.npos) sequence.replace(begin, 6, filling["token"].get<std::string>());
      fillings.push_back({{"sequence", sequence}, {"score", filling["score"]},
          {"token", filling["id"]}, {"token_str", filling["token"]}});
    }
    out.push_back(std::move(fillings));
    at = begin == text.npos ? at : begin + 6;
  }
  return out.size() == 1 ? out[0] : out;
}

absl::StatusOr<Work> ReadQuestion(const ServeContext&, const Json& body, ServedModel model) {
  Work work;
  const Json& inputs = JsonMember(body, "inputs");
  ASSIGN_OR_RETURN(const std::string question, StringField(inputs, "question"));
  ASSIGN_OR_RETURN(std::string context, StringField(inputs, "context"));
  if (question.empty() || context.empty())
    return Error(Exit::kData, "inputs: expected {\"question\": text, \"context\": text}");
  ASSIGN_OR_RETURN(work.records, RecordsOf(model, body, "inputs", {std::move(context)}, &question));
  work.model = std::move(model);
  work.format = [](const std::vector<Outcome>& outcomes) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(CheckAnswers(outcomes, {"answer"}));
    OrderedJson answer = outcomes[0].answer;
    if (answer["answer"].is_null()) answer.update({{"answer", ""}, {"start", 0}, {"end", 0}});
    return ToJsonLine(answer);
  };
  return work;
}

}  // namespace

absl::StatusOr<Work> ReadTag(const ServeContext& context, const Json& body) {
  return ReadTexts(context, body, kTagger, "words", AsItIs);
}

absl::StatusOr<Work> ReadFillMask(const ServeContext& context, const Json& body) {
  return ReadTexts(context, body, kMaskedLm, "masks", AsItIs);
}

absl::StatusOr<Work> ReadByKind(const ServeContext& context, const Json& body) {
  ASSIGN_OR_RETURN(const ServedModel model, ModelField(context, body, {}));
  const std::string& kind = model.engine->kind();
  const Json& inputs = JsonMember(body, "inputs");
  if (kind == kTagger[0]) return ReadTexts(context, body, kTagger, "words", Entities);
  if (kind == kMaskedLm[0]) return ReadTexts(context, body, kMaskedLm, "masks", Fillings);
  if (kind == "question_answering") return ReadQuestion(context, body, model);
  if (kind != kClassifier[0])
    return inputs.is_object() ? ReadSimilarity(context, body) : ReadEmbed(context, body);
  if (!inputs.is_string()) return ReadPredict(context, body);
  Json listed = body;  // a list of predictions for each text, also for one
  listed["inputs"] = Json::array({Json::array({inputs})});
  return ReadPredict(context, listed);
}

}  // namespace cloze
