#include "tasks/console/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr int kDefaultWidth = 80;
constexpr size_t kMeans = 16;

absl::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// True if the locale's characters are UTF-8: the first variable that is set decides.
bool HasUtf8Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const absl::string_view value = Variable(name);
    if (!value.empty())
      return absl::StrContains(absl::AsciiStrToLower(value), "utf-8") ||
             absl::StrContains(absl::AsciiStrToLower(value), "utf8");
  }
  return false;
}

int WidthOf(int fd) {
  winsize size;
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultWidth;
}

// Returns the first `columns` code points.
std::string Cut(const std::string& line, size_t columns) {
  size_t end = 0;
  for (; columns > 0 && end < line.size(); --columns) end += CodePointAt(line, end).size;
  return line.substr(0, end);
}

}  // namespace

ScreenStyle ScreenStyleOf(int fd) {
  if (::isatty(fd) != 1 || Variable("TERM") == "dumb") return {};
  return {WidthOf(fd), Variable("NO_COLOR").empty(), HasUtf8Locale()};
}

std::string ForTerminal(absl::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find_first_of("\t\n"), lines.size());
    absl::string_view text = lines.substr(0, end);
    const bool crlf = absl::EndsWith(text, "\r") && absl::StartsWith(lines.substr(end), "\n");
    if (crlf) text.remove_suffix(1);
    absl::StrAppend(&out, QuotePath(text), crlf ? "\r" : "", lines.substr(end, 1));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

void History::Add(double value) {
  sum_ += value;
  if (++count_ < each_) return;
  if (means_.size() == kMeans) {
    for (size_t i = 0; i < kMeans / 2; ++i) means_[i] = (means_[2 * i] + means_[2 * i + 1]) / 2;
    means_.resize(kMeans / 2);
    each_ *= 2;
    if (count_ < each_) return;
  }
  means_.push_back(sum_ / count_);
  sum_ = 0, count_ = 0;
}

std::string History::Sparkline(size_t most) const {
  double low = INFINITY, high = -INFINITY;
  const size_t first = means_.size() - std::min(most, means_.size());
  for (size_t i = first; i < means_.size(); ++i) {
    if (std::isfinite(means_[i])) low = std::min(low, means_[i]), high = std::max(high, means_[i]);
  }
  std::string line;
  for (size_t i = first; i < means_.size(); ++i) {
    const int level =
        high > low ? static_cast<int>(std::lround(7 * (means_[i] - low) / (high - low))) : 0;
    const char block[] = {'\xE2', '\x96', static_cast<char>('\x81' + level), '\0'};  // U+2581 ...
    line += std::isfinite(means_[i]) ? block : " ";
  }
  return line;
}

std::string Bar(double done, int columns) {
  const int full = static_cast<int>(std::clamp(done, 0.0, 1.0) * columns);
  return absl::StrCat("[", std::string(full, '#'), std::string(columns - full, '-'), "]");
}

int Screen::columns() {
  if (!fixed_) style_.width = WidthOf(fd_);
  return std::max(style_.width - 1, 1);
}

// Uses carriage return and spaces, which every terminal knows.
void Screen::DrawLive(const std::string& line) {
  const std::string visible = Cut(ForTerminal(line), columns());
  const size_t length = CountCodePoints(visible);
  const size_t spaces = live_columns_ > length ? live_columns_ - length : 0;
  Write(absl::StrCat("\r", visible, std::string(spaces, ' ')));
  live_columns_ = length;
}

void Screen::Print(const std::string& line, bool bold) {
  bold &= style_.colour;
  Write(absl::StrCat(
      live_columns_ > 0 ? absl::StrCat("\r", std::string(live_columns_, ' '), "\r") : "",
      bold ? "\x1b[1m" : "", is_terminal() ? ForTerminal(line) : line, bold ? "\x1b[0m" : "",
      "\n"));
  live_columns_ = 0;
}

void Screen::Finish() {
  if (live_columns_ > 0) Write("\n");
  live_columns_ = 0;
}

void Screen::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(n);
  }
}

}  // namespace cloze
