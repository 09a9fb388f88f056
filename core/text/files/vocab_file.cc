// vocab.txt, and the checks that every vocabulary must pass.
#include <algorithm>

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer/token_order.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {
namespace {

constexpr size_t kMaxAddedBytes = 256;

std::string Place(const std::string& origin, bool lines, int64_t id) {
  return lines ? absl::StrCat(QuotePath(origin), ":", id + 1)
               : absl::StrCat(QuotePath(origin), ": token ", id);
}

absl::Status CheckToken(const std::string& token) {
  if (token.empty()) return Error(Exit::kData, "blank, a token expected");
  if (token.size() > kMaxTokenBytes) {
    return Error(Exit::kData, absl::StrCat("token of ", token.size(), " bytes, at most ",
                                  kMaxTokenBytes, " are allowed; is this a vocabulary?"));
  }
  if (!IsUtf8(token))
    return Error(Exit::kData, absl::StrCat("token ", Quote(token), " is not UTF-8"));
  if (token.find_first_of("\n\r") != std::string::npos)
    return Error(Exit::kData, absl::StrCat("token ", Quote(token), " holds a line break"));
  return absl::OkStatus();
}

absl::Status TooMany(const std::string& origin) {
  return Error(Exit::kLimit, absl::StrCat(QuotePath(origin), ": at most ", kMaxTokens,
                                 " tokens and ", kMaxVocabBytes, " bytes of them are allowed"));
}

absl::Status CheckDuplicates(
    const std::string& origin, bool lines, const std::vector<std::string>& tokens) {
  const std::vector<int32_t> order = SortedIds(tokens);
  const auto twice = std::adjacent_find(
      order.begin(), order.end(), [&](int32_t a, int32_t b) { return tokens[a] == tokens[b]; });
  if (twice == order.end()) return absl::OkStatus();
  return Error(
      Exit::kData, absl::StrCat(Place(origin, lines, twice[1]), ": token ", Quote(tokens[*twice]),
                       " is a duplicate of ", lines ? "line " : "token ", twice[0] + lines));
}

// Fills *name with the first of `spellings` that is a token, or checks that the given name is one.
absl::Status FindSpecial(const std::string& origin, const std::vector<std::string>& tokens,
    absl::string_view role, std::initializer_list<const char*> spellings, bool required,
    std::string* name) {
  const auto has = [&](const std::string& token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  if (!name->empty()) {
    if (has(*name)) return absl::OkStatus();
    return Error(Exit::kData, absl::StrCat(QuotePath(origin), ": the ", role, " token ",
                                  Quote(*name), " is not in the vocabulary"));
  }
  for (const char* spelling : spellings) {
    if (!has(spelling)) continue;
    *name = spelling;
    return absl::OkStatus();
  }
  if (!required) return absl::OkStatus();
  return Error(Exit::kData,
      absl::StrCat(QuotePath(origin), ": no ", role, " token, ", *spellings.begin(), " or ",
          spellings.begin()[1], " expected; is this a BERT or RoBERTa vocabulary?"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadVocabFile(const std::string& path) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, 1 << 16));
  std::vector<std::string> tokens;
  std::string line;
  int64_t bytes = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    if (!more) return tokens;
    // Spaces at the end are no part of a token, as in Hugging Face's reader.
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.pop_back();
    if (absl::Status status = CheckToken(line); !status.ok())
      return Annotate(status, Place(path, true, tokens.size()));
    bytes += line.size();
    if (tokens.size() >= kMaxTokens || bytes > kMaxVocabBytes) return TooMany(path);
    tokens.push_back(line);
  }
}

absl::Status CheckTokens(const std::string& origin, bool lines, TokenizerData* data) {
  const std::vector<std::string>& tokens = data->tokens;
  int64_t bytes = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (absl::Status status = CheckToken(tokens[id]); !status.ok())
      return Annotate(status, Place(origin, lines, id));
    bytes += tokens[id].size();
  }
  if (tokens.size() > kMaxTokens || bytes > kMaxVocabBytes) return TooMany(origin);
  // Added tokens are looked for at each byte of a text.
  for (const int32_t id : data->added) {
    if (tokens[id].size() <= kMaxAddedBytes) continue;
    return Error(Exit::kData, absl::StrCat(QuotePath(origin), ": added_tokens: ", Quote(tokens[id]),
                                  " is longer than ", kMaxAddedBytes, " bytes"));
  }
  RETURN_IF_ERROR(CheckDuplicates(origin, lines, tokens));
  SpecialNames& names = data->names;
  RETURN_IF_ERROR(FindSpecial(origin, tokens, "unknown", {"[UNK]", "<unk>"}, true, &names.unk));
  RETURN_IF_ERROR(
      FindSpecial(origin, tokens, "class", {"[CLS]", "<class>", "<s>"}, true, &names.cls));
  RETURN_IF_ERROR(
      FindSpecial(origin, tokens, "separator", {"[SEP]", "<sep>", "</s>"}, true, &names.sep));
  RETURN_IF_ERROR(FindSpecial(origin, tokens, "padding", {"[PAD]", "<pad>"}, false, &names.pad));
  return FindSpecial(origin, tokens, "mask", {"[MASK]", "<mask>"}, false, &names.mask);
}

}  // namespace cloze
