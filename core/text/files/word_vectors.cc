#include "core/text/files/word_vectors.h"

#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr int64_t kMaxDim = 65536;

// Parses "words dimensions".
absl::Status ParseHeader(absl::string_view line, int64_t* words, int64_t* dim) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], words) || !absl::SimpleAtoi(parts[1], dim) ||
      *words < 1 || *words > INT32_MAX || *dim < 1) {
    return Error(Exit::kData, "not a file of word vectors: expected \"WORDS DIMENSIONS\", found \"",
        Quote(line), "\"");
  }
  if (*dim > kMaxDim) return Error(Exit::kLimit, *dim, " dimensions: expected at most ", kMaxDim);
  return absl::OkStatus();
}

// Parses a word and its numbers, which are appended to *values.
absl::Status ParseLine(
    absl::string_view line, int64_t dim, absl::string_view* word, std::vector<float>* values) {
  line = absl::StripTrailingAsciiWhitespace(line);
  *word = line.substr(0, line.find(' '));
  const size_t before = values->size();
  for (const absl::string_view part :
      absl::StrSplit(line.substr(word->size()), ' ', absl::SkipEmpty())) {
    float value = 0;
    if (!ParseDecimal(part, &value)) {
      return Error(Exit::kData, "\"", Quote(*word), "\": expected a finite number, found \"",
          Quote(part), "\"");
    }
    values->push_back(value);
  }
  const auto found = static_cast<int64_t>(values->size() - before);
  if (found == dim) return absl::OkStatus();
  return Error(
      Exit::kData, "\"", Quote(*word), "\": expected ", Counted(dim, "number"), ", found ", found);
}

}  // namespace

bool IsWordVectors(const std::string& path) {
  return absl::EndsWithIgnoreCase(UnpackedName(path), ".vec") && !IsDirectory(path);
}

absl::StatusOr<WordVectors> ReadWordVectors(const std::string& path) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  WordVectors vectors;
  int64_t words = 0;
  std::string line;
  const auto at = [&](const absl::Status& status) {
    return Annotate(status, QuotePath(path), ":", reader.line_number());
  };
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    if (!more) break;
    if (vectors.dim == 0) {
      RETURN_IF_ERROR(at(ParseHeader(line, &words, &vectors.dim)));
      continue;
    }
    absl::string_view word;
    const size_t before = vectors.values.size();
    RETURN_IF_ERROR(at(ParseLine(line, vectors.dim, &word, &vectors.values)));
    if (vectors.index.emplace(word, static_cast<int32_t>(vectors.words.size())).second)
      vectors.words.emplace_back(word);
    else
      vectors.values.resize(before);
    --words;
  }
  if (vectors.dim > 0 && words == 0) return vectors;
  return Error(Exit::kData, QuotePath(path), ": ",
      vectors.dim == 0 ? "is empty: expected word vectors"
      : words > 0      ? absl::StrCat("ends early: ", Counted(words, "word"), " missing")
                       : "has more words than its first line says");
}

std::string WordVectorLine(absl::string_view word, absl::Span<const float> values) {
  std::string line(word);
  char buffer[32];
  for (const float value : values) {
    const auto end =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 6).ptr;
    absl::StrAppend(&line, " ", absl::string_view(buffer, end - buffer));
  }
  return line + "\n";
}

}  // namespace cloze
