// `cloze export`: writes a model as ONNX.
#include "encoder/onnx/export.h"

#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "core/base/philox.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/onnx/runtime.h"
#include "tasks/inference/session.h"
#include "tools/infer.h"
#include "tools/model_card.h"

namespace cloze {
namespace {

struct ExportOptions {
  std::string model, out, pool;
  bool normalize = true;  // the pooled vector
  int opset = 17;
  bool external_data = false, int8 = false, check = false;
};

// Results of two programs, for each token, or for <class>.
struct Comparison {
  int64_t values = 0, rows = 0, equal_answers = 0;
  float largest = 0;  // difference, relative to values above 1

  void Add(const float* ours, const float* theirs, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
      const float difference = std::abs(ours[i] - theirs[i]) / std::max(1.0f, std::abs(ours[i]));
      if (!std::isnan(largest) && !(difference <= largest)) largest = difference;
    }
    values += size;
    ++rows;
    equal_answers += std::max_element(ours, ours + size) - ours ==
                     std::max_element(theirs, theirs + size) - theirs;
  }
};

// Random tokens, in sequences of several lengths.
std::vector<Query> CheckQueries(const Session& session) {
  const ModelConfig& config = session.config();
  const Philox philox(1, Purpose::kSample);
  std::vector<Query> queries;
  for (const int64_t length : {3, 64, 17}) {
    Query query;
    for (int64_t i = 0; i < std::min<int64_t>(length, config.max_tokens()); ++i) {
      const int32_t id = Philox::Below(philox(length, i, 0)[0], config.vocab);
      query.ids.push_back(i == 5 ? config.pad_id : id);  // a text may hold padding
    }
    query.second = config.embeddings.token_types > 1 ? query.ids.size() / 2 : query.ids.size();
    query.rows = {0};
    if (!TypeOf(config.head).per_text) SetAllRows(&query);
    queries.push_back(std::move(query));
  }
  return queries;
}

OnnxBatch BatchOf(const std::vector<Query>& queries, const ModelConfig& config) {
  OnnxBatch batch;
  batch.sequences = queries.size();
  for (const Query& query : queries)
    batch.tokens = std::max<int64_t>(batch.tokens, query.ids.size());
  for (const Query& query : queries) {
    for (int64_t i = 0; i < batch.tokens; ++i) {
      const bool token = i < static_cast<int64_t>(query.ids.size());
      batch.input_ids.push_back(token ? query.ids[i] : config.pad_id);
      batch.attention_mask.push_back(token);
      if (config.embeddings.token_types > 1)
        batch.token_type_ids.push_back(token && i >= query.second);
    }
  }
  return batch;
}

OnnxPool PoolOf(const ExportOptions& options) {
  return options.pool == "mean"  ? OnnxPool::kMean
         : options.pool == "cls" ? OnnxPool::kClass
         : options.pool == "max" ? OnnxPool::kMax
                                 : OnnxPool::kNone;
}

// Compares all results of `file` in ONNX Runtime with Cloze's for the model, in f32.
absl::StatusOr<Comparison> CheckExport(const std::string& file, const ExportOptions& options) {
  ASSIGN_OR_RETURN(const auto session, Session::Open(options.model, DType::kF32));
  const ModelConfig& config = session->config();
  const std::vector<Query> queries = CheckQueries(*session);
  const OnnxBatch batch = BatchOf(queries, config);
  ASSIGN_OR_RETURN(const std::vector<OnnxOutput> outputs, RunOnnx(file, batch));
  Comparison comparison;
  const auto compare = [&](int64_t query, ConstMat ours) {
    // Start and end logits are two outputs, the columns of ours.
    const bool two = TypeOf(config.head).outputs == 2;
    const int64_t rows = outputs[0].values.size() * (two ? 2 : 1) / ours.cols / batch.sequences;
    std::vector<float> theirs(ours.cols);
    for (int64_t r = 0; r < ours.rows; ++r) {
      for (int64_t c = 0; c < ours.cols; ++c) {
        const int64_t row = query * rows + r;
        theirs[c] = two ? outputs[c].values[row] : outputs[0].values[row * ours.cols + c];
      }
      comparison.Add(ours.f32(r), theirs.data(), ours.cols);
    }
  };
  if (config.head == HeadKind::kNone) {
    RETURN_IF_ERROR(
        session->Hidden(queries, /*only_last=*/true, [&](int64_t query, int, ConstMat hidden) {
          compare(query, hidden);
          if (PoolOf(options) == OnnxPool::kNone) return;
          const std::vector<float> vector = Pooled(hidden, options.pool, options.normalize);
          comparison.Add(vector.data(), &outputs[1].values[query * hidden.cols], hidden.cols);
        }));
  } else {
    RETURN_IF_ERROR(session->Logits(queries, compare));
  }
  return comparison;
}

// Returns the report of CheckExport. kInternal if results in f32 are different, or not numbers.
absl::StatusOr<OrderedJson> CheckReport(const ExportOptions& options, const std::string& file) {
  constexpr float kMax = 1e-3f;
  ASSIGN_OR_RETURN(const Comparison check, CheckExport(file, options));
  if (std::isnan(check.largest) || (!options.int8 && check.largest > kMax)) {
    return Error(Exit::kInternal, "--check: results of ONNX Runtime differ by ", check.largest,
        ": expected at most ", kMax, " (nothing was written; please report this)");
  }
  return OrderedJson{{"values", check.values}, {"largest_difference", Decimal(check.largest)},
      {"equal_answers", 1.0 * check.equal_answers / check.rows}};
}

absl::Status Export(ExportOptions options) {
  RETURN_IF_ERROR(CheckFolderName(options.out));
  ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::CreateOutput(options.out));
  ASSIGN_OR_RETURN(const auto model, LoadModel(options.model, /*adapter=*/""));
  const ModelConfig& config = model->config();
  RETURN_IF_ERROR(CheckExportable(config, options.model));
  ModelConfig plain = config;  // ONNX files hold f32
  plain.int8 = false;
  if (PoolOf(options) != OnnxPool::kNone && config.head != HeadKind::kNone)
    return Error(Exit::kUsage, "--pool is for models without a head");
  std::optional<SentenceVectors> vectors;
  if (options.pool.empty()) {
    ASSIGN_OR_RETURN(vectors, VectorsOf(options.model, "--pool chooses a pooling instead"));
  }
  if (vectors.has_value() && !vectors->dense.empty())
    return Error(Exit::kMismatch, QuotePath(options.model),
        ": its vectors end with a Dense layer, which the ONNX file would lack: expected --pool");
  if (vectors.has_value() && config.head == HeadKind::kNone)
    options.pool = vectors->pool, options.normalize = vectors->normalize;
  RETURN_IF_ERROR(ExportOnnx(*model,
      {PoolOf(options), options.normalize, options.opset, options.external_data, options.int8},
      folder.path()));
  RETURN_IF_ERROR(WriteNewFile(JoinPath(folder.path(), "config.json"), FormatConfig(plain)));
  RETURN_IF_ERROR(
      CopyTokenizer({options.model}, folder.path(), config.vocab, LongestText(config, vectors)));
  RETURN_IF_ERROR(CopySentenceVectors(vectors, folder.path()));
  OrderedJson report = {{"model", JoinPath(folder.final_path(), "model.onnx")}};
  if (options.check) {
    ASSIGN_OR_RETURN(
        const OrderedJson check, CheckReport(options, JoinPath(folder.path(), "model.onnx")));
    report.update(check);
  }
  RETURN_IF_ERROR(CopyModelCard(
      options.model, folder.path(), "`cloze export` has written this copy in the ONNX format."));
  RETURN_IF_ERROR(folder.Commit());
  if (config.crf)
    std::fputs("cloze: logits are the scores of single tokens; ONNX has no CRF\n", stderr);
  return WriteStdout(ToJsonLine(report) + "\n");
}

}  // namespace

void AddExport(Command& app) {
  const auto declare = [](Command& command, ExportOptions& options) {
    command.Add("--model", &options.model, "Model folder: a run, or a Hugging Face folder.",
        {.required = true});
    command.Add("--out", &options.out,
        "Folder for model.onnx, config.json and the tokenizer; must not exist.",
        {.required = true});
    command.Add("--pool", &options.pool,
        "Models without a head: also give sentence_embedding, the mean or the largest values of "
        "the tokens, or the first token, of length 1. Default: as modules.json of "
        "sentence-transformers says, whose files are then copied; without it none.",
        {.choices = {"none", "mean", "cls", "max"}});
    command.Add("--opset", &options.opset, "Version of ONNX's operators.", {.min = 17, .max = 23});
    command.Add("--external-data", &options.external_data,
        "Write the weights to model.onnx_data, as is always done above 1.8 GB.");
    command.Add("--int8", &options.int8,
        "Multiply the linear layers of the blocks in int8, with a scale for each output of a "
        "weight and one for each tensor of activations. That loses more than `cloze quantize`, "
        "which has one for each token; and sums may saturate on CPUs without VNNI.");
    command.Add("--check", &options.check,
        "Compare results for random tokens with those of ONNX Runtime, before the folder appears: "
        "print the largest difference (relative for values above 1) and the share of rows with the "
        "same largest value. Needs ONNX Runtime, and its headers when Cloze is built.");
  };
  app.AddCommand<ExportOptions>("export",
      "Write a model as ONNX, in f32 or int8, for ONNX Runtime and others.",
      "  cloze export --model runs/sst2 --out sst2_onnx\n"
      "  cloze export --model models/minilm --pool mean --int8 --out minilm_onnx",
      declare, Export);
}

}  // namespace cloze
