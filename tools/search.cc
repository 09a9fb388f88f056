// `cloze search`: the texts most similar to queries, by exact products of vectors.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tasks/inference/vector_index.h"
#include "tools/passages.h"
#include "tools/text_table.h"
#include "tools/text_vectors.h"

namespace cloze {
namespace {

struct SearchOptions {
  InferOptions infer;
  std::string index, text, similarity, queries, query_field, rerank;
  std::vector<std::string> words;  // the query
  int top = 10, candidates = 100, negatives = 0;
  double margin = 0.05;
};

// The texts to search, and the models that do it.
struct SearchParts {
  Similarity similarity = Similarity::kCosine;
  VectorIndex index;
  TextEncoder encoder;
  Passages passages;
  std::unique_ptr<Session> reranker;  // a cross-encoder: a model that scores pairs; may be null
  CutCounts cut_pairs;
};

// Opens a sequence classifier with one output or two labels, computing as `options` say. kMismatch
// for other models.
absl::StatusOr<std::unique_ptr<Session>> OpenReranker(
    const InferOptions& options, const std::string& folder) {
  ASSIGN_OR_RETURN(auto session,
      Session::Open(folder, InferenceType(options.compute), {}, WantsInt8(options.compute)));
  const ModelConfig& config = session->config();
  if (config.head != HeadKind::kSequenceClassification || config.logits() > 2)
    return Error(Exit::kMismatch, QuotePath(folder),
        ": cannot score pairs: expected a sequence classifier with one number or two labels");
  RETURN_IF_ERROR(session->TokenizerOr().status());
  return session;
}

absl::StatusOr<SearchParts> OpenParts(SearchOptions& options) {
  SearchParts parts;
  ASSIGN_OR_RETURN(parts.encoder, TextEncoder::Open(&options.infer));
  const std::string& similarity =
      options.similarity.empty() ? parts.encoder.similarity() : options.similarity;
  if (similarity != "dot" && similarity != "cosine")
    return Error(Exit::kMismatch, QuotePath(options.infer.model), ": similarity_fn_name ",
        similarity, ": expected cosine or dot (--similarity chooses one of them)");
  if (similarity == "dot") parts.similarity = Similarity::kDot;
  ASSIGN_OR_RETURN(parts.index, VectorIndex::Open(options.index, parts.similarity));
  if (parts.encoder.dimensions() != parts.index.cols())
    return Error(Exit::kMismatch, QuotePath(options.index), ": vectors of ", parts.index.cols(),
        " dimensions, but ", QuotePath(options.infer.model), " makes ", parts.encoder.dimensions(),
        ": expected the model that encoded them");
  ASSIGN_OR_RETURN(
      parts.passages, PassagesOf(parts.index, options.infer.input, options.text, "--text"));
  if (!options.rerank.empty()) {
    ASSIGN_OR_RETURN(parts.reranker, OpenReranker(options.infer, options.rerank));
  }
  return parts;
}

// Returns the vectors of queries or of their answers.
absl::StatusOr<VectorIndex> VectorsOfTexts(SearchParts& parts, TextRole role,
    absl::Span<const std::string> texts, absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<float> vectors, parts.encoder.Encode(role, texts, what));
  return VectorIndex::Of(vectors, parts.index.cols(), parts.similarity);
}

// Rows of f32 vectors.
ConstMat RowsOf(const VectorIndex& vectors, int64_t begin, int64_t n) {
  const VectorRows table = vectors.table();
  return Rows(View(static_cast<const float*>(table.data), table.rows, table.cols), begin, n);
}

// Orders the hits of a query by the cross-encoder; equal scores stay in order. The score of a pair
// is the output or, with two labels, the probability of the second.
absl::Status Rerank(SearchParts& parts, const std::string& query, std::vector<Hit>* hits) {
  ASSIGN_OR_RETURN(const Tokenizer* const tokenizer, parts.reranker->TokenizerOr());
  const int64_t longest = parts.reranker->config().max_tokens();
  std::vector<Query> pairs;
  for (const Hit& hit : *hits) {
    EncodedText pair = SequencesOfText(*tokenizer, query, &parts.passages.texts[hit.row], longest,
        SequenceClassificationSpec::HEAD);
    parts.cut_pairs.Add(pair.stats.cut_tokens, 1, longest);
    pairs.push_back({std::move(pair.windows[0])});
  }
  RETURN_IF_ERROR(parts.reranker->Logits(pairs, [&](int64_t i, ConstMat logits) {
    const float* z = logits.f32();
    (*hits)[i].score = logits.cols == 1 ? z[0] : 1 / (1 + std::exp(z[0] - z[1]));
  }));
  std::stable_sort(
      hits->begin(), hits->end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
  return absl::OkStatus();
}

// One query's hits for a terminal: rank, score, id or row, and the begin of the text.
std::string Readable(const Record& record, const Passages& passages, absl::Span<const Hit> hits) {
  std::string out = absl::StrCat(Quote(record.text, 400), "\n");
  for (size_t i = 0; i < hits.size(); ++i) {
    const int64_t row = hits[i].row;
    const std::string id =
        passages.ids.empty() || passages.ids[row] == "null" ? absl::StrCat(row) : passages.ids[row];
    const std::string line = absl::StrFormat("%4d  %.4f  %s", i + 1, hits[i].score, Quote(id));
    const size_t room = std::max(StyleOf(1).width - static_cast<int>(line.size()) - 3, 20);
    absl::StrAppend(&out, line, passages.texts.empty() ? "" : "  ",
        passages.texts.empty() ? "" : Quote(passages.texts[row], room), "\n");
  }
  return out;
}

// Writes the hits of a query: an object, or with CSV one for each hit.
absl::Status WriteHits(const std::string& format, const Record& record, const Passages& passages,
    absl::Span<const Hit> hits, ObjectWriter& objects) {
  OrderedJson line;
  if (!record.id.empty()) line[format == "csv" ? "query_id" : "id"] = OrderedJson::parse(record.id);
  line["query"] = record.text;
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < hits.size(); ++i) {
    OrderedJson hit = {{"rank", i + 1}, {"score", Decimal(hits[i].score)}};
    AddPassage(passages, hits[i].row, "", &hit);
    list.push_back(std::move(hit));
  }
  if (format != "csv") {
    line["hits"] = std::move(list);
    return objects.Write(line);
  }
  for (const OrderedJson& hit : list) {
    OrderedJson row = line;
    row.update(hit);
    RETURN_IF_ERROR(objects.Write(row));
  }
  return absl::OkStatus();
}

// Answers a batch of queries.
absl::Status AnswerQueries(const SearchOptions& options, absl::Span<const Record> records,
    SearchParts& parts, ObjectWriter& objects, LineWriter& writer) {
  const std::string& format = options.infer.format;
  std::vector<std::string> texts;
  for (const Record& record : records) texts.push_back(record.text);
  const int64_t count =
      parts.reranker != nullptr ? std::max(options.candidates, options.top) : options.top;
  ASSIGN_OR_RETURN(
      const VectorIndex queries, VectorsOfTexts(parts, TextRole::kQuery, texts, "queries"));
  auto hits = NearestRows(parts.index.table(), RowsOf(queries, 0, queries.rows()), count);
  for (size_t q = 0; q < records.size(); ++q) {
    if (parts.reranker != nullptr) RETURN_IF_ERROR(Rerank(parts, texts[q], &hits[q]));
    hits[q].resize(std::min<size_t>(hits[q].size(), options.top));
    RETURN_IF_ERROR(format == "text"
                        ? writer.WriteText(Readable(records[q], parts.passages, hits[q]))
                        : WriteHits(format, records[q], parts.passages, hits[q], objects));
  }
  return absl::OkStatus();
}

// Writes {"query", "pos", "neg"} for a batch of pairs. A hit that is as similar to the query as the
// positive, up to the margin, may be another answer and is no negative.
absl::Status MineNegatives(const SearchOptions& options, absl::Span<const Record> records,
    SearchParts& parts, LineWriter& writer) {
  constexpr int64_t kMore = 50;  // hits that may have to be left out
  std::vector<std::string> texts, positives;
  for (const Record& record : records) {
    if (record.kind != Record::Kind::kPair)
      return Error(Exit::kData, options.infer.input.name(), ":", record.line,
          ": one text: expected a query and its answer");
    texts.push_back(record.text), positives.push_back(record.text_pair);
  }
  ASSIGN_OR_RETURN(
      const VectorIndex queries, VectorsOfTexts(parts, TextRole::kQuery, texts, "queries"));
  ASSIGN_OR_RETURN(
      const VectorIndex answers, VectorsOfTexts(parts, TextRole::kDocument, positives, "answers"));
  const auto hits = NearestRows(
      parts.index.table(), RowsOf(queries, 0, queries.rows()), options.negatives + kMore);
  for (size_t q = 0; q < records.size(); ++q) {
    const int64_t row = static_cast<int64_t>(q);
    const VectorRows answer = {RowsOf(answers, row, 1).f32(), 1, answers.cols()};
    const float score = NearestRows(answer, RowsOf(queries, row, 1), 1)[0].front().score;
    const float most = score - static_cast<float>(options.margin) * std::abs(score);
    OrderedJson negatives = OrderedJson::array();
    for (const Hit& hit : hits[q]) {
      const std::string& text = parts.passages.texts[hit.row];
      if (hit.score > most || absl::EndsWith(text, positives[q]) || text == texts[q]) continue;
      if (std::ssize(negatives) < options.negatives) negatives.push_back(text);
    }
    RETURN_IF_ERROR(writer.Write(ToJsonLine({{"query", texts[q]},
        {"pos", OrderedJson::array({positives[q]})}, {"neg", std::move(negatives)}})));
  }
  return absl::OkStatus();
}

absl::Status CheckSearch(const SearchOptions& options) {
  const bool texts = !options.text.empty();
  if (!options.rerank.empty() && !texts)
    return UsageError("--rerank: reads texts: expected --text with it");
  if (options.negatives == 0) return absl::OkStatus();
  if (!texts) return UsageError("--negatives: writes texts: expected --text with it");
  if (!options.rerank.empty()) return UsageError("--negatives: not with --rerank");
  if (options.infer.format == "csv")
    return UsageError("--negatives: writes JSON lines: expected --format jsonl");
  return absl::OkStatus();
}

absl::Status Search(SearchOptions options) {
  RETURN_IF_ERROR(CheckSearch(options));
  InferOptions& infer = options.infer;
  if (!options.words.empty() && !options.queries.empty())
    return UsageError("--queries: expected either a file or a query as argument");
  const bool print = infer.out.empty() || infer.out == "-";
  if (infer.format.empty())
    infer.format = absl::EndsWithIgnoreCase(infer.out, ".csv")           ? "csv"
                   : print && ::isatty(1) == 1 && options.negatives == 0 ? "text"
                                                                         : "jsonl";
  ASSIGN_OR_RETURN(SearchParts parts, OpenParts(options));
  InputOptions& input = infer.input;
  input.records = kQueryTile;
  input.text_field = options.query_field;
  input.id_field.clear();
  if (!options.queries.empty()) input.path = options.queries;
  if (!options.words.empty()) input.texts = {absl::StrJoin(options.words, " ")};
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  RETURN_IF_ERROR(WriteOutput(infer.out, infer.force, [&](LineWriter& writer) {
    ObjectWriter objects(infer.format == "csv", &writer);
    return ForEachBatch(reader, writer, [&](const std::vector<Record>& records) {
      return options.negatives > 0 ? MineNegatives(options, records, parts, writer)
                                   : AnswerQueries(options, records, parts, objects, writer);
    });
  }));
  ReportCut(parts.encoder.cut());
  ReportCut(parts.cut_pairs);
  return absl::OkStatus();
}

void DeclareNegatives(Command& command, SearchOptions& options) {
  command.Add("--negatives", &options.negatives,
      "Write training groups in place of hits: a line {\"query\", \"pos\", \"neg\"} with this many "
      "hard negatives for each pair of --queries (a query and its answer).",
      {.max = 1000});
  command.Add("--margin", &options.margin,
      "For --negatives: leave out texts whose score is above (1 - margin) times that of the "
      "answer, as they may be answers, too.",
      {.max = 1});
}

}  // namespace

void AddSearch(Command& app) {
  const auto declare = [](Command& command, SearchOptions& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("--index", &options.index,
        "Vectors of `cloze encode` with the same model: .npy (float32) or .safetensors (F32, F16, "
        "BF16, or I8 with scales).",
        {.required = true, .type = "FILE"});
    command.Add("query", &options.words, "Query. Without it, queries are read from --queries.");
    command.Add("--queries", &options.queries,
        "File of queries, one per line or row. Default: standard input.", {.type = "FILE"});
    command.Add("--text", &options.text,
        "File of the texts that were encoded, whose texts are printed with the hits.",
        {.type = "FILE"});
    command.Add("--top", &options.top, "Hits of each query.", {.min = 1, .max = 1e6});
    command.Add("--similarity", &options.similarity,
        "cosine, or dot: the product of the vectors as they are. Default: as the model's folder "
        "says, else cosine.",
        {.choices = {"cosine", "dot"}});
    command.Add("--rerank", &options.rerank,
        "Model folder of a cross-encoder, a classifier of pairs with one number or two labels: it "
        "scores the best --candidates hits anew.",
        {.type = "DIR"});
    command.Add(
        "--candidates", &options.candidates, "Hits that --rerank scores.", {.min = 1, .max = 1e5});
    DeclareNegatives(command, options);
    AddInputFormat(command, &options.infer.input);
    command.Add("--pairs", &options.infer.input.pairs,
        "For --negatives: each line of --queries holds a query and its answer, separated by a "
        "tab.");
    command.Add("--query-field", &options.query_field,
        "Column or JSON member of the query in --queries. Default: text.", {.type = "NAME"});
    AddFieldOptions(command, &options.infer.input);
    command.Add("--format", &options.infer.format,
        "jsonl: a line for each query, with its hits. csv: a row for each hit. Default: by the "
        "name of --out; on a terminal, lines to read; else jsonl.",
        {.choices = {"jsonl", "csv"}});
    command.Add(
        "--out", &options.infer.out, "File to write. Default: standard output.", {.type = "FILE"});
    command.Add("--force", &options.infer.force, "Replace an existing file.");
  };
  app.AddCommand<SearchOptions>("search",
      "Find the texts most similar to queries among vectors of `cloze encode`. The search is "
      "exact.",
      "  cloze search --index v.npy --model models/minilm --text corpus.jsonl \"lift of a wing\"\n"
      "  cloze search --index v.npy --model models/minilm --queries queries.jsonl --out hits.csv",
      declare, Search);
}

}  // namespace cloze
