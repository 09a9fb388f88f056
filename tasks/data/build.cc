// The three kinds of stores.
#include "tasks/data/build.h"

#include <algorithm>

#include "tasks/data/cache.h"
#include "tasks/data/pipeline.h"
#include "tasks/data/readers.h"
#include "tasks/data/utf8.h"
#include "tasks/data/windows.h"

namespace cloze {
namespace {

absl::Status RequireTokens(const Tokenizer& tokenizer, bool sep, bool mask, bool unk) {
  const SpecialIds& special = tokenizer.special();
  struct {
    bool required;
    int32_t id;
    const char* name;
  } tokens[] = {{true, special.cls, "<class> or [CLS]"},
                {sep, special.sep, "<sep> or [SEP]"},
                {mask, special.mask, "<mask> or [MASK]"},
                {unk, special.unk, "<unk> or [UNK]"}};
  for (const auto& [required, id, name] : tokens) {
    if (required && id < 0) return Error(Exit::kMismatch, absl::StrCat("tokenizer: no token ", name, ", which the task needs"));
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
  MaskedLmFill(const DataSpec& data, const MaskedLmSpec& task, const Tokenizer& tokenizer, ExampleStoreWriter* writer, DataStats* stats)
      : data_(data),
        tokenizer_(tokenizer),
        append_sep_(task.append_sep()),
        cutter_(task.max_tokens() - 1 - task.append_sep()),
        writer_(writer),
        stats_(*stats) {}

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
    const auto consume = [&](const DocumentPiece& piece, const Ids& ids) { return Consume(piece, ids); };
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
    if (piece.last) (tokens_ > 0 ? stats_.bytes : stats_.empty_documents) += tokens_ > 0 ? bytes_ : 1;
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

// A text with its label, and what the tokenizer makes of it.
struct LabelledText {
  TextExample text;
  int32_t label = 0;
};
struct EncodedText {
  Example example;
  int64_t text_tokens = 0, cut = 0, unknown = 0, invalid = 0;
};

void EncodeText(const Tokenizer& tokenizer, bool pair, int32_t max_tokens, const LabelledText& item, EncodedText* out) {
  const SpecialIds& special = tokenizer.special();
  std::vector<int32_t>& ids = out->example.ids;
  if (pair) {
    Encoding encoding = tokenizer.EncodePair(item.text.text, item.text.text_pair);
    out->cut = tokenizer.Truncate(&encoding, max_tokens);
    const int64_t text_tokens = std::count_if(encoding.words.begin(), encoding.words.end(), [](int32_t word) { return word >= 0; });
    out->example.second = std::find(encoding.types.begin(), encoding.types.end(), 1) - encoding.types.begin();
    ids = std::move(encoding.ids);
    out->text_tokens = text_tokens;
  } else {
    ids.push_back(special.cls);
    tokenizer.AppendIds(item.text.text, &ids);
    out->cut = std::max<int64_t>(0, static_cast<int64_t>(ids.size()) + 1 - max_tokens);
    ids.resize(ids.size() - out->cut);
    ids.push_back(special.sep);
    ids.shrink_to_fit();
    out->example.second = ids.size();
    out->text_tokens = ids.size() - 2;
  }
  out->unknown = std::count(ids.begin(), ids.end(), special.unk);
  out->invalid = CountInvalidUtf8(item.text.text) + CountInvalidUtf8(item.text.text_pair);
  out->example.rows = {0};
  out->example.labels = {item.label};
}

absl::Status FillClassification(const DataSpec& data, int32_t max_tokens, const LabelIds& labels, const Tokenizer& tokenizer,
                                const BuildOptions& options, ExampleStoreWriter* writer, DataStats* stats) {
  ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(data, Labels::kRequired));
  const auto read = [&](LabelledText* item, int64_t* bytes) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&item->text));
    if (!more) return false;
    *bytes += item->text.text.size() + item->text.text_pair.size();
    item->label = labels.Find(item->text.label);
    if (item->label < 0) return labels.Unknown(reader.Where(), "label_field", item->text.label);
    return true;
  };
  const bool pair = !data.text_pair_field().empty();
  const auto encode = [&](const LabelledText& item, EncodedText* out) { EncodeText(tokenizer, pair, max_tokens, item, out); };
  const auto consume = [&](const LabelledText& item, const EncodedText& encoded) -> absl::StatusOr<bool> {
    ++stats->documents;
    stats->empty_documents += encoded.text_tokens == 0;
    stats->text_tokens += encoded.text_tokens;
    stats->bytes += item.text.text.size() + item.text.text_pair.size();
    stats->unknown_tokens += encoded.unknown;
    stats->truncated += encoded.cut > 0;
    stats->cut_tokens += encoded.cut;
    stats->invalid_bytes += encoded.invalid;
    RETURN_IF_ERROR(writer->Add(encoded.example));
    return true;
  };
  return RunPipeline<LabelledText, EncodedText>(read, encode, consume, Ticker(reader, options));
}

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

absl::StatusOr<bool> ReadWords(TaggedReader* reader, const LabelIds& labels, LabelledWords* item, int64_t* bytes) {
  TaggedSentence sentence;
  ASSIGN_OR_RETURN(const bool more, reader->Next(&sentence));
  if (!more) return false;
  for (size_t w = 0; w < sentence.words.size(); ++w) {
    *bytes += sentence.words[w].size() + 1;
    item->labels.push_back(labels.Find(sentence.tags[w]));
    if (item->labels.back() < 0) return labels.Unknown(reader->Where(sentence.lines[w]), "tags_field", sentence.tags[w]);
  }
  item->words = std::move(sentence.words);
  return true;
}

absl::Status WriteWindows(const LabelledWords& item, const EncodedWords& encoded, ExampleStoreWriter* writer, DataStats* stats) {
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

absl::Status FillTagging(const DataSpec& data, int32_t max_tokens, const LabelIds& labels, const Tokenizer& tokenizer,
                         const BuildOptions& options, ExampleStoreWriter* writer, DataStats* stats) {
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kRequired));
  const auto read = [&](LabelledWords* item, int64_t* bytes) { return ReadWords(&reader, labels, item, bytes); };
  const auto encode = [&](const LabelledWords& item, EncodedWords* out) {
    out->windows = CutIntoWindows(tokenizer, item.words, max_tokens, &out->counts);
    for (const std::string& word : item.words) out->invalid += CountInvalidUtf8(word);
  };
  const auto consume = [&](const LabelledWords& item, const EncodedWords& encoded) -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(WriteWindows(item, encoded, writer, stats));
    return true;
  };
  return RunPipeline<LabelledWords, EncodedWords>(read, encode, consume, Ticker(reader, options));
}

StoreKind KindOf(const std::string& name, const Tokenizer& tokenizer, const std::vector<std::string>& labels, int32_t max_tokens,
                 bool append_sep) {
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

absl::StatusOr<BuiltStore> BuildMaskedLm(const DataSpec& data, const MaskedLmSpec& task, const Tokenizer& tokenizer,
                                         const BuildOptions& options) {
  RETURN_IF_ERROR(RequireTokens(tokenizer, task.append_sep(), /*mask=*/true, /*unk=*/false));
  return OpenOrBuild(
      data, KindOf("masked_lm", tokenizer, {}, task.max_tokens(), task.append_sep()), tokenizer, options,
      [&](ExampleStoreWriter* writer, DataStats* stats) { return MaskedLmFill(data, task, tokenizer, writer, stats).Run(options); });
}

absl::StatusOr<BuiltStore> BuildClassification(const DataSpec& data, const SequenceClassificationSpec& task,
                                               const std::vector<std::string>& labels, const Tokenizer& tokenizer,
                                               const BuildOptions& options) {
  RETURN_IF_ERROR(RequireTokens(tokenizer, /*sep=*/true, /*mask=*/false, /*unk=*/false));
  ASSIGN_OR_RETURN(const LabelIds ids, LabelIds::Create(labels));
  return OpenOrBuild(data, KindOf("classification", tokenizer, labels, task.max_tokens(), true), tokenizer, options,
                     [&](ExampleStoreWriter* writer, DataStats* stats) {
                       return FillClassification(data, task.max_tokens(), ids, tokenizer, options, writer, stats);
                     });
}

absl::StatusOr<BuiltStore> BuildTagging(const DataSpec& data, const TokenTaggingSpec& task, const std::vector<std::string>& labels,
                                        const Tokenizer& tokenizer, const BuildOptions& options) {
  RETURN_IF_ERROR(RequireTokens(tokenizer, /*sep=*/true, /*mask=*/false, /*unk=*/true));
  ASSIGN_OR_RETURN(const LabelIds ids, LabelIds::Create(labels));
  return OpenOrBuild(data, KindOf("tagging", tokenizer, labels, task.max_tokens(), true), tokenizer, options,
                     [&](ExampleStoreWriter* writer, DataStats* stats) {
                       return FillTagging(data, task.max_tokens(), ids, tokenizer, options, writer, stats);
                     });
}

}  // namespace cloze
