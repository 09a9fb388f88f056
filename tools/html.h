// Pages that stand alone: no network, no script, and no way for text to become markup.
#ifndef CLOZE_TOOLS_HTML_H_
#define CLOZE_TOOLS_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

// `text` for the content and for quoted attributes of HTML and of SVG inside. Bytes that are not
// UTF-8, control characters and bidirectional overrides become U+FFFD.
std::string HtmlEscape(absl::string_view text);

// A whole page in UTF-8. `title` is plain text, `style` and `body` are ours. The browser is told to
// load nothing and to run no script.
std::string HtmlPage(absl::string_view title, absl::string_view style, absl::string_view body);

}  // namespace cloze

#endif  // CLOZE_TOOLS_HTML_H_
