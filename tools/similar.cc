// `cloze similar`: pairs of texts whose vectors are nearly equal.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "absl/strings/match.h"
#include "tasks/inference/vector_index.h"
#include "tools/passages.h"
#include "tools/text_vectors.h"

namespace cloze {
namespace {

constexpr size_t kMaxPairs = 50'000'000;  // of one tile of queries

struct SimilarOptions {
  InferOptions infer;
  std::vector<std::string> inputs, texts;
  double threshold = 0.9;
};

// Vectors, and what is known of their rows.
struct VectorSide {
  VectorIndex index;
  Passages passages;
};

// Opens file number `i`: vectors, or texts that the encoder turns into vectors.
absl::StatusOr<VectorSide> OpenSide(
    const SimilarOptions& options, size_t i, std::optional<TextEncoder>& encoder) {
  const std::string& path = options.inputs[i];
  const std::string text = i < options.texts.size() ? options.texts[i] : "";
  VectorSide side;
  if (IsVectorFile(path)) {
    ASSIGN_OR_RETURN(side.index, VectorIndex::Open(path, Similarity::kCosine));
    ASSIGN_OR_RETURN(side.passages, PassagesOf(side.index, options.infer.input, text, "--text"));
    return side;
  }
  if (!text.empty())
    return UsageError("--text: expected with files of vectors, " + QuotePath(path) + " has texts");
  InputOptions input = options.infer.input;
  input.path = path, input.blank_lines = true;
  ASSIGN_OR_RETURN(side.passages, ReadPassages(input));
  if (side.passages.texts.empty()) return Error(Exit::kData, QuoteInput(path), ": no texts");
  ASSIGN_OR_RETURN(const std::vector<float> vectors,
      encoder->Encode(TextRole::kDocument, side.passages.texts, "texts"));
  ASSIGN_OR_RETURN(
      side.index, VectorIndex::Of(vectors, encoder->dimensions(), Similarity::kCosine));
  return side;
}

struct SimilarPair {
  int64_t left, right;
  float score;
};

// Returns the pairs of rows [begin, begin + n) of `left` with rows of `right` from `from` on whose
// cosine is at least `threshold`, in order. kLimit for too many.
absl::StatusOr<std::vector<SimilarPair>> PairsOfTile(const VectorIndex& left, int64_t begin,
    int64_t n, const VectorIndex& right, int64_t from, float threshold) {
  VectorRows table = right.table();
  table.data = static_cast<const char*>(table.data) + from * table.cols * SizeOf(table.type);
  table.rows -= from;
  if (table.scales != nullptr) table.scales += from;
  const std::vector<float> queries = left.RowsF32(begin, n);
  std::vector<SimilarPair> pairs;
  ForScores(table, View(queries.data(), n, left.cols()), [&](int64_t first, ConstMat scores) {
    for (int64_t r = 0; r < scores.rows && pairs.size() <= kMaxPairs; ++r) {
      const float* row = scores.f32(r);
      int any = 0;
      for (int64_t q = 0; q < n; ++q) any |= row[q] >= threshold;
      for (int64_t q = 0; q < n && any != 0; ++q)
        if (row[q] >= threshold) pairs.push_back({begin + q, from + first + r, row[q]});
    }
  });
  if (pairs.size() > kMaxPairs)
    return Error(Exit::kLimit, "more than ", kMaxPairs, " pairs for ", n,
        " texts: expected a larger --threshold");
  std::sort(pairs.begin(), pairs.end(), [](const SimilarPair& a, const SimilarPair& b) {
    return std::pair(a.left, a.right) < std::pair(b.left, b.right);
  });
  return pairs;
}

// Writes the pairs; `right` null: those within `left`.
absl::Status WritePairs(const SimilarOptions& options, const VectorSide& left,
    const VectorSide* right, LineWriter& writer) {
  const VectorSide& other = right == nullptr ? left : *right;
  ObjectWriter objects(options.infer.format == "csv", &writer);
  Reminder due;
  for (int64_t begin = 0; begin < left.index.rows(); begin += kQueryTile) {
    const int64_t n = std::min(kQueryTile, left.index.rows() - begin);
    ASSIGN_OR_RETURN(const std::vector<SimilarPair> pairs,
        PairsOfTile(left.index, begin, n, other.index, right == nullptr ? begin : 0,
            static_cast<float>(options.threshold)));
    for (const SimilarPair& pair : pairs) {
      if (right == nullptr && pair.right <= pair.left) continue;
      OrderedJson line = {{"score", Decimal(pair.score)}};
      AddPassage(left.passages, pair.left, "a_", &line);
      AddPassage(other.passages, pair.right, "b_", &line);
      RETURN_IF_ERROR(objects.Write(line));
    }
    RETURN_IF_ERROR(CheckSignals());
    if (due.Due())
      std::fprintf(stderr, "cloze: %lld of %lld compared\n", (long long)begin + n,
          (long long)left.index.rows());
  }
  return absl::OkStatus();
}

absl::Status FindSimilar(SimilarOptions options) {
  InferOptions& infer = options.infer;
  if (options.inputs.size() > 2) return UsageError("input: expected one file or two");
  if (options.texts.size() > options.inputs.size())
    return UsageError("--text: expected at most one for each file of vectors");
  if (infer.format.empty() && absl::EndsWithIgnoreCase(infer.out, ".csv")) infer.format = "csv";
  std::optional<TextEncoder> encoder;
  const bool vectors = std::all_of(options.inputs.begin(), options.inputs.end(), IsVectorFile);
  if (!vectors && infer.model.empty())
    return UsageError("--model: expected with files of texts (vectors are .npy or .safetensors)");
  if (!vectors) {
    ASSIGN_OR_RETURN(encoder, TextEncoder::Open(&infer));
  }
  StopOnSignals();
  ASSIGN_OR_RETURN(const VectorSide left, OpenSide(options, 0, encoder));
  std::optional<VectorSide> right;
  if (options.inputs.size() == 2) {
    ASSIGN_OR_RETURN(right, OpenSide(options, 1, encoder));
    if (right->index.cols() != left.index.cols())
      return Error(Exit::kMismatch, QuotePath(options.inputs[1]), ": vectors of ",
          right->index.cols(), " dimensions: expected ", left.index.cols(), ", as in ",
          QuotePath(options.inputs[0]));
  }
  if (encoder.has_value()) ReportCut(encoder->cut());
  return WriteOutput(infer.out, infer.force, [&](LineWriter& writer) {
    return WritePairs(options, left, right.has_value() ? &*right : nullptr, writer);
  });
}

}  // namespace

void AddSimilar(Command& app) {
  const auto declare = [](Command& command, SimilarOptions& options) {
    command.Add("input", &options.inputs,
        "One file, whose rows are compared with each other, or two: vectors of `cloze encode` "
        "(.npy, .safetensors), or texts, which --model encodes.",
        {.required = true});
    command.Add(
        "--threshold", &options.threshold, "Least cosine of a pair.", {.min = -1, .max = 1});
    command.Add("--model", &options.infer.model,
        "Model folder for files of texts: a run, or a folder of sentence-transformers.",
        {.type = "DIR"});
    command.Add("--text", &options.texts,
        "File of the texts of a file of vectors; repeat it for the second one.",
        {.type = "FILE", .repeatable = true});
    AddInputFormat(command, &options.infer.input);
    AddFieldOptions(command, &options.infer.input);
    command.Add("--format", &options.infer.format,
        "jsonl: a JSON object for each pair. csv: a row. Default: by the name of --out, else "
        "jsonl.",
        {.choices = {"jsonl", "csv"}});
    command.Add(
        "--out", &options.infer.out, "File to write. Default: standard output.", {.type = "FILE"});
    command.Add("--force", &options.infer.force, "Replace an existing file.");
  };
  app.AddCommand<SimilarOptions>("similar",
      "List pairs of nearly equal texts, in one file or between two.",
      "  cloze similar --model models/minilm texts.jsonl\n"
      "  cloze similar --threshold 0.95 --text train.csv --text test.csv train.npy test.npy",
      declare, FindSimilar);
}

}  // namespace cloze
