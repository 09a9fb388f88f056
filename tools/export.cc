// `cloze export`: writes a model as ONNX.
#include "encoder/onnx/export.h"
#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "tools/command.h"
#include "tools/process.h"

namespace cloze {
namespace {

struct ExportOptions {
  std::string model, out, pool = "none";
  int opset = 17;
  bool external_data = false, int8 = false;
};

absl::Status CopyTokenizer(const std::string& from, const std::string& to, int64_t max_tokens) {
  const auto tokenizer = LoadTokenizer(from, true);
  if (tokenizer.ok()) return SaveTokenizer(**tokenizer, to, max_tokens);
  return ExitOf(tokenizer.status()) == Exit::kNoInput ? absl::OkStatus() : tokenizer.status();
}

absl::Status Export(const ExportOptions& options) {
  if (IsAdapter(options.model)) {
    return Error(Exit::kMismatch, QuotePath(options.model),
        " is an adapter: expected a model folder (write one with `cloze merge`)");
  }
  if (PathExists(options.out))
    return Error(
        Exit::kCannotCreate, QuotePath(options.out), ": exists already (choose a new folder)");
  ASSIGN_OR_RETURN(const auto model, LoadModel(options.model, /*adapter=*/""));
  const ModelConfig& config = model->config();
  if (config.family->causal) {
    return Error(Exit::kMismatch, QuotePath(options.model),
        ": is a decoder: expected an encoder (`cloze generate` runs decoders)");
  }
  ModelConfig plain = config;  // ONNX files hold f32
  plain.int8 = false;
  const OnnxPool pool = options.pool == "mean"  ? OnnxPool::kMean
                        : options.pool == "cls" ? OnnxPool::kClass
                                                : OnnxPool::kNone;
  if (pool != OnnxPool::kNone && config.head != HeadKind::kNone)
    return Error(Exit::kUsage, "--pool is for models without a head");
  OnnxGraph graph = ExportOnnx(*model, pool, options.int8);
  std::string out = options.out;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  RETURN_IF_ERROR(MakeDirectories(DirectoryOf(out)));
  ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::Create(out));
  RETURN_IF_ERROR(options.external_data ? graph.Write(folder.path(), options.opset, 0)
                                        : graph.Write(folder.path(), options.opset));
  RETURN_IF_ERROR(WriteNewFile(JoinPath(folder.path(), "config.json"), FormatConfig(plain)));
  RETURN_IF_ERROR(CopyTokenizer(options.model, folder.path(), config.max_tokens()));
  RETURN_IF_ERROR(folder.Commit());
  if (config.crf)
    std::fputs("cloze: logits are the scores of single tokens; ONNX has no CRF\n", stderr);
  return WriteStdout(absl::StrCat("{\"model\": ", JsonString(JoinPath(out, "model.onnx")), "}\n"));
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
        "Models without a head: also give sentence_embedding, the mean of the tokens or the first "
        "token, of length 1.",
        {.choices = {"none", "mean", "cls"}});
    command.Add("--opset", &options.opset, "Version of ONNX's operators.", {.min = 17, .max = 25});
    command.Add("--external-data", &options.external_data,
        "Write the weights to model.onnx_data, as is always done above 1.8 GB.");
    command.Add("--int8", &options.int8,
        "Multiply the linear layers of the blocks in int8, with a scale for each output of a "
        "weight "
        "and one for each tensor of activations. That loses more than `cloze quantize`, which has "
        "one for each token; and sums may saturate on CPUs without VNNI.");
  };
  app.AddCommand<ExportOptions>("export",
      "Write a model as ONNX, in f32 or int8, for ONNX Runtime and others.",
      "  cloze export --model runs/sst2 --out sst2_onnx\n"
      "  cloze export --model models/minilm --pool mean --int8 --out minilm_onnx",
      declare, Export);
}

}  // namespace cloze
