#include "tasks/inference/encode_records.h"

#include <cstdio>
#include <utility>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// True if nobody can see a character of `text`. Private characters may have a form.
bool IsUnseen(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    at += c.size;
    const bool has_form = (c.value >= 0xE000 && c.value <= 0xF8FF) || c.value >= 0xF0000 ||
                          c.value == kReplacementCharacter;
    if (!IsSpace(c.value) && (has_form || !IsRemoved(c.value))) return false;
  }
  return true;
}

}  // namespace

bool IsEmpty(const Record& record) {
  if (!record.wrong.ok()) return false;
  switch (record.kind) {
    case Record::Kind::kText: return IsUnseen(record.text);
    case Record::Kind::kPair: return IsUnseen(record.text) && IsUnseen(record.text_pair);
    case Record::Kind::kWords: return record.words.empty();
    case Record::Kind::kIds: return record.ids.empty();
  }
  return false;
}

void ReportEmpty(int64_t count, absl::string_view answer) {
  if (count == 0) return;
  std::fprintf(stderr, "cloze: empty: %s, %s\n", Counted(count, "text").c_str(),
      std::string(answer).c_str());
}

EncodedRecords EncodeRecords(const Session& session, absl::Span<const Record> records,
    const std::string& source, bool keep_going,
    absl::FunctionRef<absl::Status(size_t, int)> encode) {
  EncodedRecords encoded;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const absl::StatusOr<int> adapter = session.AdapterNamed(record.adapter);
    absl::Status status = record.wrong;
    if (status.ok()) {
      status = adapter.ok() ? encode(i, *adapter) : adapter.status();
      if (!status.ok() && record.line > 0) status = Annotate(status, source, ":", record.line);
    }
    if (!status.ok() && !(keep_going && ExitOf(status) == Exit::kData)) {
      encoded.end = std::move(status);
      break;
    }
    encoded.adapters.push_back(status.ok() ? *adapter : kDefaultAdapter);
    encoded.failures.push_back(std::move(status));
  }
  return encoded;
}

}  // namespace cloze
