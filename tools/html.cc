#include "tools/html.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/text.h"

namespace cloze {

std::string HtmlEscape(absl::string_view text) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    const bool harmful = MustEscape(c.value) && c.value != '\t' && c.value != '\n';
    AppendUtf8(harmful ? kReplacementCharacter : c.value, &clean);
    at += c.size;
  }
  return absl::StrReplaceAll(
      clean, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string HtmlPage(absl::string_view title, absl::string_view style, absl::string_view body) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; base-uri 'none'; "
      "form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      HtmlEscape(title), "</title>\n<style>\n", style, "</style>\n</head>\n<body>\n", body,
      "</body>\n</html>\n");
}

}  // namespace cloze
