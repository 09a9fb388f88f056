#include "tools/passages.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace cloze {

absl::StatusOr<Passages> ReadPassages(const InputOptions& input) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  Passages passages;
  std::vector<Record> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(&records));
    if (records.empty()) break;
    for (Record& record : records) {
      passages.ids.push_back(record.id.empty() ? "null" : record.id);
      passages.texts.push_back(record.kind == Record::Kind::kWords
                                   ? absl::StrJoin(record.words, " ")
                                   : std::move(record.text));
    }
  }
  const auto none = [](const std::string& id) { return id == "null"; };
  if (std::all_of(passages.ids.begin(), passages.ids.end(), none)) passages.ids.clear();
  return passages;
}

absl::StatusOr<Passages> PassagesOf(const VectorIndex& index, InputOptions input,
    const std::string& path, const std::string& option) {
  if (path.empty()) return Passages{index.ids(), {}};
  input.path = path, input.blank_lines = true;
  input.text_pair_field.clear(), input.pairs = false;
  if (!FormatByExtension(path).empty()) input.format.clear();  // that of the queries
  ASSIGN_OR_RETURN(Passages passages, ReadPassages(input));
  const std::string where = absl::StrCat(option, " ", QuotePath(path), ": ");
  if (std::ssize(passages.texts) != index.rows())
    return Error(Exit::kMismatch, where, Counted(std::ssize(passages.texts), "text"), " for ",
        Counted(index.rows(), "vector"), ": expected the texts that were encoded");
  if (index.ids().empty()) return passages;
  if (passages.ids.empty()) passages.ids = index.ids();
  for (int64_t r = 0; r < index.rows(); ++r) {
    if (passages.ids[r] != index.ids()[r])
      return Error(Exit::kMismatch, where, "text ", r + 1, " has the id ", Quote(passages.ids[r]),
          ", its vector ", Quote(index.ids()[r]), ": expected the texts that were encoded");
  }
  return passages;
}

void AddPassage(
    const Passages& passages, int64_t row, const std::string& prefix, OrderedJson* object) {
  (*object)[prefix + "row"] = row;
  if (!passages.ids.empty()) (*object)[prefix + "id"] = OrderedJson::parse(passages.ids[row]);
  if (!passages.texts.empty()) (*object)[prefix + "text"] = passages.texts[row];
}

absl::Status ObjectWriter::Write(const OrderedJson& object) {
  if (!csv_) return writer_.Write(ToJsonLine(object));
  std::vector<std::string> names, cells;
  for (const auto& [name, value] : object.items()) {
    names.push_back(name);
    cells.push_back(CsvCell(CellText(value)));
  }
  if (!std::exchange(header_, true)) RETURN_IF_ERROR(writer_.Write(absl::StrJoin(names, ",")));
  return writer_.Write(absl::StrJoin(cells, ","));
}

}  // namespace cloze
