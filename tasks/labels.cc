#include "tasks/labels.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "proto/spec.h"
#include "tasks/tags.h"

namespace cloze {
namespace {

constexpr char kTwoPasses[] = "labels are collected in a first pass",
               kListLabels[] = "or list all `labels` in the spec";

// Adds a label; kData when it can hardly be one.
absl::Status Collect(absl::string_view where, absl::string_view field, const std::string& label,
    std::set<std::string>* labels) {
  const auto wrong = [&](const auto&... what) {
    return Error(Exit::kData, where, ": ", field, ": ", what...);
  };
  if (label.empty()) return wrong("an empty label");
  if (label.size() > kMaxLabelBytes)
    return wrong("a label of ", label.size(), " bytes, \"", Quote(label), "\": expected at most ",
        kMaxLabelBytes, " bytes (is it the right column?)");
  if (!IsUtf8(label)) return wrong("the label \"", Quote(label), "\" is not UTF-8");
  labels->insert(label);
  if (labels->size() <= kMaxLabels) return absl::OkStatus();
  return wrong("more than ", kMaxLabels, " different labels (is it the right column?)");
}

absl::StatusOr<std::vector<std::string>> Sorted(const DataSpec& data, absl::string_view field,
    const std::set<std::string>& set, size_t least = 2, int64_t examples = 0) {
  std::vector<std::string> labels(set.begin(), set.end());
  if (labels.size() < least) {
    const std::string where =
        absl::StrCat(QuotePath(data.files(0)), data.files_size() > 1 ? ", ...: " : ": ");
    if (labels.empty() && examples > 0)
      return Error(Exit::kData, where, field, ": no labels in ", Counted(examples, "example"),
          ": expected at least one (is it the right column?)");
    if (labels.empty()) return Error(Exit::kData, where, "no examples", PartOfSplit(data));
    return Error(Exit::kData, where, field, ": found only ", ListNames(labels),
        ": expected at least ", least, " different labels",
        SplitShare(data) > 0 ? PartOfSplit(data) : " (is it the right column?)");
  }
  std::map<std::string, double> values;
  for (const std::string& label : labels) {
    double value = 0;
    if (!ParseDecimal(label, &value)) return labels;
    values[label] = value;
  }
  std::stable_sort(labels.begin(), labels.end(),
      [&](const std::string& a, const std::string& b) { return values[a] < values[b]; });
  return labels;
}

// Returns the number of values in `labels` if all are 0 or 1; else -1.
int64_t CountBits(const std::vector<std::string>& labels) {
  int64_t count = 0;
  for (const std::string& label : labels) {
    for (const absl::string_view value :
        absl::StrSplit(label, absl::ByAnyChar(" \t,;|[](){}'\""), absl::SkipEmpty())) {
      const bool number = (value[0] == '0' || value[0] == '1') &&
                          (value.size() == 1 || value[1] == '.') &&
                          value.find_first_not_of('0', 2) == absl::string_view::npos;
      if (!number && !absl::EqualsIgnoreCase(value, "true") &&
          !absl::EqualsIgnoreCase(value, "false"))
        return -1;
      ++count;
    }
  }
  return count;
}

}  // namespace

void LabelVectors::Add(const std::vector<std::string>& labels) {
  const int64_t length = CountBits(labels);
  if (texts_++ == 0) length_ = length;
  if (length < 2 || length != length_) length_ = -1;
}

absl::Status LabelVectors::Check(absl::string_view where) const {
  if (length_ < 2) return absl::OkStatus();
  return Error(Exit::kData, where, ": label_field: each of ", Counted(texts_, "text"), " has ",
      length_, " values 0 or 1: expected the names of its labels, such as [\"spam\", ",
      "\"urgent\"] (write the names of the labels whose value is 1)");
}

Labels LabelsToRead(const SequenceClassificationSpec& task) {
  return task.kind() == SequenceClassificationSpec::MULTI_LABEL  ? Labels::kSeveral
         : task.kind() == SequenceClassificationSpec::REGRESSION ? Labels::kNumber
                                                                 : Labels::kRequired;
}

LabelRule LabelRuleOf(const SequenceClassificationSpec& task) {
  LabelRule rule = {task.label_separator(), task.trim_labels()};
  for (const std::string& entry : task.label_map()) {
    if (const auto parsed = ParseLabelMap(entry)) rule.names.insert(*parsed);
  }
  return rule;
}

absl::StatusOr<std::vector<std::string>> LearnClassLabels(
    const DataSpec& data, const SequenceClassificationSpec& task, const std::atomic<bool>* stop) {
  const bool several = task.kind() == SequenceClassificationSpec::MULTI_LABEL;
  RETURN_IF_ERROR(RequireFiles(data, kTwoPasses, kListLabels));
  ASSIGN_OR_RETURN(TextReader reader,
      TextReader::Open(data, LabelsToRead(task), /*keep_lines=*/false, LabelRuleOf(task)));
  std::set<std::string> labels;
  LabelVectors vectors;
  TextExample example;
  int64_t examples = 0;
  while (true) {
    RETURN_IF_ERROR(CheckStopped(stop, "reading the labels"));
    ASSIGN_OR_RETURN(const bool more, reader.Next(&example));
    if (!more) break;
    ++examples;
    const std::vector<std::string> names = several ? LabelsOf(example, task.label_separator())
                                                   : std::vector<std::string>{example.label};
    for (const std::string& label : names)
      RETURN_IF_ERROR(Collect(reader.Where(example.line), "label_field", label, &labels));
    if (several) vectors.Add(names);
  }
  RETURN_IF_ERROR(vectors.Check(QuoteInput(data.files(0))));
  return Sorted(data, "label_field", labels, several ? 1 : 2, examples);
}

absl::StatusOr<std::vector<std::string>> LearnTags(
    const DataSpec& data, const std::atomic<bool>* stop) {
  RETURN_IF_ERROR(RequireFiles(data, kTwoPasses, kListLabels));
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kRequired));
  std::set<std::string> labels, as_iob2;
  Iob1Finder iob1;
  TaggedSentence sentence;
  while (true) {
    RETURN_IF_ERROR(CheckStopped(stop, "reading the labels"));
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence));
    if (!more) return Sorted(data, "tags_field", iob1.Found(true) ? as_iob2 : labels);
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      RETURN_IF_ERROR(
          Collect(reader.Where(sentence.lines[i]), "tags_field", sentence.tags[i], &labels));
    }
    iob1.Add(sentence.tags);
    Iob1ToIob2(&sentence.tags);
    as_iob2.insert(sentence.tags.begin(), sentence.tags.end());
  }
}

absl::StatusOr<LabelIds> LabelIds::Create(const std::vector<std::string>& labels) {
  LabelIds ids;
  ids.labels_ = labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].empty()) return Error(Exit::kSpec, "labels: label ", i + 1, " is empty");
    if (!ids.ids_.emplace(labels[i], i).second)
      return Error(Exit::kSpec, "labels: \"", Quote(labels[i]), "\" is given twice");
  }
  return ids;
}

absl::StatusOr<int32_t> LabelIds::IdOf(const std::string& label, absl::string_view field,
    absl::FunctionRef<std::string()> where) const {
  const auto it = ids_.find(label);
  if (it != ids_.end()) return it->second;
  return Error(Exit::kData, where(), ": ", field, ": unknown label \"", Quote(label),
      "\": expected ", ListNames(labels_),
      " (to learn another one, list all `labels` in the spec)");
}

absl::StatusOr<int32_t> FoundLabels::IdOf(const std::string& label, Where where) {
  if (!evaluates_ || ids_.Has(label)) return ids_.IdOf(label, "label_field", where);
  const auto [unseen, added] = unseen_.try_emplace(label, unseen_.size());
  if (unseen->second < kMaxLabels) return static_cast<int32_t>(ids_.size()) + unseen->second;
  return Error(Exit::kData, where(), ": label_field: more than ", kMaxLabels,
      " labels that the model does not have (is it the right column?)");
}

absl::StatusOr<std::vector<float>> FoundLabels::ValuesOf(
    const std::vector<std::string>& labels, Where where) {
  vectors_.Add(labels);
  std::vector<float> values(ids_.size() + evaluates_);
  std::set<std::string> known;
  std::string repeated;
  for (const std::string& label : labels) {
    if (!known.insert(label).second) repeated = label;
    if (evaluates_ && !ids_.Has(label)) {
      unseen_.try_emplace(label, unseen_.size());
      values.back() = 1;
      continue;
    }
    const absl::StatusOr<int32_t> id = ids_.IdOf(label, "label_field", where);
    if (!id.ok()) RETURN_IF_ERROR(vectors_.Check(where()));
    RETURN_IF_ERROR(id.status());
    values[*id] = 1;
  }
  if (known.size() < labels.size() && repeating_++ == 0)
    first_repeat_ = absl::StrCat(where(), " has \"", Quote(repeated), "\" twice");
  return values;
}

absl::StatusOr<bool> FoundLabels::Finish(absl::string_view file) const {
  if (!unseen_.empty()) RETURN_IF_ERROR(vectors_.Check(QuoteInput(file)));
  return false;
}

std::vector<std::string> FoundLabels::Unseen() const {
  std::vector<std::string> labels;
  for (const auto& [label, number] : unseen_) labels.push_back(label);
  return labels;
}

std::string FoundLabels::Repeats() const {
  if (repeating_ == 0) return "";
  return absl::StrCat(
      Counted(repeating_, "text"), " with a label that is given twice: ", first_repeat_);
}

}  // namespace cloze
