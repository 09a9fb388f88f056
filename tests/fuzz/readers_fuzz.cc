// Data files: text, TSV, CSV, JSONL, CoNLL, CoNLL-U. The first byte picks the reader, the second
// the fields of the spec.
#include "core/base/unpack.h"
#include "tasks/data/readers.h"
#include "tests/fuzz/input.h"

namespace cloze {
namespace {

DataSpec SpecOf(fuzz::Input* input, DataSpec::Format format, const std::string& path) {
  const uint8_t bits = input->Byte();
  DataSpec spec;
  spec.add_files(path);
  spec.set_format(format);
  spec.set_header((bits & 1) == 0);
  if (bits & 2) spec.set_documents(DataSpec::LINE);
  if (bits & 4) spec.set_text_pair_field("2");
  if (bits & 8) spec.set_text_field("1");
  if (bits & 16) spec.set_label_field("3");
  if (bits & 32) spec.set_words_field("2");
  if (bits & 64) spec.set_tags_field("3");
  if (bits & 128) spec.set_max_examples(2);
  return spec;
}

void Documents(const DataSpec& spec) {
  auto reader = DocumentReader::Open(spec);
  fuzz::CheckError(reader.status());
  DocumentPiece piece;
  for (bool more = reader.ok(), last = true; more;) {
    const auto next = reader->Next(&piece);
    fuzz::CheckError(next.status());
    more = next.ok() && *next;
    if (!more) break;
    CLOZE_CHECK(piece.first == last && static_cast<int64_t>(piece.text.size()) <= kPieceBytes);
    last = piece.last;
  }
}

void Texts(const DataSpec& spec, Labels labels) {
  auto reader = TextReader::Open(spec, labels);
  fuzz::CheckError(reader.status());
  TextExample example;
  for (bool more = reader.ok(); more;) {
    const auto next = reader->Next(&example);
    fuzz::CheckError(next.status());
    more = next.ok() && *next;
    if (more)
      CLOZE_CHECK(example.label.empty() == (labels == Labels::kIgnored) && example.line > 0);
  }
}

void Sentences(const DataSpec& spec, Labels labels) {
  auto reader = TaggedReader::Open(spec, labels);
  fuzz::CheckError(reader.status());
  TaggedSentence sentence;
  for (bool more = reader.ok(); more;) {
    const auto next = reader->Next(&sentence);
    fuzz::CheckError(next.status());
    more = next.ok() && *next;
    if (!more) break;
    CLOZE_CHECK(!sentence.words.empty() && sentence.lines.size() == sentence.words.size());
    CLOZE_CHECK(sentence.tags.size() == (labels == Labels::kIgnored ? 0 : sentence.words.size()));
  }
}

// The raw lines, side by side, are the file; a column replaced by itself leaves them as they are.
void RawLines(DataSpec spec, absl::string_view bytes) {
  spec.clear_max_examples();
  auto reader = TaggedReader::Open(spec, Labels::kIgnored, /*keep_lines=*/true);
  fuzz::CheckError(reader.status());
  if (!reader.ok()) return;
  TaggedSentence sentence;
  std::string all;
  while (true) {
    const auto next = reader->Next(&sentence);
    if (!next.ok()) return;
    if (!*next) break;
    for (const std::string& line : sentence.file_lines) all += line;
    CLOZE_CHECK(sentence.word_lines.size() == sentence.words.size());
    ReplaceTags(sentence, std::vector<std::string>(sentence.words.size(), "X Y\t\n"));
  }
  CLOZE_CHECK(Unpacker::For(bytes) != nullptr || absl::string_view(all) == bytes);
}

}  // namespace
}  // namespace cloze

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  fuzz::Input input(data, size);
  static constexpr DataSpec::Format kFormats[] = {DataSpec::TEXT, DataSpec::TSV, DataSpec::CSV,
      DataSpec::JSONL, DataSpec::CONLLU, DataSpec::CONLL, DataSpec::FASTTEXT};
  const uint8_t kind = input.Byte();
  const DataSpec::Format format = kFormats[(kind & 128) != 0 ? 6 : kind % 6];
  const Labels labels = (kind & 64) != 0 ? Labels::kIgnored : Labels::kRequired;
  const absl::string_view bytes = input.Rest().empty() ? input.Rest() : input.Rest().substr(1);
  const fuzz::File file(bytes);
  const DataSpec spec = SpecOf(&input, format, file.path());
  Documents(spec);
  Texts(spec, labels);
  Sentences(spec, labels);
  if (format == DataSpec::CONLLU || format == DataSpec::CONLL) RawLines(spec, bytes);
  return 0;
}
