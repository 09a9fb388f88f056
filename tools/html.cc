#include "tools/html.h"

#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace cloze {
namespace {

bool IsHarmful(uint32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0) ||
         (c >= 0x200E && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string HtmlEscape(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t c = 0;
    const int n = DecodeUtf8(text, &c);
    if (n == 0 || IsHarmful(c)) {
      out += "\xEF\xBF\xBD";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out.append(text.data(), n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
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
