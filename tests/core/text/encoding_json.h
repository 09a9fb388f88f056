// The parts of an Encoding as the golden cases of tests/golden have them.
#ifndef CLOZE_TESTS_CORE_TEXT_ENCODING_JSON_H_
#define CLOZE_TESTS_CORE_TEXT_ENCODING_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/text/tokenizer/text_step.h"

namespace cloze {

// Returns [[begin, end], ...].
inline nlohmann::json SpansJson(const std::vector<Span>& spans) {
  nlohmann::json result = nlohmann::json::array();
  for (const Span& span : spans) result.push_back({span.begin, span.end});
  return result;
}

// Returns the index of each token's word; null for special tokens.
inline nlohmann::json WordsJson(const std::vector<int32_t>& words) {
  nlohmann::json result = nlohmann::json::array();
  for (const int32_t word : words)
    result.push_back(word < 0 ? nlohmann::json() : nlohmann::json(word));
  return result;
}

}  // namespace cloze

#endif  // CLOZE_TESTS_CORE_TEXT_ENCODING_JSON_H_
