#include "tools/answers.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/json.h"
#include "tools/text_table.h"

namespace cloze {
namespace {

std::string CellText(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : ToJsonLine(value);
}

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

// Returns the name of a member of an answer beside those of the input.
std::string NameBeside(const std::vector<std::string>& taken, std::string name) {
  while (absl::c_linear_search(taken, name)) name.insert(0, "predicted_");
  return name;
}

using Cells = std::vector<std::pair<std::string, std::string>>;

// Returns the columns of the input.
Cells InputCells(const Record& record, const std::vector<std::string>& columns) {
  Cells cells;
  if (!columns.empty()) {
    for (size_t i = 0; i < std::min(columns.size(), record.cells.size()); ++i)
      cells.emplace_back(columns[i], record.cells[i]);
  } else if (!record.cells.empty()) {
    const OrderedJson line = OrderedJson::parse(record.cells[0], nullptr, false);
    if (!line.is_object()) return cells;
    std::vector<std::string> names;
    for (const auto& [name, value] : line.items()) names.push_back(name);
    std::vector<JsonValue> values;  // with numbers as they are written
    const bool numbers = ParseJsonLine(record.cells[0], names, &values).ok();
    for (size_t i = 0; i < names.size(); ++i) {
      const bool number = numbers && values[i].kind == JsonValue::kNumber;
      cells.emplace_back(names[i], number ? values[i].text : CellText(line[names[i]]));
    }
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

// Returns the columns of an answer: lists become words between blanks, labels between separators.
Cells AnswerCells(const OrderedJson& answer, const std::string& separator) {
  Cells cells;
  for (const auto& [name, value] : answer.items()) {
    if (Repeats(name) || (name == "scores" && (value.is_array() || answer.contains("label")))) {
      continue;
    }
    if (name == "words") {
      cells.emplace_back("words", Joined(value, " ", "text"));
      if (value.empty() || value.front().is_object())
        cells.emplace_back("tags", Joined(value, " ", "label"));
    } else if (name == "scores") {
      for (const auto& [label, score] : value.items())
        cells.emplace_back("score_" + label, CellText(score));
    } else if (IsList(name)) {
      cells.emplace_back(name, Joined(value, absl::EndsWith(name, "tags") ? " " : separator));
    } else {
      cells.emplace_back(name, CellText(value));
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

std::string CsvCell(const std::string& cell) {
  const bool plain = cell.find_first_of(",\"\r\n") == std::string::npos &&
                     absl::StripAsciiWhitespace(cell).size() == cell.size();
  return plain ? cell : absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string JsonWithId(const Record& record, const OrderedJson& answer) {
  std::string line = ToJsonLine(answer);
  if (record.id.empty()) return line;
  return absl::StrCat("{\"id\": ", record.id, ", ", absl::string_view(line).substr(1));
}

absl::Status AnswerWriter::Write(
    const Record& record, const std::vector<std::string>& columns, const OrderedJson& answer) {
  const bool wrong = answer.contains("error");
  if (format_ == "table" && !wrong) return writer_->WriteText(TokenTables(answer, StyleOf(1)));
  if (format_.empty() || format_ == "table") {
    OrderedJson line = OrderedJson::object();
    if (wrong && record.line > 0) line["line"] = record.line;
    line.update(answer);
    return writer_->Write(JsonWithId(record, line));
  }
  if (format_ == "jsonl") return WriteJson(record, columns, answer);
  const Cells input = InputCells(record, columns);
  if (!wrong) return WriteCells(input, AnswerCells(answer, separator_), "");
  if (header_) return WriteCells(input, {}, answer["error"].get<std::string>());
  waiting_.emplace_back(input, answer["error"].get<std::string>());
  return absl::OkStatus();
}

absl::Status AnswerWriter::WriteJson(
    const Record& record, const std::vector<std::string>& columns, const OrderedJson& answer) {
  std::vector<std::string> names, members;
  const auto add = [&](const std::string& name, const std::string& value) {
    members.push_back(absl::StrCat(JsonString(name), ": ", value));
    names.push_back(name);
  };
  absl::string_view line;  // without its braces
  if (columns.empty() && !record.cells.empty()) {
    line = absl::StripAsciiWhitespace(record.cells[0]);
    line = absl::StripAsciiWhitespace(line.substr(1, line.size() - 2));
    const OrderedJson object = OrderedJson::parse(record.cells[0], nullptr, false);
    for (const auto& [name, value] : object.items()) names.push_back(name);
  } else if (columns.empty() && record.wrong.ok() && record.kind == Record::Kind::kIds) {
    add("ids", ToJsonLine(record.ids));
  } else {
    for (const auto& [name, value] : InputCells(record, columns)) add(name, JsonString(value));
  }
  if (answer.contains("error")) {
    if (names.empty() && !record.id.empty()) add("id", record.id);
    if (record.line > 0) add(NameBeside(names, "line"), absl::StrCat(record.line));
  }
  for (const std::string& name : names)
    if (answer.contains(name) && !absl::c_linear_search(input_, name)) input_.push_back(name);
  std::vector<std::string> taken = names;
  taken.insert(taken.end(), input_.begin(), input_.end());
  for (const auto& [name, value] : answer.items()) {
    if (Repeats(name)) continue;
    add(NameBeside(taken, name), ToJsonLine(value));
  }
  const std::string rest = absl::StrJoin(members, ", ");
  return writer_->Write(
      absl::StrCat("{", line, line.empty() || rest.empty() ? "" : ", ", rest, "}"));
}

absl::Status AnswerWriter::WriteHeader(const Cells& input, const Cells& answer) {
  for (const auto& [name, value] : input) input_.push_back(name);
  for (const auto& [name, value] : answer) answer_.push_back(name);
  std::vector<std::string> names = input_;
  for (const std::string& name : answer_) names.push_back(NameBeside(input_, name));
  if (errors_) names.push_back(NameBeside(input_, "error"));
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
  std::vector<std::string> row(input_.size() + answer_.size());
  const auto fill = [&](const Cells& cells, const std::vector<std::string>& names, size_t first) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool same = i < names.size() && names[i] == cells[i].first;
      const size_t at = same ? i : absl::c_find(names, cells[i].first) - names.begin();
      if (at == names.size()) {
        return Error(Exit::kData, "member \"", Quote(cells[i].first),
            "\": not in the first line, so it has no column (JSON lines keep it: --format jsonl)");
      }
      row[first + at] = cells[i].second;
    }
    return absl::OkStatus();
  };
  absl::Status filled = fill(input, input_, 0);
  filled.Update(fill(answer, answer_, input_.size()));
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
  if (format_ == "csv") {
    const std::string row = absl::StrJoin(cells, ",",
        [](std::string* out, const std::string& cell) { absl::StrAppend(out, CsvCell(cell)); });
    return writer_->Write(row.empty() ? "\"\"" : row);
  }
  return writer_->Write(absl::StrJoin(cells, "\t"));
}

absl::Status AnswerWriter::Finish(const std::vector<std::string>& columns) {
  const bool table = format_ == "csv" || format_ == "tsv";
  if (header_ || !table || (columns.empty() && waiting_.empty())) return absl::OkStatus();
  Cells input;
  for (const std::string& name : columns) input.emplace_back(name, "");
  return WriteHeader(columns.empty() ? Cells(waiting_.front().first) : input, {});
}

}  // namespace cloze
