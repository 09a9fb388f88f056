#include "tasks/jobs/data_check.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/text.h"
#include "tasks/data_duplicates.h"
#include "tasks/data_summary.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/run_inputs.h"

namespace cloze {
namespace {

OrderedJson PartOf(const DataStats& stats, const DataDuplicates::SplitCounts& found,
    const StoreContent& content, const std::vector<std::string>& labels) {
  OrderedJson part = SummaryOf(stats, content, labels);
  part["repeated"] = found.repeated;
  part["conflicting"] = found.conflicting;
  return part;
}

std::string Bar(int64_t count, int64_t most) {
  return std::string((30 * count + most - 1) / std::max<int64_t>(most, 1), '#');
}

// Names the labels of one or two examples, unless all labels have few.
std::vector<std::string> RareLabels(
    const StoreContent& train, const std::vector<std::string>& labels) {
  const bool few = std::none_of(
      train.classes.begin(), train.classes.end(), [](int64_t count) { return count >= 4; });
  std::vector<std::string> lines;
  for (const int64_t count : {1, 2}) {
    std::vector<std::string> rare;
    for (size_t i = 0; i < labels.size() && !few; ++i) {
      if (train.classes[i] == count) rare.push_back(labels[i]);
    }
    if (!rare.empty())
      lines.push_back(
          absl::StrCat("train: only ", count == 1 ? "one example" : "two examples", ": label ",
              ListNames(rare), " (add examples, remove them, or join labels with label_map)"));
  }
  return lines;
}

// Returns a line that says how a spec merges labels which differ only in case or white space.
std::vector<std::string> MergingLabels(const StoreContent& train, const RunInputs& inputs) {
  const std::vector<std::string>& labels = inputs.config.labels;
  if (!inputs.loaded.spec.has_sequence_classification() || train.classes.size() != labels.size())
    return {};
  const std::vector<std::string> lines = LabelRepairs(labels, [&](const std::string& label) {
    return train.classes[std::find(labels.begin(), labels.end(), label) - labels.begin()];
  });
  if (lines.empty()) return {};
  return {absl::StrCat("to merge them, write in the spec: sequence_classification { ",
      absl::StrJoin(lines, " "), " }")};
}

}  // namespace

absl::StatusOr<OrderedJson> CheckData(
    const LoadedSpec& given, const std::string& scratch, const std::atomic<bool>* stop) {
  LoadedSpec loaded = given;
  KeepRulesOf(loaded.spec.output().directory(), &loaded.spec);
  ASSIGN_OR_RETURN(
      const RunInputs inputs, LoadRunInputs(loaded, {.cache_dir = scratch, .stop = stop}));
  const std::vector<std::string> labels = CountedLabels(inputs.config);
  const ExampleStore* validation = inputs.validation ? &inputs.validation->store : nullptr;
  ASSIGN_OR_RETURN(
      const DataDuplicates found, FindDuplicates(inputs.train->store, validation, stop));
  OrderedJson check = OrderedJson::object();
  OrderedJson only = OrderedJson::array(), warnings = OrderedJson::array();
  const auto content = [&](const ExampleStore& store) {
    return ContentOf(store, labels.size(), store.size(), stop);
  };
  ASSIGN_OR_RETURN(const StoreContent train, content(inputs.train->store));
  check["train"] = PartOf(inputs.train->store.stats(), found.train, train, labels);
  if (validation != nullptr) {
    ASSIGN_OR_RETURN(const StoreContent held_out, content(*validation));
    check["validation"] = PartOf(validation->stats(), found.validation, held_out, labels);
    for (size_t i = 0; i < labels.size(); ++i) {
      if (train.classes[i] == 0 && held_out.classes[i] > 0) only.push_back(labels[i]);
    }
    for (const std::string& label : inputs.validation->unseen_labels) only.push_back(label);
  }
  const auto warn = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) warnings.push_back(line);
  };
  const auto describe = [&](const std::string& name, const BuiltStore& built) {
    for (absl::string_view note : absl::StrSplit(built.note, "; ", absl::SkipEmpty())) {
      absl::ConsumePrefix(&note, "warning: ");
      warnings.push_back(absl::StrCat(name, ": ", note));
    }
    warn(DescribeOddities(name, built.store.stats()));
  };
  describe("train", *inputs.train);
  if (validation != nullptr) describe("validation", *inputs.validation);
  warn(RareLabels(train, labels));
  warn(DescribeDuplicates(
      found, inputs.task->pretrains() ? std::vector<std::string>() : inputs.config.labels));
  warn(MergingLabels(train, inputs));
  for (const auto& label : only)
    warnings.push_back(
        absl::StrCat("label \"", Quote(label.get<std::string>()), "\" occurs only in validation"));
  check["leaked"] = found.leaked;
  check["label_variants"] = LabelVariants(labels);
  check["labels_only_in_validation"] = std::move(only);
  check["warnings"] = std::move(warnings);
  return check;
}

std::string DataTable(const OrderedJson& check) {
  std::string text = absl::StrFormat("%-24s", "");
  std::vector<const OrderedJson*> parts;
  for (const char* name : {"train", "validation"}) {
    if (!check.contains(name)) continue;
    parts.push_back(&check[name]);
    absl::StrAppend(&text, absl::StrFormat("%14s", name));
  }
  absl::StrAppend(&text, "\n");
  const auto row = [&](const std::string& name, auto value) {
    absl::StrAppend(&text, absl::StrFormat("%-24s", name));
    for (const OrderedJson* part : parts)
      absl::StrAppend(&text, absl::StrFormat("%14d", value(*part)));
    absl::StrAppend(&text, "\n");
  };
  for (const char* name : {"examples", "tokens", "empty", "repeated", "conflicting", "truncated",
           "cut_tokens", "unknown_tokens", "invalid_bytes"})
    row(name, [&](const OrderedJson& part) { return part[name].get<int64_t>(); });
  for (const char* name : {"shortest", "median", "p95", "longest"})
    row(absl::StrCat("length, ", name),
        [&](const OrderedJson& part) { return part["lengths"][name].get<int64_t>(); });
  for (const auto& [label, count] : check["train"]["classes"].items())
    row(absl::StrCat("label \"", Quote(label, 15), "\""),
        [&label = label](
            const OrderedJson& part) { return part["classes"][label].get<int64_t>(); });
  absl::StrAppend(&text, "\nlengths of train in tokens\n");
  int64_t most = 1;
  const OrderedJson& histogram = check["train"]["lengths"]["histogram"];
  for (const auto& bin : histogram) most = std::max(most, bin["count"].get<int64_t>());
  for (const auto& bin : histogram) {
    const int64_t count = bin["count"];
    absl::StrAppend(&text, absl::StrFormat("%7d-%-7d %9d  %s\n", bin["from"].get<int64_t>(),
                               bin["to"].get<int64_t>(), count, Bar(count, most)));
  }
  absl::StrAppend(&text, "\n");
  for (const auto& warning : check["warnings"])
    absl::StrAppend(&text, "warning: ", warning.get<std::string>(), "\n");
  absl::StrAppend(&text, Counted(check["warnings"].size(), "warning"), "\n");
  return text;
}

}  // namespace cloze
