#include "tasks/inference/record_loop.h"

#include <utility>

#include "absl/algorithm/container.h"
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

absl::Status ForEachRecord(const Session& session, absl::Span<const Record> records,
    const RecordSource& source,
    absl::FunctionRef<absl::Status(size_t, int, std::vector<Query>*)> encode,
    absl::FunctionRef<absl::Status(absl::Span<const Query>, Emit)> run,
    absl::FunctionRef<absl::Status(size_t, const absl::StatusOr<int>&)> answer_other) {
  std::vector<Query> queries;
  std::vector<size_t> record_of;              // of each query
  std::vector<absl::StatusOr<int>> adapters;  // of each record; the error of a wrong one
  absl::Status end;                           // the error that ends the input
  for (size_t i = 0; i < records.size() && end.ok(); ++i) {
    const Record& record = records[i];
    absl::StatusOr<int> adapter = session.AdapterNamed(record.adapter);
    absl::Status status = record.wrong;
    if (status.ok()) {
      status = adapter.ok() ? encode(i, *adapter, &queries) : adapter.status();
      if (!status.ok() && record.line > 0) status = Annotate(status, source.name, ":", record.line);
    }
    record_of.resize(queries.size(), i);
    if (!status.ok()) adapter = status;
    if (status.ok() || source.keep_all || (source.keep_going && ExitOf(status) == Exit::kData)) {
      adapters.push_back(std::move(adapter));
    } else {
      end = std::move(status);
    }
  }
  absl::Status status;
  size_t next = 0;  // record to be answered
  const auto answer_others = [&](size_t last) {
    for (; next < last && status.ok(); ++next) {
      if (!absl::c_binary_search(record_of, next)) status = answer_other(next, adapters[next]);
    }
  };
  RETURN_IF_ERROR(run(queries, [&](size_t query, absl::FunctionRef<absl::Status(size_t)> answer) {
    answer_others(record_of[query]);
    if (status.ok()) status = answer(record_of[query]);
  }));
  answer_others(adapters.size());
  RETURN_IF_ERROR(status);
  return end;
}

}  // namespace cloze
