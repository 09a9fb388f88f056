// FOLDERS files: a text per file, whose class is the name of the file's folder.
#include <filesystem>

#include "absl/strings/strip.h"
#include "core/base/text.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

class ClassFileReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextRow(Row* row) override {
    if (std::exchange(read_, true)) return false;
    std::string text, line;
    for (bool first = true;; first = false) {
      ASSIGN_OR_RETURN(const bool more, NextLine(&line));
      if (!more) break;
      absl::StrAppend(&text, first ? "" : "\n", absl::StripSuffix(line, "\r"));
      if (static_cast<int64_t>(text.size()) > kRowBytes)
        return Fail(0, "the text is longer than ", kRowBytes, " bytes");
    }
    const std::string label = ClassOfFile(path());
    names_ = {"file", "text"};
    row->line = 1;
    row->values = {text};
    if (request_.labels != Labels::kIgnored) row->values.push_back(label);
    if (request_.labels == Labels::kSeveral) row->list = {label};
    if (request_.keep_lines) row->cells = {path(), std::move(text)};
    return true;
  }

 private:
  bool read_ = false;
};

}  // namespace

std::string ClassOfFile(const std::string& path) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored);
  return absolute.lexically_normal().parent_path().filename().string();
}

absl::StatusOr<std::vector<std::string>> ListClassFiles(const std::string& folder) {
  std::vector<std::string> class_files, other_files;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    if (name[0] == '.') continue;
    if (!IsDirectory(path)) other_files.push_back(path);
    if (!IsDirectory(path)) continue;
    ASSIGN_OR_RETURN(const std::vector<std::string> texts, ListDirectory(path));
    for (const std::string& text : texts) {
      const std::string file = JoinPath(path, text);
      if (text[0] != '.' && !IsDirectory(file)) class_files.push_back(file);
    }
  }
  return class_files.empty() ? other_files : class_files;
}

extern const Format kFoldersFormat = {DataSpec::FOLDERS, nullptr,
    Format::kTexts | Format::kLabelledTexts,
    [](const std::string& text, const DataSpec& /*spec*/) { return text.size(); },
    OpenAs<ClassFileReader>};

}  // namespace cloze
