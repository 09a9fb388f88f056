#include "tasks/wrong_texts.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr size_t kErrorBytes = 200;

std::string Decoded(const Tokenizer* tokenizer, const std::vector<int32_t>& ids) {
  std::string text = tokenizer == nullptr ? "" : tokenizer->Decode(ids);
  if (text.size() > kErrorBytes) text = text.substr(0, Utf8Floor(text, kErrorBytes)) + "...";
  return text;
}

bool IsSurer(const WrongText& a, const WrongText& b) { return a.score > b.score; }

}  // namespace

void WrongTexts::Add(WrongText text) {
  if (!Keeps(text.score)) return;
  texts_.insert(absl::c_upper_bound(texts_, text, IsSurer), std::move(text));
  if (texts_.size() > most_) texts_.pop_back();
}

std::string WrongTexts::ToJson(
    const std::vector<std::string>& labels, const Tokenizer* tokenizer) const {
  std::vector<WrongText> texts = texts_;
  absl::c_stable_sort(texts, IsSurer);
  OrderedJson rows = OrderedJson::array();
  for (const WrongText& text : texts) {
    OrderedJson row = {{"example", text.number}};
    if (text.word > 0)
      row.update({{"word", text.word}, {"token", Decoded(tokenizer, text.word_ids)}});
    const bool known = text.label < static_cast<int64_t>(labels.size());
    row.update({{"label", known ? OrderedJson(labels[text.label]) : OrderedJson()},
        {"predicted", labels[text.predicted]}, {"score", Decimal(static_cast<float>(text.score))},
        {"text", Decoded(tokenizer, text.ids)}});
    rows.push_back(std::move(row));
  }
  return rows.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

}  // namespace cloze
