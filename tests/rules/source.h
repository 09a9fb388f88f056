// The source tree as the rules see it.
#ifndef CLOZE_TESTS_RULES_SOURCE_H_
#define CLOZE_TESTS_RULES_SOURCE_H_

#include <string>
#include <vector>

namespace cloze {

// One file of the tree.
struct SourceFile {
  std::string path;                // from the root: "core/base/file.h"
  std::vector<std::string> lines;  // as they stand
  std::vector<std::string> code;  // the same without comments and, between quotes, without the text
                                  // of literals; for C++ only
};

// Identifiers and numbers of a line of code; those directly followed by "(" end in "(".
std::vector<std::string> Identifiers(const std::string& line);

// What a line includes in quotes or angle brackets; "" when it is no include. Works on lines as
// they stand.
std::string Included(const std::string& line);

// `text` without comments and texts of literals, line by line.
std::vector<std::string> StripComments(const std::string& text);

// A class or a function with a body of several lines.
struct Block {
  bool is_class = false;
  std::string name;     // of a class
  size_t first = 0;     // line of its name, or where its head begins
  int64_t lines = 0;    // from there to the closing brace
  int64_t members = 0;  // of a class: data members
  int64_t methods = 0;  // of a class: constructors and methods
};

// The classes and functions of a C++ file that clang-format has laid out; not lambdas, nor what
// stands in a function.
std::vector<Block> Blocks(const SourceFile& file);

// All files below the product's folders and the tests, and those at the top, whose names end in one
// of `endings`; sorted by path.
std::vector<SourceFile> ReadTree(const std::vector<std::string>& endings);

}  // namespace cloze

#endif  // CLOZE_TESTS_RULES_SOURCE_H_
