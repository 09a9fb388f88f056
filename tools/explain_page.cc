#include "tools/explain_page.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/html.h"

namespace cloze {
namespace {

constexpr char kExplainStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b2430; --soft: #5b6977; --line: #d5dde5; --page: #fff;
  --for: #6ea8fe; --against: #ffb570; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa7b4; --line: #36414d;
  --page: #14191f; --for: #2a6fd0; --against: #b3590c; } }
body { margin: 1.4em auto; max-width: 60em; padding: 0 1.2em; color: var(--ink);
  background: var(--page); font: 16px/1.7 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4em; } section { border-top: 1px solid var(--line); padding: .6em 0; }
p { margin: .3em 0; white-space: pre-wrap; } .answer, .legend { color: var(--soft); }
.answer b { color: var(--ink); } mark { color: inherit; border-radius: 3px; padding: .1em 0; }
u { text-decoration-thickness: 2px; text-underline-offset: 3px; }
)";

// A word with its effect, in one of the texts of a record.
struct Highlight {
  int64_t begin, end;
  double effect;
};

// The words of an explanation in the given field, in the order of the text.
std::vector<Highlight> HighlightsOf(
    const OrderedJson& explanation, const std::string& field, const std::string& label) {
  std::vector<Highlight> words;
  for (const OrderedJson& word : explanation) {
    if (word.value("field", "text") != field) continue;
    words.push_back({word["byte_start"].get<int64_t>(), word["byte_end"].get<int64_t>(),
        label.empty() ? word["effect"].get<double>() : word["effects"][label].get<double>()});
  }
  absl::c_sort(words, [](const Highlight& a, const Highlight& b) { return a.begin < b.begin; });
  return words;
}

// Returns the text with its highlights; the colour of `most` is full. The bytes of `target`, an
// entity, are underlined.
std::string Highlighted(
    const std::string& text, const std::vector<Highlight>& words, double most, Span target = {}) {
  std::string out = "<p>";
  int64_t at = 0;
  const auto upto = [&](int64_t end) {  // with the target's marks
    for (; at < end;) {
      const bool inside = at >= target.begin && at < target.end;
      int64_t next = inside ? std::min(end, target.end) : end;
      if (!inside && target.begin > at) next = std::min(next, target.begin);
      const std::string part = HtmlEscape(text.substr(at, next - at));
      absl::StrAppend(&out, inside ? "<u>" : "", part, inside ? "</u>" : "");
      at = next;
    }
  };
  for (const Highlight& word : words) {
    upto(word.begin);
    const double strength = most > 0 ? std::fabs(word.effect) / most : 0;
    absl::StrAppendFormat(&out,
        "<mark style=\"background:color-mix(in srgb,var(--%s) %.0f%%,transparent)\" "
        "title=\"%+.3f\">",
        word.effect < 0 ? "against" : "for", 100 * strength, word.effect);
    upto(word.end);
    out += "</mark>";
  }
  upto(text.size());
  return out + "</p>\n";
}

// The texts of a record with one explanation.
std::string Texts(
    const Record& record, const OrderedJson& explanation, const std::string& label, Span target) {
  const auto first = HighlightsOf(explanation, "text", label),
             second = HighlightsOf(explanation, "text_pair", label);
  double most = 0.02;  // smaller effects stay pale
  for (const auto* words : {&first, &second})
    for (const Highlight& word : *words) most = std::max(most, std::fabs(word.effect));
  return Highlighted(record.text, first, most, target) +
         (record.kind == Record::Kind::kPair ? Highlighted(record.text_pair, second, most) : "");
}

std::string AnswerLine(const std::string& label, const OrderedJson& score) {
  return absl::StrFormat("<p class=\"answer\"><b>%s</b> %s</p>\n", HtmlEscape(label),
      score.is_number() ? absl::StrFormat("%.3f", score.get<double>()) : "");
}

// The explanation of each entity, or of each word of a tagger.
std::string TagTexts(const Record& record, const OrderedJson& answer) {
  const bool spans = answer.contains("entities");
  std::string out;
  for (const OrderedJson& item : answer[spans ? "entities" : "words"]) {
    if (!item.contains("explanation")) continue;
    const std::string name = item[spans ? "word" : "text"].get<std::string>();
    const Span target = {item["byte_start"].get<int64_t>(), item["byte_end"].get<int64_t>()};
    absl::StrAppend(&out,
        AnswerLine(
            absl::StrCat(name, ": ", item[spans ? "entity_group" : "label"].get<std::string>()),
            item["score"]),
        Texts(record, item["explanation"], "", target));
  }
  return out.empty() ? Highlighted(record.text, {}, 1) : out;
}

}  // namespace

std::string ExplainSection(const Record& record, const OrderedJson& answer) {
  const OrderedJson json = OrderedJson::parse(record.id, nullptr, /*allow_exceptions=*/false);
  const std::string id = record.id.empty()  ? ""
                         : json.is_string() ? absl::StrCat("id ", json.get<std::string>())
                                            : absl::StrCat("id ", record.id);
  std::string out = absl::StrCat("<section>\n<p class=\"answer\">", HtmlEscape(id), "</p>\n");
  if (answer.contains("error")) {
    absl::StrAppend(&out, "<p>", HtmlEscape(answer["error"].get<std::string>()), "</p>\n");
  } else if (answer.contains("words")) {
    out += TagTexts(record, answer);
  } else if (!answer.contains("explanation") || answer.contains("tags") ||
             answer["explanation"].empty()) {
    out += Highlighted(
        record.kind == Record::Kind::kWords ? absl::StrJoin(record.words, " ") : record.text, {},
        1);
  } else if (answer.contains("labels")) {
    const OrderedJson& words = answer["explanation"];
    for (const auto& [label, effect] : words[0]["effects"].items())
      absl::StrAppend(
          &out, AnswerLine(label, answer["scores"][label]), Texts(record, words, label, {}));
  } else {
    absl::StrAppend(&out, AnswerLine(answer["label"].get<std::string>(), answer["score"]),
        Texts(record, answer["explanation"], "", {}));
  }
  return out + "</section>\n";
}

std::string ExplainPage(const std::string& model, const std::string& sections) {
  return HtmlPage("Explanations: " + model, kExplainStyle,
      absl::StrCat("<h1>What carried the answers of ", HtmlEscape(model), "</h1>\n",
          "<p class=\"legend\">Without a <mark style=\"background:var(--for)\">blue</mark> word, "
          "the "
          "answer is less likely; without an <mark "
          "style=\"background:var(--against)\">orange</mark> "
          "one, it is more likely. Point at a word to see by how much. Colours are relative to the "
          "strongest word of the text.</p>\n",
          sections));
}

}  // namespace cloze
