// HTML pages without scripts.
#ifndef CLOZE_TOOLS_HTML_H_
#define CLOZE_TOOLS_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

// Escapes `text` for the content and quoted attributes of HTML and inline SVG. Invalid UTF-8,
// control characters and bidirectional overrides become U+FFFD.
std::string HtmlEscape(absl::string_view text);

// Returns a page in UTF-8 that forbids the browser to load anything or run scripts. `title` is
// plain text; `style` and `body` are markup and must be escaped.
std::string HtmlPage(absl::string_view title, absl::string_view style, absl::string_view body);

}  // namespace cloze

#endif  // CLOZE_TOOLS_HTML_H_
