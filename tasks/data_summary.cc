#include "tasks/data_summary.h"

#include <algorithm>
#include <bit>

namespace cloze {
namespace {

double Share(int64_t part, int64_t whole) { return whole > 0 ? double(part) / whole : 0; }

OrderedJson Lengths(const StoreContent& content) {
  const std::vector<int64_t>& sorted = content.lengths;
  if (sorted.empty()) return OrderedJson::object();
  const auto at = [&](double share) {
    return sorted[share * static_cast<double>(sorted.size() - 1)];
  };
  OrderedJson histogram = OrderedJson::array();
  // Doubling widths: 1, 2-3, 4-7, ...
  for (int64_t from = std::bit_floor(static_cast<uint64_t>(sorted[0])); from <= sorted.back();
       from *= 2) {
    const auto begin = std::lower_bound(sorted.begin(), sorted.end(), from),
               end = std::lower_bound(sorted.begin(), sorted.end(), 2 * from);
    histogram.push_back(
        {{"from", from}, {"to", 2 * from - 1}, {"count", (end - begin) * content.stride}});
  }
  return {{"shortest", sorted[0]}, {"median", at(0.5)}, {"p95", at(0.95)},
      {"longest", sorted.back()}, {"histogram", std::move(histogram)}};
}

}  // namespace

absl::StatusOr<StoreContent> ContentOf(
    const ExampleStore& store, size_t labels, int64_t most, const std::atomic<bool>* stop) {
  StoreContent content;
  content.classes.assign(labels, 0);
  Example example;
  // Windows of one text have its labels; those of one sentence have different words.
  const bool repeats = store.stats().words == 0;
  content.stride = (store.size() - 1) / std::max<int64_t>(most, 1) + 1;
  for (int64_t i = 0; i < store.size(); i += content.stride) {
    RETURN_IF_ERROR(CheckStopped(stop, "reading the data"));
    RETURN_IF_ERROR(store.Read(i, &example));
    content.lengths.push_back(static_cast<int64_t>(example.ids.size()));
    if (labels == 0 || (example.continues && repeats)) continue;
    for (const int32_t label : example.labels) {
      if (label < static_cast<int64_t>(labels)) content.classes[label] += content.stride;
    }
    for (size_t l = 0; l < std::min(labels, example.values.size()); ++l)
      content.classes[l] += example.values[l] == 1 ? content.stride : 0;
  }
  std::sort(content.lengths.begin(), content.lengths.end());
  return content;
}

std::vector<std::string> CountedLabels(const ModelConfig& config) {
  return config.problem_type == "regression" ? std::vector<std::string>() : config.labels;
}

OrderedJson SummaryOf(
    const DataStats& stats, const StoreContent& content, const std::vector<std::string>& labels) {
  OrderedJson part = {{"examples", stats.examples}, {"tokens", stats.tokens},
      {"empty", stats.empty_documents}, {"truncated", stats.truncated},
      {"truncated_share", Share(stats.truncated, stats.words > 0 ? stats.words : stats.documents)},
      {"cut_tokens", stats.cut_tokens}, {"unknown_tokens", stats.unknown_tokens},
      {"unknown_share", Share(stats.unknown_tokens, stats.text_tokens)},
      {"invalid_bytes", stats.invalid_bytes}, {"lengths", Lengths(content)}};
  OrderedJson& classes = part["classes"] = OrderedJson::object();
  for (size_t i = 0; i < content.classes.size(); ++i)
    classes.get_ref<OrderedJson::object_t&>().emplace_back(labels[i], content.classes[i]);
  return part;
}

std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built) {
  const DataStats& s = built.store.stats();
  std::vector<std::string> lines = {absl::StrCat(name, ": ", Counted(s.examples, "example"), ", ",
      Counted(s.tokens, "token"), built.reused ? " (cached)" : "")};
  if (!built.note.empty()) lines.push_back(absl::StrCat(name, ": ", built.note));
  if (s.truncated > 0 && s.cut_tokens == 0) {
    lines.push_back(
        absl::StrCat(name, ": read in several windows: ", Counted(s.truncated, "text")));
  }
  for (std::string& line : DescribeOddities(name, s)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> DescribeOddities(absl::string_view name, const DataStats& s) {
  std::vector<std::string> lines;
  const auto say = [&](const auto&... parts) {
    lines.push_back(absl::StrCat(name, ": ", parts...));
  };
  if (s.empty_documents > 0) say("empty: ", Counted(s.empty_documents, "text"));
  if (s.truncated > 0 && s.cut_tokens > 0)
    say("too long: ", Counted(s.truncated, s.words > 0 ? "word" : "text"), ", ",
        Counted(s.cut_tokens, "token"), " cut off");
  if (s.empty_words > 0) say("without pieces, taken as <unk>: ", Counted(s.empty_words, "word"));
  if (s.invalid_bytes > 0) say("not UTF-8, read as U+FFFD: ", Counted(s.invalid_bytes, "byte"));
  if (s.text_tokens > 0 && s.unknown_tokens * 20 > s.text_tokens)
    say(100 * s.unknown_tokens / s.text_tokens,
        " % of the tokens are <unk>: expected at most 5 % (choose a vocabulary that fits the "
        "text)");
  return lines;
}

}  // namespace cloze
