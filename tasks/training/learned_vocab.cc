#include "tasks/training/learned_vocab.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/unicode/unicode.h"
#include "tasks/data/cache.h"
#include "tasks/data/readers.h"
#include "tasks/labels.h"
#include "tasks/run/run_folder.h"

namespace cloze {
namespace {

constexpr int64_t kSampleBytes = 4 << 20;  // of texts, that decide on kind and size

std::string WordsOf(TextExample& row) {
  return absl::StrCat(row.text, row.text_pair.empty() ? "" : "\n", row.text_pair);
}
std::string WordsOf(TaggedSentence& sentence) { return absl::StrJoin(sentence.words, " "); }
std::string WordsOf(DocumentPiece& piece) { return std::move(piece.text); }

bool GoesOn(const TextExample&) { return false; }
bool GoesOn(const TaggedSentence&) { return false; }
bool GoesOn(const DocumentPiece& piece) { return !piece.last; }

// When reading ends.
struct ReadingEnd {
  const std::atomic<bool>* stop = nullptr;
  int64_t bytes = 0;  // of texts that are left
};

template <typename Item>
class TrainingTexts : public TextSource {
 public:
  TrainingTexts(ReaderOf<Item> reader, ReadingEnd end) : reader_(std::move(reader)), left_(end) {}

  absl::StatusOr<bool> Next(std::string* text) override {
    Item item;
    RETURN_IF_ERROR(CheckStop({.cache_dir = "", .stop = left_.stop}));
    if (left_.bytes <= 0) return false;
    ASSIGN_OR_RETURN(const bool more, reader_.Next(&item));
    if (!more) return false;
    ++line_;
    goes_on_ = GoesOn(item);
    *text = WordsOf(item);
    left_.bytes -= static_cast<int64_t>(text->size());
    return true;
  }
  absl::string_view end() const override { return goes_on_ ? "" : "\n"; }
  int64_t line() const override { return line_; }
  int64_t position() const override { return reader_.position(); }

 private:
  ReaderOf<Item> reader_;
  ReadingEnd left_;
  int64_t line_ = 0;  // texts, as files of all formats have them
  bool goes_on_ = false;
};

template <typename Item>
absl::StatusOr<std::unique_ptr<TextSource>> OpenTrainingTexts(
    const DataSpec& data, Labels labels, ReadingEnd end, const LabelRule& rule = {}) {
  ASSIGN_OR_RETURN(
      ReaderOf<Item> reader, ReaderOf<Item>::Open(data, labels, /*keep_lines=*/false, rule));
  return std::make_unique<TrainingTexts<Item>>(std::move(reader), end);
}

// Opens the texts as the task does, so that the same ones are held out.
absl::StatusOr<std::unique_ptr<TextSource>> OpenTrainingTexts(
    const TaskSpec& spec, ReadingEnd end) {
  const DataSpec& data = spec.train();
  const SequenceClassificationSpec& classes = spec.sequence_classification();
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm:
    case TaskSpec::kCausalLm: return OpenTrainingTexts<DocumentPiece>(data, Labels::kIgnored, end);
    case TaskSpec::kTokenTagging:
      return OpenTrainingTexts<TaggedSentence>(data, Labels::kRequired, end);
    case TaskSpec::kSequenceClassification:
      return OpenTrainingTexts<TextExample>(data, LabelsToRead(classes), end, LabelRuleOf(classes));
    default: return OpenTrainingTexts<TextExample>(data, Labels::kIgnored, end);
  }
}

// Facts that decide on kind and size.
struct TextFacts {
  double bytes = 0;     // of all texts, estimated from the first ones
  double unspaced = 0;  // share of the letters
};

absl::StatusOr<TextFacts> LookAtTexts(const TaskSpec& spec, int64_t stored) {
  ASSIGN_OR_RETURN(const auto texts, OpenTrainingTexts(spec, {nullptr, kSampleBytes}));
  TextFacts facts;
  int64_t letters = 0, unspaced = 0, read = 0;
  for (std::string text;;) {
    ASSIGN_OR_RETURN(const bool more, texts->Next(&text));
    if (!more) break;
    read += static_cast<int64_t>(text.size());
    for (const char32_t c : CodePoints(text)) {
      letters += IsLetter(c);
      unspaced += IsUnspaced(c);
    }
  }
  const int64_t position = texts->position();
  const bool all = read < kSampleBytes || position <= 0;
  facts.bytes = all ? read : double(read) * std::max(stored, position) / position;
  facts.unspaced = letters > 0 ? double(unspaced) / letters : 0;
  return facts;
}

}  // namespace

VocabOptions VocabOptionsFor(const TaskSpec& spec, int64_t text_bytes, double unspaced) {
  VocabOptions options;
  const bool writes = spec.has_sequence_to_sequence();
  if (writes || unspaced > 0.2) options.kind = &kUnigramVocab;
  const bool keeps_case =
      writes || spec.has_token_tagging() || spec.has_masked_lm() || spec.has_causal_lm();
  const ModelSpec& model = spec.model();
  options.normalizer.lowercase = model.has_lowercase() ? model.lowercase() : !keeps_case;
  options.normalizer.strip_accents = false;
  // About as many tokens as words that occur more than once or twice.
  constexpr int32_t kUnit = 256, kMin = 1024, kMax = 16384;
  const double size = 4.4 * std::sqrt(static_cast<double>(text_bytes));
  options.size = std::clamp(static_cast<int32_t>(std::min(size, 1e6)) / kUnit * kUnit, kMin, kMax);
  return options;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LearnTokenizer(
    const TaskSpec& spec, const LearnOptions& options, std::string* report) {
  RETURN_IF_ERROR(RequireFiles(spec.train(), "the vocabulary is learned in a first pass",
      "save it as a file, or set model.tokenizer"));
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(spec.train()));
  int64_t stored = 0;
  for (const DataFile& file : files) stored += file.size;
  ASSIGN_OR_RETURN(const TextFacts facts, LookAtTexts(spec, stored));
  const VocabOptions chosen =
      VocabOptionsFor(spec, static_cast<int64_t>(facts.bytes), facts.unspaced);
  const auto show = [&](const char*, int64_t done, int64_t) {
    if (options.progress != nullptr) options.progress(done, std::max(done, stored));
  };
  // The reader goes through all files.
  const auto open = [&](const std::string&) {
    return OpenTrainingTexts(spec, {options.stop, options.most_bytes});
  };
  ASSIGN_OR_RETURN(VocabResult result, TrainVocab({files[0].path}, chosen, show, open));
  if (report != nullptr) {
    *report = absl::StrCat("vocabulary: ", result.data.tokens.size(), " tokens (",
        result.data.scheme->type(), chosen.normalizer.lowercase ? ", lower case" : "",
        ") learned from ", result.words, " words of the training texts");
  }
  return Tokenizer::Create(std::move(result.data));
}

absl::Status MakeVocabFolder(const TaskSpec& spec, const std::string& checkpoint,
    const LearnOptions& options, std::string* report) {
  const std::string folder = VocabFolder(spec);
  if (!checkpoint.empty() && PathExists(folder)) return absl::OkStatus();
  const auto tokenizer =
      checkpoint.empty() ? LearnTokenizer(spec, options, report) : LoadTokenizer(checkpoint, true);
  RETURN_IF_ERROR(tokenizer.status());
  if (PathExists(folder)) {  // of a run that was killed before its first checkpoint
    const auto before = LoadTokenizer(folder, true);
    if (before.ok() && (*before)->SameIds(**tokenizer)) return absl::OkStatus();
    return Error(Exit::kCannotCreate, QuotePath(folder),
        ": is not the vocabulary that this run learns from its texts (set model.tokenizer to use "
        "it, or choose another output.directory)");
  }
  ASSIGN_OR_RETURN(AtomicFolder files, AtomicFolder::Create(folder));
  RETURN_IF_ERROR(SaveTokenizer(**tokenizer, files.path(), spec.model().encoder().max_positions()));
  return files.Commit();
}

}  // namespace cloze
