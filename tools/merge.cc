// `cloze merge`: writes a model folder from a base model and an adapter.
#include "core/base/file.h"
#include "core/manifest/manifest.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "encoder/model.h"
#include "tasks/run/run_folder.h"
#include "tools/infer.h"
#include "tools/model_card.h"

namespace cloze {
namespace {

struct MergeOptions {
  std::string model, adapter, out;
};

absl::Status Merge(const MergeOptions& options) {
  RETURN_IF_ERROR(CheckFolderName(options.out));
  ASSIGN_OR_RETURN(const std::string base, BaseFolder(options.adapter, options.model));
  ASSIGN_OR_RETURN(const AdapterConfig file, ReadAdapterConfig(options.adapter));
  const bool own = PathExists(JoinPath(options.adapter, "modules.json"));
  ASSIGN_OR_RETURN(const auto vectors, VectorsOf(own ? options.adapter : base));
  ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::CreateOutput(options.out));
  ASSIGN_OR_RETURN(const auto model, LoadModel(base, options.adapter));
  if (model->config().int8) {
    return Error(Exit::kMismatch, QuotePath(base),
        ": is quantized: expected a model with floating-point weights (merge with that one, then "
        "quantize the result)");
  }
  MergeLora(file.lora, &model->params());
  const absl::Status saved = SaveWeights(folder.path(), model->config(), model->params());
  if (ExitOf(saved) == Exit::kInternal) {  // both parts are finite, but not their sum
    return Error(Exit::kData, QuotePath(options.adapter), ": cannot be merged: ", saved.message());
  }
  RETURN_IF_ERROR(saved);
  const ModelConfig& config = model->config();
  RETURN_IF_ERROR(CopyTokenizer(
      {options.adapter, base}, folder.path(), config.vocab, LongestText(config, vectors)));
  RETURN_IF_ERROR(CopySpec(options.adapter, folder.path()));
  RETURN_IF_ERROR(AddManifest(folder.path(), 0).status());
  RETURN_IF_ERROR(CopySentenceVectors(vectors, folder.path()));
  RETURN_IF_ERROR(CopyModelCard(options.adapter, folder.path(),
      "`cloze merge` has merged the adapter into the weights of its base model."));
  RETURN_IF_ERROR(folder.Commit());
  return WriteStdout(absl::StrCat("{\"model\": ", JsonString(folder.final_path()), "}\n"));
}

}  // namespace

void AddMerge(Command& app) {
  const auto declare = [](Command& command, MergeOptions& options) {
    command.Add("--model", &options.model,
        "Model folder of the base model. Default: the one that the adapter names.");
    command.Add("--adapter", &options.adapter, "Adapter folder, from a LoRA run or from PEFT.",
        {.required = true});
    command.Add(
        "--out", &options.out, "Model folder to write; must not exist.", {.required = true});
  };
  app.AddCommand<MergeOptions>("merge",
      "Merge a LoRA adapter into its base model, and write a model folder.",
      "  cloze merge --adapter runs/sst2_lora --out models/sst2\n"
      "  cloze merge --model models/bert --adapter adapters/sst2 --out models/sst2",
      declare, Merge);
}

}  // namespace cloze
