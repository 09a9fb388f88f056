// The routes of text-embeddings-inference.
#include <algorithm>
#include <cmath>

#include "tools/serve/fields.h"

namespace cloze {
namespace {

// Members of the answers of classifiers.
constexpr absl::string_view kLabels[] = {"label", "labels"};

// Return logits, the first less a constant that is the same for all labels.
double Log(double probability) { return std::log(std::max(probability, 1e-38)); }
double LogOdds(double probability) { return Log(probability) - Log(1 - probability); }

// Returns {"score", "label"} of each label, the largest score first. `raw`: logits.
OrderedJson Predictions(const OrderedJson& answer, bool raw) {
  std::vector<std::pair<double, std::string>> scores;
  if (const auto all = answer.find("scores"); all != answer.end()) {
    for (const auto& [label, score] : all->items()) {
      const double value = score.get<double>();
      const bool several = answer.contains("labels");  // each with a probability of its own
      scores.emplace_back(!raw ? value : several ? LogOdds(value) : Log(value), label);
    }
  } else {
    scores.emplace_back(answer["score"].get<double>(), answer["label"].get<std::string>());
  }
  const auto larger = [](const auto& a, const auto& b) { return a.first > b.first; };
  std::stable_sort(scores.begin(), scores.end(), larger);
  OrderedJson out = OrderedJson::array();
  for (const auto& [score, label] : scores) out.push_back({{"score", score}, {"label", label}});
  return out;
}

// Returns how well a text fits to the query: the output or, of two labels, the probability of the
// second; `raw`: the output as it is, or the logarithm of the odds. Other outputs become
// probabilities by the logistic function.
absl::StatusOr<double> Relevance(const OrderedJson& answer, bool raw) {
  const auto scores = answer.find("scores");
  if (scores == answer.end()) {
    const double output = answer["score"].get<double>();
    return raw ? output : 1 / (1 + std::exp(-output));
  }
  if (scores->size() != 2)
    return Error(Exit::kData, "model: ", scores->size(),
        " labels: expected one with a number as output, or two labels");
  const double second = scores->back().get<double>();
  return raw ? LogOdds(second) : second;
}

absl::Status AddInput(const ServedModel& model, const Json& body, const Json& input, size_t number,
    std::vector<Record>* records) {
  const bool list = input.is_array() && (input.size() == 1 || input.size() == 2) &&
                    input.front().is_string() && input.back().is_string();
  if (!input.is_string() && !list)
    return Error(Exit::kData,
        "inputs: expected a text, a pair [text, text], or a list of [text] and [text, text]");
  Record record;
  record.text = (list ? input.front() : input).get<std::string>();
  if (list && input.size() == 2) {
    record.kind = Record::Kind::kPair;
    record.text_pair = input.back().get<std::string>();
  }
  return AddRecord(model, body, "inputs", number, std::move(record), records);
}

absl::StatusOr<Work> ReadVectors(const ServeContext& context, const Json& body, bool tokens) {
  Work work;
  ASSIGN_OR_RETURN(work.model, ModelField(context, body, kEmbedding));
  ASSIGN_OR_RETURN(auto texts, TextsField(context, body, "inputs"));
  ASSIGN_OR_RETURN(work.records, RecordsOf(work.model, body, "inputs", std::move(texts)));
  work.operation.embed = true;
  EmbedOptions& options = work.operation.options;
  options.tokens = tokens;
  if (!tokens) {
    ASSIGN_OR_RETURN(options.normalize, BoolField(body, "normalize", true));
    ASSIGN_OR_RETURN(options.dimensions,
        IntegerField(body, "dimensions", 0, 1, work.model.engine->dimensions()));
  }
  ASSIGN_OR_RETURN(options.prompt, StringField(body, "prompt_name"));
  work.format = [tokens](const std::vector<Outcome>& outcomes) {
    std::string out = "[";
    for (const Outcome& outcome : outcomes)
      absl::StrAppend(&out, out.size() == 1 ? "" : ",",
          tokens ? JsonOfVectors(outcome) : JsonOfVector(outcome.values));
    return out + "]";
  };
  return work;
}

}  // namespace

absl::StatusOr<Work> ReadEmbed(const ServeContext& context, const Json& body) {
  return ReadVectors(context, body, false);
}

absl::StatusOr<Work> ReadEmbedAll(const ServeContext& context, const Json& body) {
  return ReadVectors(context, body, true);
}

absl::StatusOr<Work> ReadSimilarity(const ServeContext& context, const Json& body) {
  Work work;
  ASSIGN_OR_RETURN(work.model, ModelField(context, body, kEmbedding));
  const Json& inputs = JsonMember(body, "inputs");
  const Json& source = JsonMember(inputs, "source_sentence");
  if (!source.is_string())
    return Error(Exit::kData, "inputs: expected {\"source_sentence\": text, \"sentences\": [...]}");
  ASSIGN_OR_RETURN(auto texts, TextsField(context, inputs, "sentences"));
  texts.insert(texts.begin(), source.get<std::string>());
  ASSIGN_OR_RETURN(work.records, RecordsOf(work.model, body, "inputs", std::move(texts)));
  work.operation.embed = true;
  work.operation.options.normalize = true;
  ASSIGN_OR_RETURN(work.operation.options.prompt, StringField(body, "prompt_name"));
  work.format = [](const std::vector<Outcome>& outcomes) {
    std::vector<float> cosines;
    for (const Outcome& outcome : absl::MakeSpan(outcomes).subspan(1))
      cosines.push_back(static_cast<float>(Dot(outcomes[0].values, outcome.values)));
    return JsonOfVector(cosines);
  };
  return work;
}

absl::StatusOr<Work> ReadPredict(const ServeContext& context, const Json& body) {
  Work work;
  ASSIGN_OR_RETURN(work.model, ModelField(context, body, kClassifier, /*only=*/true));
  const Json& inputs = JsonMember(body, "inputs");
  if (inputs.is_array() && inputs.empty())
    return Refuse(Refusal::kEmpty, "inputs: empty: expected a text");
  const bool batch = inputs.is_array() && inputs.front().is_array();
  const Json list = batch ? inputs : Json::array({inputs});
  RETURN_IF_ERROR(CheckCount(context, "inputs", list.size()));
  for (size_t i = 0; i < list.size(); ++i)
    RETURN_IF_ERROR(AddInput(work.model, body, list[i], batch ? i + 1 : 0, &work.records));
  ASSIGN_OR_RETURN(const bool raw, BoolField(body, "raw_scores", false));
  work.format = [batch, raw](const std::vector<Outcome>& outcomes) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(CheckAnswers(outcomes, kLabels));
    OrderedJson out = OrderedJson::array();
    for (const Outcome& outcome : outcomes) out.push_back(Predictions(outcome.answer, raw));
    return ToJsonLine(batch ? out : out[0]);
  };
  return work;
}

absl::StatusOr<Work> ReadRerank(const ServeContext& context, const Json& body) {
  Work work;
  ASSIGN_OR_RETURN(work.model, ModelField(context, body, kClassifier, /*only=*/true));
  ASSIGN_OR_RETURN(const std::string query, StringField(body, "query"));
  if (query.empty()) return Error(Exit::kData, "query: missing: expected a text");
  ASSIGN_OR_RETURN(const auto texts, TextsField(context, body, "texts"));
  ASSIGN_OR_RETURN(work.records, RecordsOf(work.model, body, "texts", texts, &query));
  ASSIGN_OR_RETURN(const bool raw, BoolField(body, "raw_scores", false));
  ASSIGN_OR_RETURN(const bool text, BoolField(body, "return_text", false));
  work.format = [=](const std::vector<Outcome>& outcomes) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(CheckAnswers(outcomes, kLabels));
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      ASSIGN_OR_RETURN(const double relevance, Relevance(outcomes[i].answer, raw));
      order.emplace_back(-relevance, i);
    }
    std::sort(order.begin(), order.end());
    OrderedJson out = OrderedJson::array();
    for (const auto& [negative, i] : order) {
      OrderedJson rank = {{"index", i}};
      if (text) rank["text"] = texts[i];
      rank["score"] = -negative;
      out.push_back(std::move(rank));
    }
    return ToJsonLine(out);
  };
  return work;
}

}  // namespace cloze
