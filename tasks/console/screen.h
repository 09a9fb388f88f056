// Lines of progress: on a terminal with a live line at the end, elsewhere plain lines.
#ifndef CLOZE_TASKS_CONSOLE_SCREEN_H_
#define CLOZE_TASKS_CONSOLE_SCREEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

// The abilities of a terminal.
struct ScreenStyle {
  int width = 0;        // columns; 0: not a terminal, or TERM is "dumb"
  bool colour = false;  // unless NO_COLOR is set
  bool blocks = false;  // block characters, where the locale is UTF-8
};
ScreenStyle ScreenStyleOf(int fd);

// Returns lines as a terminal may get them: tabs and line ends are kept, other characters that it
// would obey (see MustEscape) become \u{...}, and bytes that are not UTF-8 \xNN.
std::string ForTerminal(absl::string_view lines);

// Condenses a series of values to at most 16 means, each of the same number of values.
class History {
 public:
  void Add(double value);
  // Returns a block character for each of the newest `most` values, scaled from their lowest to
  // their highest; spaces for values that are not finite.
  std::string Sparkline(size_t most) const;

 private:
  std::vector<double> means_;
  double sum_ = 0;
  int64_t count_ = 0, each_ = 1;  // values in sum_ and in each mean
};

// Returns a bar of `columns`, of which the share `done` is filled.
std::string Bar(double done, int columns);

// Not thread-safe. Ignores errors of the file.
class Screen {
 public:
  // fd: receives the lines. Asks the terminal for its width at each line unless `fixed`.
  Screen(int fd, const ScreenStyle& style, bool fixed) : fd_(fd), style_(style), fixed_(fixed) {}

  const ScreenStyle& style() const { return style_; }
  bool is_terminal() const { return style_.width > 0; }
  // Columns that a line may take: one less than the width, because some terminals wrap there.
  int columns();
  // Replaces the live line; cuts it to columns(). Lines are written as ForTerminal returns them.
  void DrawLive(const std::string& line);
  // Prints a line above the live line, which is erased until it is drawn again. On a terminal with
  // colour it is bold if asked.
  void Print(const std::string& line, bool bold = false);
  // Ends the live line; further calls may follow.
  void Finish();

 private:
  void Write(absl::string_view bytes);

  const int fd_;
  ScreenStyle style_;
  const bool fixed_;
  size_t live_columns_ = 0;  // length of the live line
};

}  // namespace cloze

#endif  // CLOZE_TASKS_CONSOLE_SCREEN_H_
