#include "tasks/data/file_form.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

using Cells = std::vector<std::string>;

constexpr size_t kFormBytes = 1 << 18;  // of the beginning
constexpr absl::string_view kDelimiters = ";\t|,";

// Names that columns of texts usually have.
constexpr absl::string_view kUsualNames[] = {"answer", "author", "betreff", "bewertung", "body",
    "category", "class", "comment", "content", "date", "description", "document", "frage", "guid",
    "headline", "hypothesis", "id", "idx", "index", "intent", "kategorie", "klasse", "label",
    "label_id", "label_name", "labels", "language", "message", "passage", "premise", "query",
    "question", "rating", "review", "score", "sentence", "sentence1", "sentence2", "sentence_a",
    "sentence_b", "sentiment", "source", "subject", "tag", "tags", "target", "text", "text1",
    "text2", "text_a", "text_b", "text_pair", "texte", "texto", "title", "topic", "tweet"};

std::string NameOf(char delimiter) { return delimiter == '\t' ? "\\t" : std::string(1, delimiter); }

// Splits `text` into at most kFormRows rows, and takes any quotes.
std::vector<Cells> SplitRows(absl::string_view text, char delimiter, bool quoting) {
  std::vector<Cells> rows;
  bool quoted = false, starts_row = true, starts_cell = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (starts_row && c == '\n') continue;
    if (starts_row && rows.size() == kFormRows) return rows;
    if (starts_row) rows.emplace_back(1);
    const bool quote = quoting && c == '"';
    const bool first = starts_cell || starts_row;
    starts_row = !quoted && c == '\n';
    starts_cell = !quoted && c == delimiter;
    if (quote && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (quote && (quoted || first)) {
      quoted = !quoted;
    } else if (starts_cell) {
      rows.back().emplace_back();
    } else if (!starts_row && !(c == '\r' && !quoted)) {
      rows.back().back() += c;
    }
  }
  if (!starts_row && rows.size() > 1) rows.pop_back();
  return rows;
}

bool IsNumeric(absl::string_view cell) {
  return cell.find_first_of("0123456789") != cell.npos &&
         cell.find_first_not_of("0123456789.,:/+-eE% ") == cell.npos;
}

int64_t WordsOf(absl::string_view cell) {
  const std::vector<absl::string_view> words = absl::StrSplit(cell, ' ', absl::SkipEmpty());
  return std::ssize(words);
}

// True for what can be the name of a column.
bool IsColumnName(absl::string_view cell) {
  cell = absl::StripAsciiWhitespace(cell);
  return !cell.empty() && cell.size() <= 64 && !IsNumeric(cell) &&
         !absl::StrContains(".!?", cell.back());
}

// The cells between empty ones: pandas leaves the name of the index empty, and tables of Excel have
// empty columns at their end.
absl::Span<const std::string> NamedCells(absl::Span<const std::string> row) {
  if (row.size() > 1 && row.front().empty()) row.remove_prefix(1);
  while (row.size() > 1 && row.back().empty()) row.remove_suffix(1);
  return row;
}

bool AreColumnNames(const Cells& row) {
  const auto names = NamedCells(row);
  return std::set<std::string>(names.begin(), names.end()).size() == names.size() &&
         absl::c_all_of(names, IsColumnName);
}

bool HasUsualNames(const Cells& row) {
  const int64_t usual = absl::c_count_if(row, [](const std::string& cell) {
    return absl::c_binary_search(
        kUsualNames, absl::AsciiStrToLower(absl::StripAsciiWhitespace(cell)));
  });
  return usual > 0 && 2 * usual >= std::ssize(NamedCells(row)) && AreColumnNames(row);
}

bool IsIn(const Cells& row, const std::string& name) { return absl::c_linear_search(row, name); }

// A column below the first row.
struct Below {
  Below(TableRows rows, size_t column) {
    std::set<absl::string_view> values;
    for (const Cells& row : rows.subspan(1)) {
      const std::string& cell = row[column];
      numbers += IsNumeric(cell);
      words += WordsOf(cell);
      same += !cell.empty() && cell == rows[0][column];
      values.insert(cell);
    }
    rest = std::ssize(rows) - 1;
    repeats = 2 * std::ssize(values) <= rest;
  }
  bool are_texts() const { return words >= 3 * rest; }

  int64_t rest = 0, numbers = 0, words = 0, same = 0;
  bool repeats = false;  // few values, as labels have
};

// Enough rows, all as long as the first.
bool AreEven(TableRows rows) {
  return rows.size() >= 4 &&
         absl::c_all_of(rows, [&](const Cells& row) { return row.size() == rows[0].size(); });
}

// True if the rows below differ from the first as data differ from names.
bool HeaderStandsOut(TableRows rows) {
  if (!AreEven(rows) || !AreColumnNames(rows[0])) return false;
  bool texts = false, labels = false;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    const Below below(rows, i);
    if (below.numbers == below.rest) return true;
    if (below.are_texts() && WordsOf(rows[0][i]) <= (rows[0].size() > 1 ? 2 : 1)) {
      texts = true;
    } else {
      labels = labels || (below.repeats && below.same == 0);
    }
  }
  return texts && (labels || rows[0].size() == 1);
}

// True if the first row is like the rows below. Pandas numbers columns without names from 0.
bool FirstRowIsData(TableRows rows) {
  if (!AreEven(rows) || HasUsualNames(rows[0])) return false;
  bool counts = true;
  for (size_t i = 0; i < rows[0].size(); ++i) counts = counts && rows[0][i] == absl::StrCat(i);
  for (size_t i = 0; i < rows[0].size() && !counts; ++i) {
    const Below below(rows, i);
    if (below.same >= 2 || (below.numbers == below.rest && IsNumeric(rows[0][i]))) return true;
    if (below.are_texts() && WordsOf(rows[0][i]) >= 5) return true;
  }
  return false;
}

// The rows of a table under one delimiter.
struct SplitTable {
  SplitTable(absl::string_view text, char c, const FormHints& hints) : delimiter(c) {
    rows = SplitRows(text, c, hints.quoting);
    if (rows.empty()) return;
    columns = rows[0].size();
    even = absl::c_all_of(rows, [&](const Cells& row) { return row.size() == columns; });
    std::map<size_t, size_t> sizes;
    for (const Cells& row : rows) ++sizes[row.size()];
    nearly_even = columns > 1 && absl::c_any_of(sizes, [&](const auto& size) {
      return size.first > 1 && 10 * size.second >= 9 * rows.size();
    });
    fits = absl::c_all_of(hints.columns, [&](const std::string& name) {
      const int number = ColumnNumber(name);
      return IsIn(rows[0], name) || (number >= 0 && number < static_cast<int64_t>(columns));
    });
  }
  bool divides() const { return fits && columns > 1; }

  char delimiter;
  std::vector<Cells> rows;
  size_t columns = 0;
  bool even = false;         // all rows are as long as the first
  bool nearly_even = false;  // 90 % of the rows have one length
  bool fits = false;         // has the wanted columns
};

SplitTable BestSplit(absl::string_view text, const FormHints& hints) {
  const bool numbered = absl::c_all_of(
      hints.columns, [](const std::string& name) { return ColumnNumber(name) >= 0; });
  const SplitTable given(text, hints.form.delimiter, hints);
  SplitTable best = given;
  if (!hints.columns.empty() && numbered) {
    // Numbers say little, but few texts have tabs.
    if (SplitTable tabs(text, '\t', hints); given.columns == 1 && !hints.quoting && tabs.divides())
      best = std::move(tabs);
    return best;
  }
  for (const char c : kDelimiters) {
    SplitTable split(text, c, hints);
    const bool even = split.even && (!best.even || split.columns > best.columns),
               only = split.nearly_even && best.columns == 1;  // the reader names the odd rows
    const bool better = hints.columns.empty() ? even || only : split.divides() && !best.divides();
    if (better && split.columns > 1) best = std::move(split);
  }
  return best;
}

Charset EncodingOf(absl::string_view bytes, Charset fallback) {
  if (absl::StartsWith(bytes, kUtf8Mark)) return Charset::kUtf8;
  if (absl::StartsWith(bytes, "\xFF\xFE") || absl::StartsWith(bytes, "\xFE\xFF") ||
      3 * absl::c_count(bytes, '\0') > std::ssize(bytes))
    return Charset::kUtf16;
  const absl::string_view whole = bytes.substr(0, bytes.rfind('\n'));
  if (IsUtf8(whole)) return Charset::kUtf8;
  const bool latin = absl::StrContains(LikelyEncoding(whole), "Latin-1");
  return fallback == Charset::kUtf8 && latin ? Charset::kWindows1252 : fallback;
}

}  // namespace

FileForm FormOf(absl::string_view beginning, const FormHints& hints) {
  beginning = beginning.substr(0, Utf8Floor(beginning, std::min(beginning.size(), kFormBytes)));
  FileForm form = hints.form;
  form.encoding = EncodingOf(beginning, form.encoding);
  std::string text;
  TextDecoder(form.encoding).Append(beginning, /*end=*/true, &text);
  absl::string_view table = text;
  if (absl::StartsWith(table, kUtf8Mark)) table.remove_prefix(kUtf8Mark.size());
  const SplitTable split = BestSplit(table, hints);
  form.delimiter = split.delimiter;
  if (split.rows.empty()) return form;
  const Cells& first = split.rows[0];
  const bool named = absl::c_any_of(hints.columns,
      [&](const std::string& name) { return ColumnNumber(name) < 0 && IsIn(first, name); });
  form.header = form.header || (named && split.fits) || HasUsualNames(first);
  if (hints.columns.empty() && FirstRowIsData(split.rows)) form.header = false;
  return form;
}

std::string DelimiterIn(absl::string_view row) {
  for (const char c : kDelimiters) {
    if (absl::StrContains(row, c)) return NameOf(c);
  }
  return "";
}

std::string OddForm(TableRows rows, const FormHints& hints) {
  if (rows.empty()) return "";
  const Cells& first = rows[0];
  if (!hints.form.header && HeaderStandsOut(rows))
    return "the first row looks like a header, but is read as data (set header: true if it "
           "is one)";
  const bool numbered =
      absl::c_none_of(hints.columns, [&](const std::string& name) { return IsIn(first, name); });
  if (hints.form.header && numbered && FirstRowIsData(rows))
    return "the first row looks like data, but is read as the header (set header: "
           "false if there is none)";
  for (size_t i = 0; i < first.size() && !hints.quoting; ++i) {
    const int64_t quoted = absl::c_count_if(rows.subspan(hints.form.header), [&](const Cells& row) {
      return i < row.size() && row[i].size() > 1 && row[i].front() == '"' && row[i].back() == '"';
    });
    if (2 * quoted <= std::ssize(rows) - hints.form.header) continue;
    return absl::StrCat("most cells of column ", i + 1,
        " are in quotes, which TSV keeps as text (if they only wrap it, read the file as CSV with "
        "delimiter \\t)");
  }
  if (!numbered || !AreEven(rows) || first.size() > 1) return "";
  for (const char c : kDelimiters) {
    const auto count = [&](const Cells& row) { return absl::c_count(row[0], c); };
    const int64_t n = count(first);
    if (n == 0 || absl::c_any_of(rows, [&](const Cells& row) { return count(row) != n; })) continue;
    return absl::StrCat("one column, in which all rows have the same number of \"", NameOf(c),
        "\" (set delimiter if that separates columns)");
  }
  return "";
}

std::string OddTables(const DataSpec& data) {
  std::string notes;
  const auto files = FilesOf(data);
  for (size_t i = 0; files.ok() && i < files->size(); ++i) {
    const DataFile& file = (*files)[i];
    const bool table = file.format->format == DataSpec::CSV || file.format->format == DataSpec::TSV;
    if (!table || IsStream(file.path)) continue;
    DataSpec one = AllExamples(data);
    one.clear_files();
    one.add_files(file.path);
    auto reader = TextReader::Open(one);
    TextExample row;
    std::string note;
    for (size_t n = 0; n <= kFormRows && reader.ok(); ++n) {
      const bool more = reader->Next(&row).value_or(false);
      if (note = reader->TakeNote(); !more || !note.empty()) break;
    }
    absl::StrAppend(&notes, notes.empty() || note.empty() ? "" : "; ", note);
  }
  return notes;
}

}  // namespace cloze
