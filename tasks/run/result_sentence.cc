#include "tasks/run/result_sentence.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace cloze {
namespace {

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

// The members of a table with one row per class, added up.
struct Classes {
  explicit Classes(const Json& rows) {
    for (const Json& row : rows.is_array() ? rows : Json::array()) {
      const auto number = [&](const char* name) {
        const Json& value = JsonMember(row, name);
        return value.is_number() ? value.get<double>() : 0;
      };
      const Json& label = JsonMember(row, "label");
      const double support = number("support");
      all += support;
      if (support > most && label.is_string()) most = support, largest = label.get<std::string>();
      predicted += number("recall") > 0;
      if (number("recall") == 1 && label.is_string()) always = label.get<std::string>();
    }
  }
  double all = 0, most = 0;
  int predicted = 0;            // classes that were predicted at least once where they are right
  std::string largest, always;  // the most frequent class; one whose items are all right
};

std::string OfClasses(const Json& metrics, const std::string& items) {
  const Classes classes(JsonMember(metrics, "per_class"));
  const double accuracy = metrics["accuracy"].get<double>(), largest = classes.most / classes.all;
  std::string text =
      absl::StrFormat("Right on %s of %.0f held-out %s.", Percent(accuracy), classes.all, items);
  if (classes.predicted == 1 && !classes.always.empty() && classes.all > classes.most)
    return absl::StrCat(text, " It answers “", classes.always, "” every time.");
  return absl::StrCat(
      text, " Always answering “", classes.largest, "” would be right on ", Percent(largest), ".");
}

// The sentence and the warning of result.json.
std::string Told(const Json& result) {
  std::string text;
  for (const char* name : {"sentence", "warning"}) {
    const Json& value = JsonMember(result, name);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
    std::string part(absl::StripPrefix(value.get_ref<const std::string&>(), "warning: "));
    part[0] = absl::ascii_toupper(part[0]);
    absl::StrAppend(&text, text.empty() ? "" : " ", part, ".");
  }
  return text;
}

}  // namespace

std::string ResultSentence(const Json& metrics, const std::string& items, const Json& result) {
  if (const std::string told = Told(result); !told.empty()) return told;
  const auto has = [&](const char* name) { return JsonMember(metrics, name).is_number(); };
  const auto percent = [&](const char* name) { return Percent(metrics[name].get<double>()); };
  const auto number = [&](const char* name) {
    return absl::StrFormat("%.3g", metrics[name].get<double>());
  };
  if (has("span_recall") && has("span_precision")) {
    const double spans = Classes(JsonMember(metrics, "per_type")).all;
    return absl::StrFormat(
        "Finds %s of %.0f held-out spans; %s of the spans that it finds are "
        "right.",
        percent("span_recall"), spans, percent("span_precision"));
  }
  if (has("micro_f1") && has("accuracy"))
    return absl::StrCat("All labels are right for ", percent("accuracy"),
        " of the held-out texts; F1 over single labels is ", number("micro_f1"), ".");
  if (has("accuracy") && Classes(JsonMember(metrics, "per_class")).all > 0)
    return OfClasses(metrics, items);
  if (has("pearson") && has("mae"))
    return absl::StrCat("Predictions on held-out texts correlate with the true numbers with r = ",
        number("pearson"), "; they are off by ", number("mae"), " on average.");
  if (has("exact_match"))
    return absl::StrCat(
        "Finds exactly the answer to ", percent("exact_match"), " of the held-out questions.");
  if (has("perplexity") && has("accuracy"))
    return absl::StrCat("Guesses ", percent("accuracy"),
        " of the tokens of held-out text; the "
        "perplexity is ",
        number("perplexity"), ".");
  return "";
}

std::vector<std::string> MetricNames(absl::string_view metrics_json) {
  const OrderedJson json = OrderedJson::parse(
      metrics_json.begin(), metrics_json.end(), nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  if (!json.is_object() || !json.contains("metrics")) return names;
  for (const auto& [name, value] : json["metrics"].items())
    if (value.is_number() && name != "temperature") names.push_back(name);
  return names;
}

}  // namespace cloze
