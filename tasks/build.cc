// The three kinds of stores.
#include "tasks/build.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "tasks/data/cache.h"
#include "tasks/data/pipeline.h"
#include "tasks/data/readers.h"
#include "tasks/data/utf8.h"
#include "tasks/iob1.h"
#include "tasks/long_text.h"
#include "tasks/windows.h"

namespace cloze {
namespace {

absl::Status RequireTokens(const Tokenizer& tokenizer, bool sep, bool mask, bool unk) {
  const SpecialIds& special = tokenizer.special();
  struct {
    bool required;
    int32_t id;
    const char* name;
  } tokens[] = {{true, special.cls, "<class> or [CLS]"}, {sep, special.sep, "<sep> or [SEP]"},
      {mask, special.mask, "<mask> or [MASK]"}, {unk, special.unk, "<unk> or [UNK]"}};
  for (const auto& [required, id, name] : tokens) {
    if (required && id < 0)
      return Error(
          Exit::kMismatch, absl::StrCat("tokenizer: no token ", name, ", which the task needs"));
  }
  return absl::OkStatus();
}

// Reports progress and looks at `stop` after each batch.
template <typename Reader>
auto Ticker(const Reader& reader, const BuildOptions& options) {
  return [&reader, &options] {
    if (options.progress) options.progress(reader.position(), reader.total_bytes());
    return CheckStop(options);
  };
}

// Cuts documents into sequences and writes them.
class MaskedLmFill {
 public:
  MaskedLmFill(const DataSpec& data, const MaskedLmSpec& task, const Tokenizer& tokenizer,
      ExampleStoreWriter* writer, DataStats* stats)
      : data_(data), tokenizer_(tokenizer), append_sep_(task.append_sep()),
        cutter_(task.max_tokens() - 1 - task.append_sep()), writer_(writer), stats_(*stats) {}

  struct Ids {
    std::vector<int32_t> ids;
    int64_t invalid = 0;
  };

  absl::Status Run(const BuildOptions& options) {
    ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(data_));
    const auto read = [&](DocumentPiece* piece, int64_t* bytes) {
      absl::StatusOr<bool> more = reader.Next(piece);
      *bytes += piece->text.size();
      return more;
    };
    const auto encode = [&](const DocumentPiece& piece, Ids* ids) {
      tokenizer_.AppendIds(piece.text, &ids->ids);
      ids->invalid = CountInvalidUtf8(piece.text);
    };
    const auto consume = [&](const DocumentPiece& piece, const Ids& ids) {
      return Consume(piece, ids);
    };
    return RunPipeline<DocumentPiece, Ids>(read, encode, consume, Ticker(reader, options));
  }

 private:
  absl::StatusOr<bool> Consume(const DocumentPiece& piece, const Ids& ids) {
    if (piece.first) {
      ++stats_.documents;
      bytes_ = tokens_ = written_ = 0;
    }
    bytes_ += piece.text.size();
    tokens_ += ids.ids.size();
    stats_.invalid_bytes += ids.invalid;
    cutter_.Add(ids.ids);
    while (cutter_.Take(piece.last, &sequence_)) {
      RETURN_IF_ERROR(Write());
      if (data_.max_examples() == 0 || writer_->size() < data_.max_examples()) continue;
      stats_.bytes += static_cast<int64_t>(static_cast<double>(bytes_) * written_ / tokens_);
      return false;
    }
    if (piece.last)
      (tokens_ > 0 ? stats_.bytes : stats_.empty_documents) += tokens_ > 0 ? bytes_ : 1;
    return true;
  }

  absl::Status Write() {
    const SpecialIds& special = tokenizer_.special();
    written_ += sequence_.size();
    stats_.text_tokens += sequence_.size();
    stats_.unknown_tokens += std::count(sequence_.begin(), sequence_.end(), special.unk);
    example_.ids.assign(1, special.cls);
    example_.ids.insert(example_.ids.end(), sequence_.begin(), sequence_.end());
    if (append_sep_) example_.ids.push_back(special.sep);
    example_.second = example_.ids.size();
    return writer_->Add(example_);
  }

  const DataSpec& data_;
  const Tokenizer& tokenizer_;
  bool append_sep_;
  SequenceCutter cutter_;
  ExampleStoreWriter* writer_;
  DataStats& stats_;
  Example example_;
  std::vector<int32_t> sequence_;
  int64_t bytes_ = 0, tokens_ = 0, written_ = 0;  // of this document
};

// A text with its target, and what the tokenizer makes of it.
struct LabelledText {
  TextExample text;
  int32_t label = 0;
  std::vector<float> values;
};
struct EncodedText {
  std::vector<TextSequence> sequences;
  int64_t cut = 0, invalid = 0;
};

// Reads labelled texts, makes sequences of them and writes these.
class ClassificationFill {
 public:
  ClassificationFill(const DataSpec& data, const SequenceClassificationSpec& task,
      const LabelIds& labels, const Tokenizer& tokenizer, ExampleStoreWriter* writer,
      DataStats* stats)
      : data_(data), task_(task), labels_(labels), tokenizer_(tokenizer), writer_(writer),
        stats_(*stats) {}

  absl::Status Run(const BuildOptions& options) {
    const bool several = task_.kind() == SequenceClassificationSpec::MULTI_LABEL;
    ASSIGN_OR_RETURN(
        TextReader reader, TextReader::Open(data_, several ? Labels::kSeveral : Labels::kRequired));
    const auto read = [&](LabelledText* item, int64_t* bytes) -> absl::StatusOr<bool> {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&item->text));
      if (!more) return false;
      *bytes += item->text.text.size() + item->text.text_pair.size();
      RETURN_IF_ERROR(TakeTarget(reader, item));
      return true;
    };
    const bool pair = !data_.text_pair_field().empty();
    const auto encode = [&](const LabelledText& item, EncodedText* out) {
      out->sequences = SequencesOfText(tokenizer_, item.text.text,
          pair ? &item.text.text_pair : nullptr, task_.max_tokens(), task_.long_texts(), &out->cut);
      out->invalid = CountInvalidUtf8(item.text.text) + CountInvalidUtf8(item.text.text_pair);
    };
    const auto consume = [&](const LabelledText& item, const EncodedText& encoded) {
      return Write(item, encoded);
    };
    return RunPipeline<LabelledText, EncodedText>(read, encode, consume, Ticker(reader, options));
  }

 private:
  absl::Status TakeTarget(const TextReader& reader, LabelledText* item) const {
    switch (task_.kind()) {
      case SequenceClassificationSpec::SINGLE_LABEL: {
        ASSIGN_OR_RETURN(item->label, IdOf(reader, item->text.label));
        break;
      }
      case SequenceClassificationSpec::MULTI_LABEL:
        item->values.assign(labels_.size(), 0);
        for (const std::string& label : LabelsOf(item->text, task_.label_separator())) {
          ASSIGN_OR_RETURN(const int32_t id, IdOf(reader, label));
          item->values[id] = 1;
        }
        break;
      case SequenceClassificationSpec::REGRESSION: {
        float value = 0;
        if (!absl::SimpleAtof(item->text.label, &value) || !std::isfinite(value)) {
          return Error(
              Exit::kData, absl::StrCat(reader.Where(), ": label_field: \"",
                               Quote(item->text.label), "\" is not a finite number; REGRESSION ",
                               "learns numbers, SINGLE_LABEL and MULTI_LABEL names"));
        }
        item->values = {value};
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> IdOf(const TextReader& reader, const std::string& label) const {
    const int32_t id = labels_.Find(label);
    if (id >= 0) return id;
    return labels_.Unknown(reader.Where(), "label_field", label);
  }

  absl::StatusOr<bool> Write(const LabelledText& item, const EncodedText& encoded) {
    const SpecialIds& special = tokenizer_.special();
    int64_t text_tokens = 0;
    Example example;
    example.rows = {0};
    if (item.values.empty()) example.labels = {item.label};
    example.values = item.values;
    for (const TextSequence& sequence : encoded.sequences) {
      example.ids = sequence.ids;
      example.second = sequence.second;
      text_tokens += std::count_if(sequence.ids.begin(), sequence.ids.end(),
          [&](int32_t id) { return id != special.cls && id != special.sep; });
      stats_.unknown_tokens += std::count(sequence.ids.begin(), sequence.ids.end(), special.unk);
      RETURN_IF_ERROR(writer_->Add(example));
      example.continues = true;
    }
    ++stats_.documents;
    stats_.empty_documents += text_tokens == 0;
    stats_.text_tokens += text_tokens;
    stats_.bytes += item.text.text.size() + item.text.text_pair.size();
    stats_.truncated += encoded.cut > 0 || encoded.sequences.size() > 1;
    stats_.cut_tokens += encoded.cut;
    stats_.invalid_bytes += encoded.invalid;
    return true;
  }

  const DataSpec& data_;
  const SequenceClassificationSpec& task_;
  const LabelIds& labels_;
  const Tokenizer& tokenizer_;
  ExampleStoreWriter* writer_;
  DataStats& stats_;
};

// A sentence with its labels' ids, and its windows.
struct LabelledWords {
  std::vector<std::string> words;
  std::vector<int32_t> labels;
};
struct EncodedWords {
  std::vector<Window> windows;
  WindowCounts counts;
  int64_t invalid = 0;
};

// Are the tags IOB1, while the labels have the B that IOB2 begins spans with?
absl::StatusOr<bool> IsIob1(
    const DataSpec& data, const std::vector<std::string>& labels, const BuildOptions& options) {
  const auto begins = [](const std::string& label) {
    return label == "B" || label.compare(0, 2, "B-") == 0;
  };
  if (std::none_of(labels.begin(), labels.end(), begins)) return false;
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kRequired));
  Iob1Finder finder;
  TaggedSentence sentence;
  while (true) {
    RETURN_IF_ERROR(CheckStop(options));
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence));
    if (!more) return finder.Found(false);
    finder.Add(sentence.tags);
  }
}

absl::StatusOr<bool> ReadWords(
    TaggedReader* reader, const LabelIds& labels, bool iob1, LabelledWords* item, int64_t* bytes) {
  TaggedSentence sentence;
  ASSIGN_OR_RETURN(const bool more, reader->Next(&sentence));
  if (!more) return false;
  if (iob1) Iob1ToIob2(&sentence.tags);
  for (size_t w = 0; w < sentence.words.size(); ++w) {
    *bytes += sentence.words[w].size() + 1;
    item->labels.push_back(labels.Find(sentence.tags[w]));
    if (item->labels.back() < 0)
      return labels.Unknown(reader->Where(sentence.lines[w]), "tags_field", sentence.tags[w]);
  }
  item->words = std::move(sentence.words);
  return true;
}

absl::Status WriteWindows(const LabelledWords& item, const EncodedWords& encoded,
    ExampleStoreWriter* writer, DataStats* stats) {
  ++stats->documents;
  stats->words += item.words.size();
  stats->empty_words += encoded.counts.empty_words;
  stats->truncated += encoded.counts.cut_words;
  stats->cut_tokens += encoded.counts.cut_tokens;
  stats->unknown_tokens += encoded.counts.unknown_tokens;
  stats->invalid_bytes += encoded.invalid;
  for (const std::string& word : item.words) stats->bytes += word.size();
  for (const Window& window : encoded.windows) {
    Example example;
    example.ids = window.ids;
    example.second = window.ids.size();
    example.rows = window.rows;
    const auto first = item.labels.begin() + window.first_word;
    example.labels.assign(first, first + window.rows.size());
    example.continues = window.first_word > 0;
    stats->text_tokens += window.ids.size() - 2;
    RETURN_IF_ERROR(writer->Add(example));
  }
  return absl::OkStatus();
}

absl::Status FillTagging(const DataSpec& data, int32_t max_tokens, const LabelIds& labels,
    bool iob1, Overlap overlap, const Tokenizer& tokenizer, const BuildOptions& options,
    ExampleStoreWriter* writer, DataStats* stats) {
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kRequired));
  const auto read = [&](LabelledWords* item, int64_t* bytes) {
    return ReadWords(&reader, labels, iob1, item, bytes);
  };
  const auto encode = [&](const LabelledWords& item, EncodedWords* out) {
    out->windows = CutIntoWindows(tokenizer, item.words, max_tokens, &out->counts, overlap);
    for (const std::string& word : item.words) out->invalid += CountInvalidUtf8(word);
  };
  const auto consume = [&](const LabelledWords& item,
                           const EncodedWords& encoded) -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(WriteWindows(item, encoded, writer, stats));
    return true;
  };
  return RunPipeline<LabelledWords, EncodedWords>(read, encode, consume, Ticker(reader, options));
}

StoreKind KindOf(const std::string& name, const Tokenizer& tokenizer,
    const std::vector<std::string>& labels, int32_t max_tokens, bool append_sep) {
  StoreKind kind;
  kind.name = name;
  kind.vocab = tokenizer.vocab_size();
  kind.labels = labels.size();
  for (const std::string& label : labels) kind.key.AddText(label);
  kind.key.AddNumber(max_tokens);
  kind.key.AddNumber(append_sep);
  return kind;
}

}  // namespace

absl::StatusOr<BuiltStore> BuildMaskedLm(const DataSpec& data, const MaskedLmSpec& task,
    const Tokenizer& tokenizer, const BuildOptions& options) {
  RETURN_IF_ERROR(RequireTokens(tokenizer, task.append_sep(), /*mask=*/true, /*unk=*/false));
  return OpenOrBuild(data, KindOf("masked_lm", tokenizer, {}, task.max_tokens(), task.append_sep()),
      tokenizer, options, [&](ExampleStoreWriter* writer, DataStats* stats) {
        return MaskedLmFill(data, task, tokenizer, writer, stats).Run(options);
      });
}

absl::StatusOr<BuiltStore> BuildClassification(const DataSpec& data,
    const SequenceClassificationSpec& task, const std::vector<std::string>& labels,
    const Tokenizer& tokenizer, const BuildOptions& options) {
  RETURN_IF_ERROR(RequireTokens(tokenizer, /*sep=*/true, /*mask=*/false, /*unk=*/false));
  ASSIGN_OR_RETURN(const LabelIds ids, LabelIds::Create(labels));
  StoreKind kind = KindOf("classification", tokenizer, labels, task.max_tokens(), true);
  // Only what is not the default, so that caches of old runs keep their names.
  if (task.long_texts() != SequenceClassificationSpec::HEAD) kind.key.AddNumber(task.long_texts());
  if (task.kind() != SequenceClassificationSpec::SINGLE_LABEL) {
    kind.targets =
        task.kind() == SequenceClassificationSpec::REGRESSION ? Targets::kNumber : Targets::kSet;
    kind.key.AddText(SequenceClassificationSpec::Kind_Name(task.kind()));
    kind.key.AddText(task.label_separator());
  }
  return OpenOrBuild(
      data, std::move(kind), tokenizer, options, [&](ExampleStoreWriter* writer, DataStats* stats) {
        return ClassificationFill(data, task, ids, tokenizer, writer, stats).Run(options);
      });
}

absl::StatusOr<BuiltStore> BuildTagging(const DataSpec& data, const TokenTaggingSpec& task,
    const std::vector<std::string>& labels, const Tokenizer& tokenizer, const BuildOptions& options,
    Overlap overlap) {
  RETURN_IF_ERROR(RequireTokens(tokenizer, /*sep=*/true, /*mask=*/false, /*unk=*/true));
  ASSIGN_OR_RETURN(const LabelIds ids, LabelIds::Create(labels));
  ASSIGN_OR_RETURN(const bool iob1, IsIob1(data, labels, options));
  StoreKind kind = KindOf("tagging", tokenizer, labels, task.max_tokens(), true);
  if (iob1) kind.key.AddText("iob1");
  if (overlap == Overlap::kHalf) kind.key.AddText("overlap");
  ASSIGN_OR_RETURN(BuiltStore built, OpenOrBuild(data, std::move(kind), tokenizer, options,
                                         [&](ExampleStoreWriter* writer, DataStats* stats) {
                                           return FillTagging(data, task.max_tokens(), ids, iob1,
                                               overlap, tokenizer, options, writer, stats);
                                         }));
  if (iob1)
    absl::StrAppend(&built.note, built.note.empty() ? "" : "; ",
        "the tags are IOB1 (spans begin with I); they are read as IOB2");
  return built;
}

}  // namespace cloze
