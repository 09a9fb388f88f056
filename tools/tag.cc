// `cloze tag`: a label for every word.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "absl/strings/str_join.h"
#include "tasks/data/readers.h"
#include "tasks/inference/tagger.h"
#include "tasks/scores.h"
#include "tasks/spans.h"
#include "tasks/text_words.h"
#include "tools/infer.h"

namespace cloze {
namespace {

constexpr int64_t kSentences = 256;

struct Options {
  InferOptions infer;
  std::string format = "text", column;
  std::optional<bool> viterbi;
};

// The place of an answer in the user's text: "start" and "end" in code points, "byte_start" and
// "byte_end".
std::string Place(Span bytes, Span chars) {
  return absl::StrCat("\"start\": ", chars.begin, ", \"end\": ", chars.end,
      ", \"byte_start\": ", bytes.begin, ", \"byte_end\": ", bytes.end);
}

std::string Slice(const std::string& text, Span bytes) {
  return JsonString(text.substr(bytes.begin, bytes.end - bytes.begin));
}

class Tagger {
 public:
  Tagger(Session& session, std::optional<bool> viterbi)
      : session_(session), decoder_(session.model(), viterbi), labels_(session.config().labels) {
    if (IsBio(labels_)) spans_.emplace(labels_);
  }

  absl::StatusOr<std::vector<std::vector<WordTag>>> TagSentences(
      const std::vector<std::vector<std::string>>& sentences) {
    return TagWords(session_, decoder_, sentences, &counts_);
  }

  // Says on stderr which words did not fit.
  void ReportCut() const {
    if (counts_.cut_words == 0) return;
    std::fprintf(stderr,
        "cloze: %lld words have more pieces than the model sees at once and were read off their "
        "first ones\n",
        static_cast<long long>(counts_.cut_words));
  }

  // Lines of text: the words of each, and entities when the labels are BIO.
  absl::Status TagTexts(const std::vector<InputRecord>& records, LineWriter* writer) {
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session_.TokenizerOr());
    std::vector<std::vector<TextWord>> words;
    std::vector<std::vector<std::string>> sentences;
    for (const InputRecord& record : records) {
      if (record.kind == InputRecord::Kind::kIds || record.kind == InputRecord::Kind::kPair) {
        return Error(Exit::kUsage,
            absl::StrCat("line ", record.line,
                ": a tagger takes texts or words, no pairs, and ids with --format ids"));
      }
      const bool text = record.kind == InputRecord::Kind::kText;
      words.push_back(text ? WordsOfText(*tokenizer, record.text) : std::vector<TextWord>());
      sentences.push_back(text ? Slices(record.text, words.back()) : record.words);
    }
    ASSIGN_OR_RETURN(const auto tags, TagSentences(sentences));
    for (size_t i = 0; i < records.size(); ++i) {
      const bool text = records[i].kind == InputRecord::Kind::kText;
      RETURN_IF_ERROR(writer->Write(
          text ? FormatText(records[i], words[i], tags[i]) : FormatWords(records[i], tags[i])));
    }
    return absl::OkStatus();
  }

  // Token ids, special tokens included: a label for each of them.
  absl::Status TagIds(
      const std::vector<InputRecord>& records, const InputOptions& input, LineWriter* writer) {
    std::vector<Query> queries;
    CutTexts cut;
    for (const InputRecord& record : records) {
      ASSIGN_OR_RETURN(Query query, QueryOfRecord(session_, record, input, &cut));
      for (size_t i = 0; i < query.ids.size(); ++i) query.rows.push_back(static_cast<int32_t>(i));
      queries.push_back(std::move(query));
    }
    absl::Status written;
    RETURN_IF_ERROR(session_.Logits(queries, [&](int64_t q, ConstMat logits) {
      std::string tags, scores;
      std::vector<float> row(logits.cols);
      for (int64_t i = 0; i < logits.rows; ++i) {
        std::copy_n(logits.f32(i), logits.cols, row.data());
        Softmax(row.data(), logits.cols);
        const auto best = std::max_element(row.begin(), row.end());
        absl::StrAppend(&tags, i > 0 ? ", " : "", JsonString(labels_[best - row.begin()]));
        absl::StrAppend(&scores, i > 0 ? ", " : "", JsonNumber(*best));
      }
      const std::string line =
          absl::StrCat(OpenObject(records[q]), "\"ids\": [", absl::StrJoin(queries[q].ids, ", "),
              "], \"tags\": [", tags, "], \"scores\": [", scores, "]}");
      if (written.ok()) written = writer->Write(line);
    }));
    return written;
  }

  const std::string& label(const WordTag& tag) const { return labels_[tag.label]; }

 private:
  std::string FormatText(const InputRecord& record, const std::vector<TextWord>& words,
      const std::vector<WordTag>& tags) const {
    std::string line =
        absl::StrCat(OpenObject(record), "\"text\": ", JsonString(record.text), ", \"words\": [");
    for (size_t w = 0; w < words.size(); ++w) {
      const auto& [bytes, chars] = words[w];
      absl::StrAppend(&line, w > 0 ? ", " : "", "{", Place(bytes, chars),
          ", \"label\": ", JsonString(label(tags[w])), ", \"score\": ", JsonNumber(tags[w].score),
          ", \"text\": ", Slice(record.text, bytes), "}");
    }
    line += "]";
    if (spans_.has_value())
      absl::StrAppend(&line, ", \"entities\": [", Entities(record.text, words, tags), "]");
    return line + "}";
  }

  // In the fields of Hugging Face's pipeline; the score is the mean of the words'.
  std::string Entities(const std::string& text, const std::vector<TextWord>& words,
      const std::vector<WordTag>& tags) const {
    std::vector<int> ids;
    for (const WordTag& tag : tags) ids.push_back(tag.label);
    std::string out;
    for (const TagSpan& span : spans_->Lenient(ids)) {
      double score = 0;
      for (int64_t w = span.begin; w < span.end; ++w)
        score += tags[w].score / (span.end - span.begin);
      const TextWord &first = words[span.begin], &last = words[span.end - 1];
      const Span bytes = {first.bytes.begin, last.bytes.end},
                 chars = {first.chars.begin, last.chars.end};
      absl::StrAppend(&out, out.empty() ? "" : ", ",
          "{\"entity_group\": ", JsonString(spans_->types()[span.type]),
          ", \"score\": ", JsonNumber(static_cast<float>(score)),
          ", \"word\": ", Slice(text, bytes), ", ", Place(bytes, chars), "}");
    }
    return out;
  }

  std::string FormatWords(const InputRecord& record, const std::vector<WordTag>& tags) const {
    std::string words, labels, scores;
    for (size_t w = 0; w < tags.size(); ++w) {
      const char* comma = w > 0 ? ", " : "";
      absl::StrAppend(&words, comma, JsonString(record.words[w]));
      absl::StrAppend(&labels, comma, JsonString(label(tags[w])));
      absl::StrAppend(&scores, comma, JsonNumber(tags[w].score));
    }
    return absl::StrCat(OpenObject(record), "\"tokens\": [", words, "], \"tags\": [", labels,
        "], \"scores\": [", scores, "]}");
  }

  Session& session_;
  TagDecoder decoder_;
  WindowCounts counts_;
  std::vector<std::string> labels_;
  std::optional<SpanTags> spans_;
};

// Sentences of a CoNLL file as they are, and the column of each that is to be replaced.
struct ConllBatch {
  std::vector<ConllSentence> raw;
  std::vector<std::vector<std::string>> words;
  std::vector<int> columns;
};

// Puts into *batch the next sentence, waiting for it if need be, and those that are there without
// waiting. False at the end.
absl::StatusOr<bool> ReadBatch(TaggedReader& reader, ConllBatch* batch) {
  while (batch->raw.size() < kSentences) {
    if (!batch->raw.empty()) {
      ASSIGN_OR_RETURN(const bool ready, reader.Ready());
      if (!ready) return true;
    }
    TaggedSentence sentence;
    ConllSentence lines;
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence, &lines));
    if (!more) return false;
    batch->raw.push_back(std::move(lines));
    batch->words.push_back(std::move(sentence.words));
    batch->columns.push_back(reader.tags_column());
  }
  return true;
}

// CoNLL and CoNLL-U: the same file with one column replaced.
absl::Status TagConll(Tagger& tagger, const Options& options) {
  DataSpec data;
  data.add_files(options.infer.input.path);
  data.set_format(options.format == "conllu" ? DataSpec::CONLLU : DataSpec::CONLL);
  if (!options.column.empty()) data.set_tags_field(options.column);
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kIgnored));
  while (true) {
    ConllBatch batch;
    const absl::StatusOr<bool> more = ReadBatch(reader, &batch);
    std::string out;  // with an error, that of the sentences before it
    ASSIGN_OR_RETURN(const auto tags, tagger.TagSentences(batch.words));
    for (size_t s = 0; s < tags.size(); ++s) {
      std::vector<std::string> values;
      for (const WordTag& tag : tags[s]) values.push_back(tagger.label(tag));
      out += ReplaceColumn(batch.raw[s], batch.columns[s], values);
    }
    RETURN_IF_ERROR(WriteStdout(out));
    if (!more.ok() || !*more) return more.status();
  }
}

// Texts, words or ids: a line of JSON for each.
absl::Status TagLines(Tagger& tagger, Options options) {
  InputOptions& input = options.infer.input;
  input.format = options.format == "jsonl" ? InputFormat::kJsonl
                 : options.format == "ids" ? InputFormat::kIds
                                           : InputFormat::kText;
  return ForEachRecords(input, [&](const std::vector<InputRecord>& records, LineWriter* writer) {
    return options.format == "ids" ? tagger.TagIds(records, input, writer)
                                   : tagger.TagTexts(records, writer);
  });
}

absl::Status Tag(Options options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer, HeadKind::kTokenTagging));
  if (session->has_named())
    return UsageError("--adapter: `cloze tag` takes one adapter, without a name");
  if (options.viterbi.value_or(false) && !IsBio(session->config().labels)) {
    return UsageError(
        "--viterbi: the labels of this model are not BIO or IOBES, so there are no rules to keep");
  }
  Tagger tagger(*session, options.viterbi);
  const bool conll = options.format == "conll" || options.format == "conllu";
  if (!conll && !options.column.empty())
    return UsageError("--column: only for --format conll and conllu");
  RETURN_IF_ERROR(conll ? TagConll(tagger, options) : TagLines(tagger, options));
  tagger.ReportCut();
  return absl::OkStatus();
}

}  // namespace

void AddTag(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("tag", "Label every word of texts or of CoNLL files.");
  auto options = std::make_shared<Options>();
  AddInferOptions(command, &options->infer, false);
  command->add_option("input", options->infer.input.path, "File; - or none: standard input.");
  command
      ->add_option("--format,--input-format", options->format,
          "text (a line is a text), jsonl ({\"text\": ...} or {\"tokens\": [...]}), ids (each "
          "token gets a label), conll, conllu.")
      ->check(CLI::IsMember({"text", "jsonl", "ids", "conll", "conllu"}))
      ->capture_default_str();
  command->add_option("--column", options->column,
      "conll, conllu: column to write labels into, by name or number from 1. Default: UPOS; the "
      "last.");
  AddSwitch(command, "viterbi",
      "Labels of a span scheme (BIO, IOBES): decode the best sequence that the scheme allows. "
      "Default: as in training.",
      "Use the best label of each word.", [=](bool on) { options->viterbi = on; });
  command->callback([=] { *run = [=] { return Tag(*options); }; });
}

}  // namespace cloze
