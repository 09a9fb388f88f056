#include "tools/answers.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/text_table.h"

namespace cloze {
namespace {

// Returns the values joined by `separator`: of each item, or of the member `name` of each object.
std::string Joined(
    const OrderedJson& list, absl::string_view separator, const std::string& name = "") {
  return absl::StrJoin(list, separator, [&](std::string* out, const OrderedJson& item) {
    *out += CellText(item.is_object() ? item.at(name) : item);
  });
}

// True for lists of words or labels, which are one cell.
bool IsList(absl::string_view name) {
  return absl::EndsWith(name, "labels") || absl::EndsWith(name, "tags") ||
         absl::EndsWith(name, "answers");
}

// True for members of an answer that repeat the input.
bool Repeats(const std::string& name) {
  return name == "text" || name == "text_pair" || name == "tokens" || name == "ids";
}

// True for members of an answer that are parts of the input; others come from the model.
bool IsPartOfInput(const std::string& name) {
  return name == "words" || name == "answer" || name == "true_answers";
}

// Returns the name of a member of an answer beside those of the input. `taken`: a map or a set.
template <typename Names>
std::string NameBeside(const Names& taken, std::string name) {
  while (taken.count(name) > 0) name.insert(0, "predicted_");
  return name;
}

using Cells = std::vector<std::pair<std::string, std::string>>;

// Returns the length of the JSON value at the start of `text`, which is valid.
size_t ValueLength(absl::string_view text) {
  size_t at = 0;
  for (int depth = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (depth == 0 && at > 0 && absl::StrContains(",:]} \t\r\n", c)) break;
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
    } else {
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    }
  }
  return at;
}

// Returns the content of a JSON string.
std::string Unquoted(absl::string_view text) {
  return OrderedJson::parse(text.begin(), text.end()).get<std::string>();
}

// Returns the names and values of the object in `line`, which is valid JSON, in time that is
// proportional to its length: strings as their content, null as "", other values as they are
// written. Of members of equal names the last one counts, at the place of the first.
Cells MembersOf(absl::string_view line) {
  Cells members;
  std::map<std::string, size_t> index;
  const auto next = [&](size_t length) {
    line = absl::StripLeadingAsciiWhitespace(line.substr(length));
  };
  for (next(line.find('{') + 1); !line.empty() && line[0] == '"';) {
    size_t length = ValueLength(line);
    std::string name = Unquoted(line.substr(0, length));
    next(length);
    next(1);  // the colon
    length = ValueLength(line);
    const absl::string_view value = line.substr(0, length);
    const auto [found, added] = index.emplace(name, members.size());
    if (added) members.emplace_back(std::move(name), "");
    members[found->second].second = value[0] == '"'   ? Unquoted(value)
                                    : value == "null" ? ""
                                                      : std::string(value);
    next(length);
    next(1);  // the comma or the end
  }
  return members;
}

// Returns the columns of the input.
Cells InputCells(const Record& record, const std::vector<std::string>& columns) {
  Cells cells;
  if (!columns.empty()) {
    for (size_t i = 0; i < std::min(columns.size(), record.cells.size()); ++i)
      cells.emplace_back(columns[i], record.cells[i]);
  } else if (!record.cells.empty()) {
    return MembersOf(record.cells[0]);
  } else if (!record.wrong.ok()) {
    return cells;
  } else if (record.kind == Record::Kind::kIds) {
    cells.emplace_back("ids", absl::StrJoin(record.ids, " "));
  } else if (record.kind != Record::Kind::kWords) {
    cells.emplace_back("text", record.text);
    if (record.kind == Record::Kind::kPair) cells.emplace_back("text_pair", record.text_pair);
  }
  return cells;
}

// Returns the words of an explanation that spoke most for the answer, at most five: "refund card";
// of several labels "billing: refund card; legal: lawyer".
std::string Carriers(const OrderedJson& words) {
  std::map<std::string, std::vector<std::pair<double, std::string>>> by_label;
  const auto add = [&](const std::string& label, double effect, const OrderedJson& word) {
    if (effect > 0) by_label[label].emplace_back(-effect, word["text"].get<std::string>());
  };
  for (const OrderedJson& word : words) {
    if (word.contains("effect")) add("", word["effect"].get<double>(), word);
    if (!word.contains("effects")) continue;
    for (const auto& [label, effect] : word["effects"].items())
      add(label, effect.get<double>(), word);
  }
  std::vector<std::string> parts;
  for (auto& [label, list] : by_label) {
    absl::c_stable_sort(list, [](const auto& a, const auto& b) { return a.first < b.first; });
    list.resize(std::min<size_t>(list.size(), 5));
    parts.push_back(absl::StrCat(label, label.empty() ? "" : ": ",
        absl::StrJoin(list, " ", [](std::string* out, const auto& word) { *out += word.second; })));
  }
  return absl::StrJoin(parts, "; ");
}

// Returns the columns of an answer: lists become words between spaces, labels between separators.
// Control characters of the model are escaped.
Cells AnswerCells(const OrderedJson& answer, const std::string& separator, bool decimal_comma) {
  Cells cells;
  const auto number = [&](const OrderedJson& value) {
    std::string text = CellText(value);
    if (value.is_number_float() && decimal_comma) absl::StrReplaceAll({{".", ","}}, &text);
    return text;
  };
  for (const auto& [name, value] : answer.items()) {
    if (Repeats(name) || (name == "scores" && (value.is_array() || answer.contains("label")))) {
      continue;
    }
    if (name == "words") {
      cells.emplace_back("words", Joined(value, " ", "text"));
      if (value.empty() || value.front().is_object())
        cells.emplace_back("tags", QuotePath(Joined(value, " ", "label")));
    } else if (name == "explanation" && (value.empty() || value.front().is_object())) {
      cells.emplace_back(name, Carriers(value));
    } else if (name == "scores") {
      for (const auto& [label, score] : value.items())
        cells.emplace_back("score_" + QuotePath(label), number(score));
    } else {
      std::string cell = IsList(name)
                             ? Joined(value, absl::EndsWith(name, "tags") ? " " : separator)
                             : number(value);
      cells.emplace_back(name, IsPartOfInput(name) ? std::move(cell) : QuotePath(cell));
    }
  }
  return cells;
}

// kData for a cell that a row of TSV cannot hold.
absl::Status CheckTsv(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) {
    if (cell.find_first_of("\t\r\n") == std::string::npos) continue;
    return Error(Exit::kData, "\"", Quote(cell),
        "\" has a tab or a line end, for which TSV has no place (use --format csv)");
  }
  return absl::OkStatus();
}

}  // namespace

std::string CellText(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : ToJsonLine(value);
}

std::string CsvCell(const std::string& cell, char delimiter) {
  const bool plain = cell.find_first_of("\"\r\n") == std::string::npos &&
                     cell.find(delimiter) == std::string::npos &&
                     absl::StripAsciiWhitespace(cell).size() == cell.size();
  return plain ? cell : absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

std::string SeparatorOf(const std::vector<std::string>& labels, const std::string& wanted) {
  for (const std::string& separator : {wanted, std::string("|"), std::string(";")}) {
    if (absl::c_none_of(
            labels, [&](const std::string& label) { return absl::StrContains(label, separator); }))
      return separator;
  }
  return wanted;
}

std::string JsonWithId(const Record& record, const OrderedJson& answer) {
  std::string line = ToJsonLine(answer);
  if (record.id.empty()) return line;
  return absl::StrCat("{\"id\": ", record.id, ", ", absl::string_view(line).substr(1));
}

absl::Status AnswerWriter::Write(
    const Record& record, const std::vector<std::string>& columns, const OrderedJson& answer) {
  const bool wrong = answer.contains("error");
  if (format_ == "table" && !wrong) return writer_->WriteTables(TokenTables(answer, StyleOf(1)));
  if (format_.empty() || format_ == "table") {
    OrderedJson line = OrderedJson::object();
    if (wrong && record.line > 0) line["line"] = record.line;
    line.update(answer);
    return writer_->Write(JsonWithId(record, line));
  }
  if (format_ == "jsonl") return WriteJson(record, columns, answer);
  Cells input = InputCells(record, columns);
  if (!wrong) return WriteCells(input, AnswerCells(answer, separator_, form_.decimal_comma), "");
  std::string error = answer["error"].get<std::string>();
  if (!header_ && columns.empty()) return Wait(std::move(input), std::move(error));
  if (!header_) RETURN_IF_ERROR(Finish(columns));
  return WriteCells(input, {}, error);
}

void AnswerWriter::WarnOfLost() const {
  if (lost_ > 0)
    std::fprintf(stderr, "cloze: warning: written as ?: %s that the encoding of the table lacks\n",
        Counted(lost_, "character").c_str());
}

absl::Status AnswerWriter::Wait(Cells input, std::string error) {
  constexpr size_t kMaxRows = 10'000, kMaxBytes = 8 << 20;
  waiting_bytes_ += error.size();
  for (const auto& [name, value] : input) waiting_bytes_ += name.size() + value.size();
  waiting_.emplace_back(std::move(input), std::move(error));
  const bool full = waiting_.size() > kMaxRows || waiting_bytes_ > kMaxBytes;
  return full ? Finish() : absl::OkStatus();
}

absl::Status AnswerWriter::WriteJson(
    const Record& record, const std::vector<std::string>& columns, const OrderedJson& answer) {
  std::set<std::string> names;
  std::vector<std::string> members;
  const auto add = [&](const std::string& name, const std::string& value) {
    members.push_back(absl::StrCat(JsonString(name), ": ", value));
    names.insert(name);
  };
  absl::string_view line;  // without its braces
  if (columns.empty() && !record.cells.empty()) {
    line = absl::StripAsciiWhitespace(record.cells[0]);
    line = absl::StripAsciiWhitespace(line.substr(1, line.size() - 2));
    for (auto& [name, value] : MembersOf(record.cells[0])) names.insert(std::move(name));
  } else if (columns.empty() && record.wrong.ok() && record.kind == Record::Kind::kIds) {
    add("ids", ToJsonLine(record.ids));
  } else {
    for (const auto& [name, value] : InputCells(record, columns)) add(name, JsonString(value));
  }
  if (answer.contains("error")) {
    if (names.empty() && !record.id.empty()) add("id", record.id);
    if (record.line > 0) add(NameBeside(names, "line"), absl::StrCat(record.line));
  }
  for (const auto& [name, value] : answer.items())
    if (names.count(name) > 0) shared_.insert(name);
  std::set<std::string> taken = std::move(names);
  taken.insert(shared_.begin(), shared_.end());
  for (const auto& [name, value] : answer.items()) {
    if (Repeats(name)) continue;
    add(NameBeside(taken, name), ToJsonLine(value));
  }
  const std::string rest = absl::StrJoin(members, ", ");
  return writer_->Write(
      absl::StrCat("{", line, line.empty() || rest.empty() ? "" : ", ", rest, "}"));
}

absl::Status AnswerWriter::WriteHeader(const Cells& input, const Cells& answer) {
  for (const auto& [cells, columns] : {std::pair(&input, &input_), std::pair(&answer, &answer_)}) {
    for (const auto& [name, value] : *cells) {
      columns->index.emplace(name, columns->names.size());
      columns->names.push_back(name);
    }
  }
  std::vector<std::string> names = input_.names;
  for (const std::string& name : answer_.names) names.push_back(NameBeside(input_.index, name));
  if (errors_) names.push_back(NameBeside(input_.index, "error"));
  header_ = true;
  if (format_ == "tsv") RETURN_IF_ERROR(CheckTsv(names));
  RETURN_IF_ERROR(WriteRow(names));
  for (const auto& [cells, message] : std::exchange(waiting_, {}))
    RETURN_IF_ERROR(WriteCells(cells, {}, message));
  return absl::OkStatus();
}

absl::Status AnswerWriter::WriteCells(
    const Cells& input, const Cells& answer, const std::string& error) {
  if (!header_) RETURN_IF_ERROR(WriteHeader(input, answer));
  const size_t inputs = input_.names.size();
  std::vector<std::string> row(inputs + answer_.names.size());
  const auto fill = [&](const Cells& cells, const Columns& columns, size_t first) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::vector<std::string>& names = columns.names;
      const bool same = i < names.size() && names[i] == cells[i].first;
      const auto found = same ? columns.index.end() : columns.index.find(cells[i].first);
      if (!same && found == columns.index.end()) {
        return Error(Exit::kData, "member \"", Quote(cells[i].first),
            "\": not in the first line, so it has no column (JSON lines keep it: --format jsonl)");
      }
      row[first + (same ? i : found->second)] = cells[i].second;
    }
    return absl::OkStatus();
  };
  absl::Status filled = fill(input, input_, 0);
  filled.Update(fill(answer, answer_, inputs));
  if (format_ == "tsv") filled.Update(CheckTsv(row));
  if (!errors_) RETURN_IF_ERROR(filled);
  for (std::string& cell : row)
    if (format_ == "tsv") absl::StrReplaceAll({{"\t", " "}, {"\r", " "}, {"\n", " "}}, &cell);
  const bool unplaced = error.empty() && !filled.ok();
  unplaced_ += unplaced;
  if (errors_) row.push_back(unplaced ? std::string(filled.message()) : error);
  return WriteRow(row);
}

absl::Status AnswerWriter::WriteRow(const std::vector<std::string>& cells) {
  const auto add = [&](std::string* out, const std::string& cell) {
    absl::StrAppend(out, format_ == "csv" ? CsvCell(cell, form_.delimiter) : cell);
  };
  std::string row = absl::StrJoin(cells, std::string(1, form_.delimiter), add);
  if (format_ == "csv" && row.empty()) row = "\"\"";
  absl::StrAppend(&row, form_.crlf ? "\r\n" : "\n");
  row = Encode(row, form_.encoding, &lost_);
  const bool utf16 = form_.encoding == Charset::kUtf16;
  const absl::string_view mark = utf16 ? "\xFF\xFE" : form_.bom ? kUtf8Mark : "";
  if (!std::exchange(begun_, true)) row.insert(0, mark.data(), mark.size());
  return writer_->WriteText(row);
}

absl::Status AnswerWriter::Finish(const std::vector<std::string>& columns) {
  const bool table = format_ == "csv" || format_ == "tsv";
  if (header_ || !table || (columns.empty() && waiting_.empty())) return absl::OkStatus();
  Cells input;
  for (const std::string& name : columns) input.emplace_back(name, "");
  if (columns.empty()) input = waiting_.front().first;
  return WriteHeader(input, AnswerCells(empty_, separator_, false));
}

}  // namespace cloze
