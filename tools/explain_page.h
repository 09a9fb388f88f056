// An HTML page of answers and the words that carried them.
#ifndef CLOZE_TOOLS_EXPLAIN_PAGE_H_
#define CLOZE_TOOLS_EXPLAIN_PAGE_H_

#include <string>

#include "core/base/json.h"
#include "tasks/record.h"

namespace cloze {

// Returns the section of a text: its answer, and the text with a background behind each word of
// "explanation" (Explainer): blue where the word speaks for the answer, orange against it, the
// stronger the larger its effect. Several labels and entities have a copy of the text each.
std::string ExplainSection(const Record& record, const OrderedJson& answer);

// Returns the page with these sections, which loads nothing and has no scripts.
std::string ExplainPage(const std::string& model, const std::string& sections);

}  // namespace cloze

#endif  // CLOZE_TOOLS_EXPLAIN_PAGE_H_
