#include "tasks/inference/explainer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/algorithm/container.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr size_t kVariants = 1024;  // that pass through the model together
constexpr size_t kMaxCarriers = 5;  // of an entity or a word
constexpr double kMinEffect = 0.001;

// Words that are left out together: one, or a run of a long text.
struct WordRun {
  bool second = false;         // of the second text of a pair
  Span bytes, chars;           // in that text; not of words without a text
  size_t first = 0, last = 0;  // words of a tagger, both included
  std::string text;
};

// The words of a text, or of words without a text.
std::vector<WordRun> RunsOf(const Tokenizer* tokenizer, const Record& record) {
  std::vector<WordRun> parts;
  const auto add = [&](const std::string& text, bool second) {
    for (const TextWord& word : WordsOfText(*tokenizer, text))
      parts.push_back(
          {second, word.bytes, word.chars, parts.size(), parts.size(), Slice(text, word.bytes)});
  };
  if (record.kind == Record::Kind::kWords) {
    for (const std::string& word : record.words)
      parts.push_back({false, {}, {}, parts.size(), parts.size(), word});
  } else if (record.kind != Record::Kind::kIds) {
    add(record.text, false);
    if (record.kind == Record::Kind::kPair) add(record.text_pair, true);
  }
  return parts;
}

// Joins neighbours until there are at most `most` parts; those of two texts stay apart.
std::vector<WordRun> Joined(std::vector<WordRun> words, const Record& record, size_t most) {
  if (words.size() <= most) return words;
  const size_t run = (words.size() + most - 2) / (most - 1);
  std::vector<WordRun> parts;
  size_t length = run;
  for (WordRun& word : words) {
    if (length == run || parts.back().second != word.second) {
      parts.push_back(std::move(word));
      length = 1;
      continue;
    }
    WordRun& part = parts.back();
    part.bytes.end = word.bytes.end, part.chars.end = word.chars.end, part.last = word.last;
    part.text = record.kind == Record::Kind::kWords
                    ? absl::StrCat(part.text, " ", word.text)
                    : Slice(word.second ? record.text_pair : record.text, part.bytes);
    ++length;
  }
  return parts;
}

// Returns the text without the part and the space before it.
std::string Without(const std::string& text, Span bytes) {
  const int64_t begin = bytes.begin - (bytes.begin > 0 && text[bytes.begin - 1] == ' ');
  return text.substr(0, begin) + text.substr(bytes.end);
}

// Returns the record, and then for each part the record without it.
std::vector<Record> Variants(const Record& record, bool tags, const std::vector<WordRun>& words,
    const std::vector<WordRun>& parts) {
  Record whole = record;
  if (tags) {  // an empty word becomes <unk>
    whole.kind = Record::Kind::kWords;
    whole.words.clear();
    for (const WordRun& word : words) whole.words.push_back(word.text);
  }
  std::vector<Record> records(parts.size() + 1, whole);
  for (size_t p = 0; p < parts.size(); ++p) {
    Record& variant = records[p + 1];
    if (tags) {
      for (size_t w = parts[p].first; w <= parts[p].last; ++w) variant.words[w].clear();
      continue;
    }
    std::string& text = parts[p].second ? variant.text_pair : variant.text;
    text = Without(text, parts[p].bytes);
  }
  return records;
}

double Rounded(double effect) { return std::round(effect * 1e6) / 1e6; }

// The members of a part in an explanation, without its effect.
OrderedJson RunJson(const WordRun& part, Record::Kind kind) {
  OrderedJson json = {{"text", part.text}};
  if (kind == Record::Kind::kPair) json["field"] = part.second ? "text_pair" : "text";
  if (kind == Record::Kind::kWords) {
    json["word"] = part.first;
  } else {
    json.update(OffsetsJson(part.bytes, part.chars));
  }
  return json;
}

// The effects of the parts of a record on the probabilities of its answers.
class Effects {
 public:
  Effects(std::vector<WordRun> parts, Record::Kind kind, std::vector<std::string> labels,
      std::vector<std::vector<float>> probabilities)
      : parts_(std::move(parts)), kind_(kind), labels_(std::move(labels)),
        probabilities_(std::move(probabilities)) {}

  // The effect of a part on the label of a row.
  double Of(size_t part, size_t row, size_t label) const {
    const size_t at = row * labels_.size() + label;
    return double(probabilities_[0][at]) - probabilities_[part + 1][at];
  }
  size_t LabelOf(const OrderedJson& name) const {
    return absl::c_find(labels_, name.get<std::string>()) - labels_.begin();
  }

  OrderedJson Label(const OrderedJson& name) const {
    OrderedJson list = OrderedJson::array();
    for (size_t p = 0; p < parts_.size(); ++p) {
      list.push_back(RunJson(parts_[p], kind_));
      list.back()["effect"] = Rounded(Of(p, 0, LabelOf(name)));
    }
    return list;
  }
  OrderedJson Several(const OrderedJson& names) const {
    std::vector<size_t> labels;
    for (const OrderedJson& name : names) labels.push_back(LabelOf(name));
    const std::vector<float>& all = probabilities_[0];
    if (labels.empty()) labels.push_back(std::max_element(all.begin(), all.end()) - all.begin());
    OrderedJson list = OrderedJson::array();
    for (size_t p = 0; p < parts_.size(); ++p) {
      list.push_back(RunJson(parts_[p], kind_));
      for (const size_t label : labels)
        list.back()["effects"][labels_[label]] = Rounded(Of(p, 0, label));
    }
    return list;
  }
  // The parts with the largest effects on the mean probability of the rows' labels.
  OrderedJson Tags(absl::Span<const std::pair<size_t, size_t>> rows_and_labels) const {
    std::vector<std::pair<double, size_t>> effects;
    for (size_t p = 0; p < parts_.size(); ++p) {
      double sum = 0;
      for (const auto& [row, label] : rows_and_labels) sum += Of(p, row, label);
      effects.emplace_back(sum / std::max<size_t>(rows_and_labels.size(), 1), p);
    }
    absl::c_stable_sort(effects,
        [](const auto& a, const auto& b) { return std::fabs(a.first) > std::fabs(b.first); });
    OrderedJson list = OrderedJson::array();
    for (const auto& [effect, p] : effects) {
      if (list.size() == kMaxCarriers || std::fabs(effect) < kMinEffect) break;
      list.push_back(RunJson(parts_[p], kind_));
      list.back()["effect"] = Rounded(effect);
    }
    return list;
  }

 private:
  const std::vector<WordRun> parts_;
  const Record::Kind kind_;
  const std::vector<std::string> labels_;
  const std::vector<std::vector<float>> probabilities_;  // of the record, then without each part
};

// Adds the explanations of a tagger's answer to a text, whose words these are.
void AddToTags(const Effects& effects, const std::vector<WordRun>& words, OrderedJson* answer) {
  if (answer->contains("tags")) {
    OrderedJson lists = OrderedJson::array();
    for (size_t w = 0; w < words.size(); ++w) {
      const OrderedJson& tag = (*answer)["tags"][w];
      lists.push_back(
          tag == "O" ? OrderedJson::array() : effects.Tags({{w, effects.LabelOf(tag)}}));
    }
    (*answer)["explanation"] = std::move(lists);
    return;
  }
  OrderedJson& tagged = (*answer)["words"];
  if (!answer->contains("entities")) {
    for (size_t w = 0; w < words.size(); ++w)
      tagged[w]["explanation"] = effects.Tags({{w, effects.LabelOf(tagged[w]["label"])}});
    return;
  }
  for (OrderedJson& entity : (*answer)["entities"]) {
    std::vector<std::pair<size_t, size_t>> rows;
    for (size_t w = 0; w < words.size(); ++w) {
      const Span bytes = words[w].bytes;
      if (bytes.begin >= entity["byte_start"].get<int64_t>() &&
          bytes.end <= entity["byte_end"].get<int64_t>())
        rows.emplace_back(w, effects.LabelOf(tagged[w]["label"]));
    }
    entity["explanation"] = effects.Tags(rows);
  }
}

bool HasTags(const OrderedJson& answer) {
  return answer.contains("tags") || answer.contains("words");
}

// A text whose variants wait to pass through the model.
struct Explained {
  const Record* record;
  OrderedJson* answer;
  std::vector<WordRun> words, parts;
};

absl::Status ExplainWaiting(
    Predictor& predictor, absl::Span<const Record> variants, std::vector<Explained>& waiting) {
  std::vector<std::vector<float>> all;
  RETURN_IF_ERROR(predictor.Probabilities(variants, /*source=*/{},
      [&](size_t, absl::StatusOr<std::vector<float>> p) { all.push_back(*std::move(p)); }));
  auto next = std::make_move_iterator(all.begin());
  for (auto& [record, answer, words, parts] : waiting) {
    const auto first = next;
    next += std::ssize(parts) + 1;
    if (first->empty())
      return Error(
          Exit::kMismatch, "adapter \"", record->adapter, "\": its answers cannot be explained");
    ASSIGN_OR_RETURN(const int adapter, predictor.session().AdapterNamed(record->adapter));
    const Effects effects(
        std::move(parts), record->kind, predictor.session().config(adapter).labels, {first, next});
    if (HasTags(*answer)) {
      AddToTags(effects, words, answer);
    } else if (answer->contains("labels")) {
      (*answer)["explanation"] = effects.Several((*answer)["labels"]);
    } else {
      (*answer)["explanation"] = effects.Label((*answer)["label"]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Explainer> Explainer::Create(Predictor* predictor) {
  const std::string& task = predictor->task().name();
  if (task == "sequence_classification" || task == "token_tagging") return Explainer(predictor);
  return Error(Exit::kMismatch, QuotePath(predictor->session().folder()), " has a head for ", task,
      ": answers of classifiers, regressions and taggers can be explained");
}

void Explainer::AddEmpty(OrderedJson* answer) const {
  if (!HasTags(*answer)) (*answer)["explanation"] = OrderedJson::array();
}

absl::Status Explainer::Explain(absl::Span<const Record> records, absl::Span<OrderedJson> answers) {
  std::vector<Explained> waiting;
  std::vector<Record> variants;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Record& record = records[i];
    if (answers[i].contains("error")) continue;
    AddEmpty(&answers[i]);
    if (record.kind == Record::Kind::kIds || IsEmpty(record)) continue;
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, predictor_->session().TokenizerOr());
    std::vector<WordRun> words = RunsOf(tokenizer, record);
    if (words.empty()) continue;
    shortened_ += std::ssize(words) > kMaxParts;
    std::vector<WordRun> parts = Joined(words, record, kMaxParts);
    for (Record& variant : Variants(record, HasTags(answers[i]), words, parts))
      variants.push_back(std::move(variant));
    waiting.push_back({&record, &answers[i], std::move(words), std::move(parts)});
    if (variants.size() < kVariants) continue;
    RETURN_IF_ERROR(ExplainWaiting(*predictor_, variants, waiting));
    waiting.clear(), variants.clear();
  }
  return ExplainWaiting(*predictor_, variants, waiting);
}

}  // namespace cloze
