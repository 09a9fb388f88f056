#include "tests/rules/source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cloze {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool EndsIn(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
    return name.size() >= ending.size() &&
           name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
  });
}

SourceFile Read(const std::filesystem::path& root, const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  SourceFile file;
  file.path = std::filesystem::relative(path, root).string();
  for (std::string line; std::getline(text, line);) file.lines.push_back(line);
  if (EndsIn(file.path, {".cc", ".h"})) file.code = StripComments(text.str());
  return file;
}

}  // namespace

std::vector<std::string> Identifiers(const std::string& line) {
  std::vector<std::string> names;
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && IsWord(line[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    size_t next = end;
    while (next < line.size() && line[next] == ' ') ++next;
    names.push_back(line.substr(i, end - i) + (next < line.size() && line[next] == '(' ? "(" : ""));
    i = end;
  }
  return names;
}

std::string Included(const std::string& line) {
  if (line.compare(0, 9, "#include ") != 0) return "";
  const size_t begin = line.find_first_of("\"<", 9);
  const size_t end = line.find_first_of("\">", begin + 1);
  return begin == std::string::npos || end == std::string::npos
             ? ""
             : line.substr(begin + 1, end - begin - 1);
}

std::vector<std::string> StripComments(const std::string& text) {
  enum { kCode, kLine, kBlock, kString, kChar, kRaw } state = kCode;
  std::vector<std::string> lines(1);
  std::string delimiter;  // of a raw literal
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\n') {
      lines.emplace_back();
      if (state == kLine) state = kCode;
      continue;
    }
    switch (state) {
      case kCode:
        if (c == '/' && next == '/') {
          state = kLine;
        } else if (c == '/' && next == '*') {
          state = kBlock, ++i;
        } else {
          lines.back() += c;
          const char before = i > 0 ? text[i - 1] : ' ';
          if (c == '"' && before == 'R') {
            delimiter = text.substr(i + 1, text.find('(', i) - i - 1);
            state = kRaw;
          } else if (c == '"') {
            state = kString;
          } else if (c == '\'' && !IsWord(before)) {  // not a separator of digits
            state = kChar;
          }
        }
        break;
      case kLine: break;
      case kBlock:
        if (c == '*' && next == '/') state = kCode, ++i;
        break;
      case kString:
      case kChar:
        if (c == '\\') ++i;
        if (c == (state == kString ? '"' : '\'')) lines.back() += c, state = kCode;
        break;
      case kRaw:
        if (c == ')' && text.compare(i + 1, delimiter.size(), delimiter) == 0 &&
            text.compare(i + 1 + delimiter.size(), 1, "\"") == 0) {
          i += delimiter.size() + 1, lines.back() += '"', state = kCode;
        }
        break;
    }
  }
  return lines;
}

namespace {

size_t Indent(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::string FirstWord(const std::string& line) {
  const size_t begin = Indent(line);
  size_t end = begin;
  while (end < line.size() && IsWord(line[end])) ++end;
  return line.substr(begin, end - begin);
}

// Counts what the body of a class declares, in lines (first, last): each statement at the body's
// own indentation, over several lines or not, is a type, data or a method.
void CountMembers(const SourceFile& file, size_t first, size_t last, Block* block) {
  const size_t indent = Indent(file.code[first]) + 2;
  static const std::vector<std::string> kNeither = {
      "using", "enum", "friend", "static_assert", "template", "class", "struct", "typedef"};
  for (size_t i = first + 1; i < last; ++i) {
    const std::string& line = file.code[i];
    if (Indent(line) != indent || line.size() == indent) continue;
    if (line[indent] == '}' || line[indent] == '#') continue;
    const std::string word = FirstWord(line);
    if (std::find(kNeither.begin(), kNeither.end(), word) != kNeither.end()) continue;
    int64_t depth = 0, names = 1;
    bool call = false;
    for (const char c : line.substr(0, line.find_first_of("={"))) {
      if (c == '(') call = true;
      depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    }
    for (const char c : line) {
      depth += c == '<' || c == '(' || c == '{' ? 1 : c == '>' || c == ')' || c == '}' ? -1 : 0;
      if (c == ',' && depth == 0) ++names;
    }
    (call ? block->methods : block->members) += call ? 1 : names;
  }
}

// Returns the name of the class whose head is `head`: the last identifier before its bases.
std::string ClassName(const std::string& head) {
  std::string name;
  for (const std::string& word : Identifiers(head.substr(0, head.find_first_of(":{")))) {
    if (word != "final") name = word;
  }
  return name;
}

}  // namespace

std::vector<Block> Blocks(const SourceFile& file) {
  static const std::vector<std::string> kOther = {"namespace", "enum", "extern", "union"};
  std::vector<Block> blocks;
  size_t function_end = 0;  // of the function that the scan is in
  for (size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    if (i < function_end || line.empty() || line.back() != '{') continue;
    // The head begins at the last line with less indentation than a continuation.
    size_t first = i;
    while (first > 0 && !file.code[first - 1].empty() &&
           std::string(";{}:").find(file.code[first - 1].back()) == std::string::npos)
      --first;
    const std::string word = FirstWord(file.code[first]);
    const std::string close(Indent(file.code[first]), ' ');
    size_t last = i + 1;
    while (
        last < file.code.size() && file.code[last].compare(0, close.size() + 1, close + "}") != 0)
      ++last;
    if (last == file.code.size()) continue;
    Block block;
    block.first = first;
    block.lines = last - first + 1;
    std::string head;
    for (size_t j = first; j <= i; ++j) head += file.code[j];
    const bool has_arguments = head.find('(') != std::string::npos;
    block.is_class =
        !has_arguments && word != "enum" &&
        (head.find("class ") != std::string::npos || head.find("struct ") != std::string::npos);
    if (block.is_class) {
      block.name = ClassName(head);
      CountMembers(file, i, last, &block);
    } else if (!has_arguments || std::find(kOther.begin(), kOther.end(), word) != kOther.end()) {
      continue;
    } else {
      function_end = last + 1;
    }
    blocks.push_back(block);
  }
  return blocks;
}

std::vector<SourceFile> ReadTree(const std::vector<std::string>& endings) {
  namespace fs = std::filesystem;
  const fs::path root = CLOZE_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const char* folder :
      {"core", "docs", "encoder", "proto", "tasks", "tests", "third_party", "tools", ".ci"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file() && EndsIn(entry.path().filename().string(), endings))
        files.push_back(Read(root, entry.path()));
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file() && EndsIn(entry.path().filename().string(), endings))
      files.push_back(Read(root, entry.path()));
  }
  std::sort(files.begin(), files.end(),
      [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace cloze
