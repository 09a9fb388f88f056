// `cloze tag`: a label for every word.
#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"

#include "tasks/data/readers.h"
#include "tasks/spans.h"
#include "tasks/tagger.h"
#include "tools/infer.h"

namespace cloze {
namespace {

constexpr int64_t kSentences = 256;

struct Options {
  InferOptions infer;
  std::string format = "text", column;
};

// A word of the user's own text.
struct Word {
  Span bytes, chars;
};

// Words of a text as the tokenizer sees them.
std::vector<Word> WordsOf(const Encoding& e) {
  std::vector<Word> words;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    if (e.words[i] < 0) continue;
    if (e.words[i] >= static_cast<int64_t>(words.size())) words.push_back({e.bytes[i], e.chars[i]});
    words.back().bytes.end = e.bytes[i].end;
    words.back().chars.end = e.chars[i].end;
  }
  return words;
}

// {"start", "end", "byte_start", "byte_end", "label", "score", "text"}; start and end in code points.
std::string Piece(const std::string& text, Span bytes, Span chars, const std::string& label, float score) {
  return absl::StrCat("{\"start\": ", chars.begin, ", \"end\": ", chars.end, ", \"byte_start\": ", bytes.begin,
                      ", \"byte_end\": ", bytes.end, ", \"label\": ", JsonString(label), ", \"score\": ", JsonNumber(score),
                      ", \"text\": ", JsonString(text.substr(bytes.begin, bytes.end - bytes.begin)), "}");
}

class Tagger {
 public:
  explicit Tagger(Session& session) : session_(session), labels_(session.config().labels) {
    if (IsBio(labels_)) spans_.emplace(labels_);
  }

  // Lines of text: the words of each, and entities when the labels are BIO.
  absl::Status TagTexts(const std::vector<InputRecord>& records, LineWriter* writer) {
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session_.TokenizerOr());
    std::vector<std::vector<Word>> words;
    std::vector<std::vector<std::string>> sentences;
    for (const InputRecord& record : records) {
      if (record.kind == InputRecord::Kind::kIds || record.kind == InputRecord::Kind::kPair) {
        return Error(Exit::kUsage,
                     absl::StrCat("line ", record.line, ": a tagger takes texts or words, no pairs, and ids with --format ids"));
      }
      words.push_back(record.kind == InputRecord::Kind::kText ? WordsOf(tokenizer->Encode(record.text, false)) : std::vector<Word>());
      sentences.push_back(record.words);
      for (const Word& w : words.back()) sentences.back().push_back(record.text.substr(w.bytes.begin, w.bytes.end - w.bytes.begin));
    }
    ASSIGN_OR_RETURN(const auto tags, TagWords(session_, sentences));
    for (size_t i = 0; i < records.size(); ++i) {
      const bool text = records[i].kind == InputRecord::Kind::kText;
      RETURN_IF_ERROR(writer->Write(text ? FormatText(records[i], words[i], tags[i]) : FormatWords(records[i], tags[i])));
    }
    return absl::OkStatus();
  }

  // Token ids, special tokens included: a label for each of them.
  absl::Status TagIds(const std::vector<InputRecord>& records, const InputOptions& input, LineWriter* writer) {
    std::vector<Query> queries;
    int64_t cut = 0;
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
      const std::string line = absl::StrCat(OpenObject(records[q]), "\"ids\": [", absl::StrJoin(queries[q].ids, ", "), "], \"tags\": [",
                                            tags, "], \"scores\": [", scores, "]}");
      if (written.ok()) written = writer->Write(line);
    }));
    return written;
  }

  const std::string& label(const WordTag& tag) const { return labels_[tag.label]; }

 private:
  std::string FormatText(const InputRecord& record, const std::vector<Word>& words, const std::vector<WordTag>& tags) const {
    std::string line = absl::StrCat(OpenObject(record), "\"text\": ", JsonString(record.text), ", \"words\": [");
    for (size_t w = 0; w < words.size(); ++w) {
      absl::StrAppend(&line, w > 0 ? ", " : "", Piece(record.text, words[w].bytes, words[w].chars, label(tags[w]), tags[w].score));
    }
    line += "]";
    if (spans_.has_value()) absl::StrAppend(&line, ", \"entities\": [", Entities(record.text, words, tags), "]");
    return line + "}";
  }

  // Score of an entity: mean of its words.
  std::string Entities(const std::string& text, const std::vector<Word>& words, const std::vector<WordTag>& tags) const {
    std::vector<int> ids;
    for (const WordTag& tag : tags) ids.push_back(tag.label);
    std::string out;
    for (const TagSpan& span : spans_->Lenient(ids)) {
      double score = 0;
      for (int64_t w = span.begin; w < span.end; ++w) score += tags[w].score / (span.end - span.begin);
      const Word &first = words[span.begin], &last = words[span.end - 1];
      absl::StrAppend(&out, out.empty() ? "" : ", ",
                      Piece(text, {first.bytes.begin, last.bytes.end}, {first.chars.begin, last.chars.end}, spans_->types()[span.type],
                            static_cast<float>(score)));
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
    return absl::StrCat(OpenObject(record), "\"tokens\": [", words, "], \"tags\": [", labels, "], \"scores\": [", scores, "]}");
  }

  Session& session_;
  std::vector<std::string> labels_;
  std::optional<SpanTags> spans_;
};

// CoNLL and CoNLL-U: the same file with one column replaced.
absl::Status TagConll(Session& session, const Tagger& tagger, const Options& options) {
  DataSpec data;
  data.add_files(options.infer.input.path);
  data.set_format(options.format == "conllu" ? DataSpec::CONLLU : DataSpec::CONLL);
  if (!options.column.empty()) data.set_tags_field(options.column);
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kIgnored));
  LineWriter writer;
  for (bool more = true; more;) {
    std::vector<ConllSentence> raw;
    std::vector<std::vector<std::string>> sentences;
    std::vector<int> columns;
    while (more && raw.size() < kSentences) {
      TaggedSentence sentence;
      ConllSentence lines;
      ASSIGN_OR_RETURN(more, reader.Next(&sentence, &lines));
      if (!more) break;
      raw.push_back(std::move(lines));
      sentences.push_back(std::move(sentence.words));
      columns.push_back(reader.tags_column());
    }
    ASSIGN_OR_RETURN(const auto tags, TagWords(session, sentences));
    for (size_t s = 0; s < raw.size(); ++s) {
      std::vector<std::string> values;
      for (const WordTag& tag : tags[s]) values.push_back(tagger.label(tag));
      RETURN_IF_ERROR(WriteStdout(ReplaceColumn(raw[s], columns[s], values)));
    }
  }
  return absl::OkStatus();
}

absl::Status Tag(Options options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer, HeadKind::kTokenTagging));
  if (session->has_named()) return UsageError("--adapter: `cloze tag` takes one adapter, without a name");
  Tagger tagger(*session);
  if (options.format == "conll" || options.format == "conllu") return TagConll(*session, tagger, options);
  if (!options.column.empty()) return UsageError("--column: only for --format conll and conllu");
  InputOptions& input = options.infer.input;
  input.format = options.format == "jsonl" ? InputFormat::kJsonl : options.format == "ids" ? InputFormat::kIds : InputFormat::kText;
  return ForEachRecords(input, [&](const std::vector<InputRecord>& records, LineWriter* writer) {
    return options.format == "ids" ? tagger.TagIds(records, input, writer) : tagger.TagTexts(records, writer);
  });
}

}  // namespace

void AddTag(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("tag", "Label every word of texts or of CoNLL files.");
  auto options = std::make_shared<Options>();
  AddInferOptions(command, &options->infer, false);
  command->add_option("input", options->infer.input.path, "File; - or none: standard input.");
  command
      ->add_option("--format,--input-format", options->format,
                   "text (a line is a text), jsonl ({\"text\": ...} or {\"tokens\": [...]}), ids (each token gets a label), conll, conllu.")
      ->check(CLI::IsMember({"text", "jsonl", "ids", "conll", "conllu"}))
      ->capture_default_str();
  command->add_option("--column", options->column,
                      "conll, conllu: column to write labels into, by name or number from 1. Default: UPOS; the last.");
  command->callback([=] { *run = [=] { return Tag(*options); }; });
}

}  // namespace cloze
