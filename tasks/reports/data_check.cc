#include "tasks/reports/data_check.h"

#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/text.h"
#include "tasks/data/format.h"
#include "tasks/findings.h"
#include "tasks/training/setup.h"

namespace cloze {
namespace {

// Numbers of one part of the data that only its examples tell.
struct Content {
  std::vector<int64_t> lengths;  // of the sequences, sorted
  std::vector<int64_t> classes;  // texts or words of each label; empty: no labels
};

absl::StatusOr<Content> ContentOf(
    const ExampleStore& store, size_t labels, const std::atomic<bool>* stop) {
  Content content;
  content.classes.assign(labels, 0);
  Example example;
  for (int64_t i = 0; i < store.size(); ++i) {
    if (stop != nullptr && stop->load())
      return Error(Exit::kInterrupted, "stopped while checking the data");
    RETURN_IF_ERROR(store.Read(i, &example));
    content.lengths.push_back(static_cast<int64_t>(example.ids.size()));
    if (labels == 0 || example.continues) continue;
    for (const int32_t label : example.labels) ++content.classes[label];
    for (size_t l = 0; l < std::min(labels, example.values.size()); ++l)
      content.classes[l] += example.values[l] == 1;
  }
  std::sort(content.lengths.begin(), content.lengths.end());
  return content;
}

double Share(int64_t part, int64_t whole) { return whole > 0 ? double(part) / whole : 0; }

OrderedJson Lengths(const std::vector<int64_t>& sorted) {
  const auto at = [&](double share) {
    return sorted[share * static_cast<double>(sorted.size() - 1)];
  };
  OrderedJson histogram = OrderedJson::array();
  // Doubling widths: 1, 2-3, 4-7, ...
  for (int64_t from = std::bit_floor(static_cast<uint64_t>(sorted[0])); from <= sorted.back();
       from *= 2) {
    const auto begin = std::lower_bound(sorted.begin(), sorted.end(), from),
               end = std::lower_bound(sorted.begin(), sorted.end(), 2 * from);
    histogram.push_back({{"from", from}, {"to", 2 * from - 1}, {"count", end - begin}});
  }
  return {{"shortest", sorted[0]}, {"median", at(0.5)}, {"p95", at(0.95)},
      {"longest", sorted.back()}, {"histogram", std::move(histogram)}};
}

OrderedJson PartOf(const DataStats& stats, const Findings::Part& found, const Content& content,
    const std::vector<std::string>& labels) {
  OrderedJson part = {{"examples", stats.examples}, {"tokens", stats.tokens},
      {"empty", stats.empty_documents}, {"truncated", stats.truncated},
      {"truncated_share", Share(stats.truncated, stats.words > 0 ? stats.words : stats.documents)},
      {"cut_tokens", stats.cut_tokens}, {"unknown_tokens", stats.unknown_tokens},
      {"unknown_share", Share(stats.unknown_tokens, stats.text_tokens)},
      {"invalid_bytes", stats.invalid_bytes}, {"repeated", found.repeated},
      {"conflicting", found.conflicting}, {"lengths", Lengths(content.lengths)}};
  OrderedJson& classes = part["classes"] = OrderedJson::object();
  for (size_t i = 0; i < content.classes.size(); ++i)
    classes.get_ref<OrderedJson::object_t&>().emplace_back(labels[i], content.classes[i]);
  return part;
}

std::string Bar(int64_t count, int64_t most) {
  std::string bar;
  for (int64_t i = 0; i < (30 * count + most - 1) / std::max<int64_t>(most, 1); ++i) bar += "#";
  return bar;
}

}  // namespace

absl::StatusOr<OrderedJson> CheckData(
    const LoadedSpec& loaded, const std::string& scratch, const std::atomic<bool>* stop) {
  ASSIGN_OR_RETURN(const Setup setup,
      Prepare(loaded, {.cache_dir = scratch, .progress = nullptr, .stop = stop}));
  const bool counted =
      loaded.spec.has_token_tagging() ||
      (loaded.spec.has_sequence_classification() &&
          loaded.spec.sequence_classification().kind() != SequenceClassificationSpec::REGRESSION);
  const std::vector<std::string> labels =
      counted ? setup.config.labels : std::vector<std::string>();
  const ExampleStore* validation = setup.validation ? &setup.validation->store : nullptr;
  ASSIGN_OR_RETURN(const Findings found, Compare(setup.train->store, validation, stop));
  OrderedJson check = OrderedJson::object();
  OrderedJson only = OrderedJson::array(), warnings = OrderedJson::array();
  ASSIGN_OR_RETURN(const Content train, ContentOf(setup.train->store, labels.size(), stop));
  check["train"] = PartOf(setup.train->store.stats(), found.train, train, labels);
  if (validation != nullptr) {
    ASSIGN_OR_RETURN(const Content held_out, ContentOf(*validation, labels.size(), stop));
    check["validation"] = PartOf(validation->stats(), found.validation, held_out, labels);
    for (size_t i = 0; i < labels.size(); ++i) {
      if (train.classes[i] == 0 && held_out.classes[i] > 0) only.push_back(labels[i]);
    }
  }
  // The notes before the first line of each part say what is unusual.
  for (const std::string& note : setup.notes) {
    const bool size = absl::StrContains(note, " token") && absl::StrContains(note, " example") &&
                      !absl::StrContains(note, "earlier");
    if (!size) warnings.push_back(note);
  }
  if (loaded.spec.has_masked_lm()) {
    for (const std::string& line : Describe(found, {})) warnings.push_back(line);
  }
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
    row(absl::StrCat("label ", Quote(label, 17)), [&label = label](const OrderedJson& part) {
      return part["classes"][label].get<int64_t>();
    });
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
