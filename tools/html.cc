#include "tools/html.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/utf8.h"

namespace cloze {
std::string HtmlEscape(absl::string_view text) {
  std::string clean;
  for (int n = 0; !text.empty(); text.remove_prefix(std::max(n, 1))) {
    uint32_t c = 0;
    n = DecodeUtf8(text, &c);
    if (n == 0 || (MustEscape(c) && c != '\t' && c != '\n')) {
      clean += "\uFFFD";
    } else {
      clean.append(text.data(), n);
    }
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
