// A vocab.txt or, if it starts with '{', a tokenizer.json: what is accepted tokenizes, and is the
// same when it is written and read again. With 't' in front: a text to learn one from; with 'u', by
// Unigram.
#include "core/text/files/tokenizer_files.h"
#include "core/text/learning/vocab_trainer.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/fuzz/input.h"

namespace cloze {
namespace {

void Learn(absl::string_view text, const VocabKind* kind) {
  const fuzz::File file(text);
  VocabOptions options;
  options.kind = kind;
  options.size = 64;
  options.min_count = 1;
  const auto learned = TrainVocab({file.path()}, options, [](const char*, int64_t, int64_t) {});
  fuzz::CheckError(learned.status());
  if (learned.ok()) CLOZE_CHECK(Tokenizer::Create(learned->data).ok());
}

void Read(absl::string_view text) {
  static const fuzz::Folder copy;
  const fuzz::File file(text);
  static const fuzz::Folder folder;
  const bool json = !text.empty() && text[0] == '{';
  const std::string path = folder.path() + "/tokenizer.json";
  if (json) CLOZE_CHECK(WriteFileAtomically(path, text).ok());
  const auto tokenizer = LoadTokenizer(json ? path : file.path(), true);
  fuzz::CheckError(tokenizer.status());
  if (!tokenizer.ok()) return;
  const std::string sample = absl::StrCat(text.substr(0, 4096), " a b");
  const Encoding encoding = (*tokenizer)->Encode(sample);
  for (const int32_t id : encoding.ids) CLOZE_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
  for (const Span span : encoding.bytes)
    CLOZE_CHECK(span.begin >= 0 && span.begin <= span.end && span.end <= sample.size());
  std::vector<int32_t> ids;
  (*tokenizer)->AppendIds(sample, &ids);
  CLOZE_CHECK(ids == (*tokenizer)->Encode(sample, false).ids);
  (*tokenizer)->Decode(ids);
  CLOZE_CHECK(SaveTokenizer(**tokenizer, copy.path(), 128).ok());
  const auto again = LoadTokenizer(copy.path(), true);
  CLOZE_CHECK(again.ok() && (*again)->Encode(sample).ids == encoding.ids);
}

}  // namespace
}  // namespace cloze

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.empty() && (text[0] == 't' || text[0] == 'u')) {
    // Without memory for an object that it builds, nlohmann-json asserts.
    if (cloze::fuzz::memory_fails && text[0] == 'u') return 0;
    cloze::Learn(text.substr(1), text[0] == 't' ? &cloze::kWordPieceVocab : &cloze::kUnigramVocab);
  } else {
    cloze::Read(text);
  }
  return 0;
}
