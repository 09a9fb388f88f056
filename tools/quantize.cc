// `cloze quantize`: writes a model with int8 weights, unless it loses too much.
#include <cmath>
#include <cstdio>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/manifest/manifest.h"
#include "core/ops/stored_matrix.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/run/run_folder.h"
#include "tools/evaluation.h"
#include "tools/infer.h"
#include "tools/int8_comparison.h"
#include "tools/model_card.h"
#include "tools/process.h"

namespace cloze {
namespace {

struct QuantizeOptions {
  std::string model, out;
  ComparisonOptions comparison;
  double max_loss = 0.5;
};

constexpr double kRounding = 1e-9;  // tolerance for rounding errors of a loss

// The blocks whose layers stay in floating point, and what that costs.
struct Plan {
  std::vector<int> blocks;  // Param::layer of all blocks, an encoder's before its decoder's
  std::vector<int> kept;    // indices of `blocks`
  OrderedJson loss_by_layer = OrderedJson::array();
};

bool Keeps(const Plan& plan, const Param& param) {
  return absl::c_any_of(plan.kept, [&](int i) { return plan.blocks[i] == param.layer; });
}

// Gives the parameters that are `wanted` in int8 the values that a folder holds, and all others
// their own.
void SetValues(absl::Span<const float> all_values, absl::FunctionRef<bool(const Param&)> wanted,
    const ModelConfig& config, ParamStore* params) {
  absl::c_copy(all_values, params->values().begin());
  for (ParamId id = 0; id < params->size(); ++id) {
    const Param& param = params->param(id);
    if (!IsStoredAsInt8(param, config) || !wanted(param)) continue;
    const Mat values = params->value(id);
    const Int8Matrix rounded = QuantizeMatrix(values);
    for (int64_t r = 0; r < values.rows; ++r) {
      for (int64_t c = 0; c < values.cols; ++c)
        values.f32(r)[c] = rounded.q[r * values.cols + c] * rounded.scale[r];
    }
  }
  params->Changed();
}

// Measures each block alone in int8. Keeps in floating point those that lose most, until the others
// and the word embeddings together lose at most `most` points. Requires that all values are read.
absl::StatusOr<Plan> MakePlan(
    const Answerer& answer, const AnswersAndScore& before, Session& session, double most) {
  Plan plan;
  ParamStore& params = session.model().params();
  const std::vector<float> all_values(params.values().begin(), params.values().end());
  std::set<int> blocks;
  for (ParamId id = 0; id < params.size(); ++id) {
    if (IsInt8Layer(params.param(id), session.config())) blocks.insert(params.param(id).layer);
  }
  plan.blocks.assign(blocks.begin(), blocks.end());
  std::vector<std::pair<double, int>> by_loss;
  const auto loss = [&](absl::FunctionRef<bool(const Param&)> wanted) -> absl::StatusOr<double> {
    SetValues(all_values, wanted, session.config(), &params);
    session.UseInt8(wanted);
    ASSIGN_OR_RETURN(const AnswersAndScore after, answer(session));
    return PointsLost(before, after);
  };
  const int count = static_cast<int>(plan.blocks.size());
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(
        const double lost, loss([&](const Param& p) { return p.layer == plan.blocks[i]; }));
    std::fprintf(stderr, "layer %d of %d alone in int8: %.2f points of %s lost\n", i + 1, count,
        lost, before.metric.name.c_str());
    plan.loss_by_layer.push_back(lost);
    // A metric that is not a number is the worst.
    by_loss.push_back({std::isnan(lost) ? -INFINITY : -lost, i});
  }
  absl::c_sort(by_loss);
  for (const auto& [lost, i] : by_loss) {
    ASSIGN_OR_RETURN(const double all, loss([&](const Param& p) { return !Keeps(plan, p); }));
    const std::string layers = plan.kept.empty()
                                   ? "all layers in int8"
                                   : absl::StrCat("all layers but ", plan.kept.size(), " in int8");
    std::fprintf(
        stderr, "%s: %s %+.2f points\n", layers.c_str(), before.metric.name.c_str(), -all + 0.0);
    if (all <= most + kRounding) break;
    plan.kept.push_back(i);
  }
  SetValues(
      all_values, [](const Param&) { return false; }, session.config(), &params);
  return plan;
}

// Writes the model folder: int8 weights, tokenizer, and the spec if the model is from a run.
absl::Status WriteFolder(const QuantizeOptions& options, const Plan& plan, ModelConfig config,
    const std::optional<SentenceVectors>& vectors, Session& session, const std::string& folder) {
  const ParamStore& params = session.model().params();
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& p = params.param(id);
    if (IsInt8Layer(p, session.config()) && Keeps(plan, p))
      config.unquantized.push_back(p.name.substr(0, p.name.rfind('.')));
  }
  config.int8 = true;
  RETURN_IF_ERROR(SaveWeights(folder, config, params));
  if (const auto tokenizer = session.TokenizerOr(); tokenizer.ok())
    RETURN_IF_ERROR(SaveTokenizer(**tokenizer, folder, LongestText(config, vectors)));
  RETURN_IF_ERROR(CopySpec(options.model, folder));
  RETURN_IF_ERROR(AddManifest(folder, 0).status());
  return CopySentenceVectors(vectors, folder);
}

absl::Status Quantize(const QuantizeOptions& options) {
  RETURN_IF_ERROR(CheckFolderName(options.out));
  const bool labelled = !options.comparison.data.empty();
  if (labelled != options.comparison.texts.empty())
    return UsageError("expected --data (labelled) or --texts (without labels)");
  if (IsAdapter(options.model)) {
    return Error(Exit::kMismatch, QuotePath(options.model),
        ": is an adapter: expected a model folder (write one with `cloze merge`)");
  }
  StopOnSignals();  // the comparison asks for signals
  ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::CreateOutput(options.out));
  ASSIGN_OR_RETURN(const auto session, Session::Open(options.model, DType::kF32));
  if (session->config().int8)
    return Error(Exit::kMismatch, QuotePath(options.model), ": is quantized already");
  if (session->config().encoder != nullptr && !labelled) {
    return Error(Exit::kMismatch, QuotePath(options.model),
        ": is an encoder-decoder: expected --data (pairs of a text and its target)");
  }
  ASSIGN_OR_RETURN(const auto vectors, VectorsOf(options.model));
  ASSIGN_OR_RETURN(
      const Answerer answer, OpenComparison(options.model, options.comparison, *session));
  ASSIGN_OR_RETURN(const AnswersAndScore before, answer(*session));
  RETURN_IF_ERROR(session->model().WordEmbeddings().status());  // reads them all
  ModelConfig config = session->config();
  config.original = HashParams(session->model().params(), config);
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(answer, before, *session, options.max_loss));
  RETURN_IF_ERROR(WriteFolder(options, plan, std::move(config), vectors, *session, folder.path()));
  ASSIGN_OR_RETURN(const auto written, Session::Open(folder.path(), DType::kF32));
  written->UseInt8();
  ASSIGN_OR_RETURN(const AnswersAndScore after, answer(*written));
  const double loss = PointsLost(before, after);
  const OrderedJson result = {{"model", folder.final_path()}, {"metric", before.metric.name},
      {"before", before.value}, {"after", labelled ? after.value : 1 - loss / 100},
      {"loss_points", loss}, {"equal_answers", EqualShare(before, after)},
      {"loss_by_layer", plan.loss_by_layer}, {"kept_layers", plan.kept}};
  if (!(loss <= options.max_loss + kRounding)) {
    return Error(Exit::kLimit, QuotePath(options.model), ": int8 with ", plan.kept.size(),
        " layers kept loses ", loss, " points of ", before.metric.name, ": expected at most ",
        options.max_loss, " (--max-loss); nothing is written");
  }
  RETURN_IF_ERROR(CopyModelCard(options.model, folder.path(),
      absl::StrFormat("`cloze quantize` has written this copy in int8, %d layers of which stay in "
                      "floating point: %s %.4f before, %.4f after.",
          plan.kept.size(), labelled ? before.metric.name : "equal answers", before.value,
          labelled ? after.value : 1 - loss / 100)));
  RETURN_IF_ERROR(folder.Commit());
  return WriteStdout(ToJsonLine(result) + "\n");
}

}  // namespace

void AddQuantize(Command& app) {
  const auto declare = [](Command& command, QuantizeOptions& options) {
    command.Add("--model", &options.model, "Model folder: a run, or a Hugging Face folder.",
        {.required = true});
    command.Add("--data", &options.comparison.data,
        "Labelled data, with the columns or fields of the run's spec. Models without a head need "
        "--texts.");
    AddDataSet(command, &options.comparison.overrides);
    command.Add("--texts", &options.comparison.texts,
        "Texts without labels, one per line or in a table or JSON lines, with the columns or "
        "fields of the run's spec. The loss is then the share of answers that differ; "
        "for models that do not classify, 1 - the mean cosine of the texts' vectors, pooled as "
        "modules.json says or to their mean.",
        {.type = "FILE"});
    command.Add("--max-loss", &options.max_loss,
        "Largest allowed drop of the metric in points: from 0.91 to 0.90 is 1 point (of metrics "
        "where lower is better, the rise in percent). Blocks stay in floating point as needed; "
        "exit code 77 if that does not suffice.",
        {.max = 100});
    command.Add("--out", &options.out, "Folder to write; must not exist.", {.required = true});
  };
  app.AddCommand<QuantizeOptions>("quantize",
      "Write an int8 copy of a model for inference, unless its quality drops too much.",
      "  cloze quantize --model runs/sst2 --data data/sst2/dev.tsv --out sst2_int8\n"
      "  cloze quantize --model models/minilm --texts texts.txt --max-loss 1 --out minilm_int8",
      declare, Quantize);
}

}  // namespace cloze
