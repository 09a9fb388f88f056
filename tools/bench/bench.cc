// `cloze bench`: measures how fast this machine trains, infers, tokenizes and starts.
#include "tools/bench/bench.h"

#include <map>

#include "tools/command.h"

namespace cloze {
namespace bench {
namespace {

using Work = absl::Status (*)(const Options&);

const std::map<std::string, Work>& Works() {
  static const std::map<std::string, Work> works = {{"peak", Peak}, {"train", Train},
      {"finetune", Finetune}, {"infer", Infer}, {"tokenize", Tokenize}, {"start", Start},
      {"search", Search}};
  return works;
}

absl::Status RunAll(const Options& options) {
  for (const std::string& work : options.works) {
    ResetPeakMemory();
    RETURN_IF_ERROR(Annotate(Works().at(work)(options), "bench ", work));
  }
  return absl::OkStatus();
}

void AddModelOptions(Command& command, Options* o) {
  command.Add("--encoder", &o->encoder,
      "Encoder, or decoder, with random weights: tiny, mini, small, medium or base (BERT), or the "
      "config.json of a model of any family.",
      {.type = "NAME or FILE"});
  command.Add("--vocab", &o->vocab,
      "Size of the vocabulary in tokens. Default: 30522; tokenize also learns 8192.",
      {.min = 100, .max = 1000000});
  command.Add("--batch", &o->batch,
      "Sequences per step. Default: 64 for train, 32 (imdb: 8) for finetune, 1 and 32 for infer. "
      "search: queries.",
      {.min = 1, .max = 65536});
  command.Add("--seq", &o->seq,
      "Tokens per sequence. Default: 128 for train; 32, 128 and 512 for infer.",
      {.min = 8, .max = 65536});
  command.Add("--compute", &o->compute,
      "Type of activations and packed weights; auto: bf16 where it is faster, for infer both. "
      "int8: infer and start only. search: type of the vectors, auto for all.",
      {.choices = {"auto", "f32", "bf16", "int8"}});
}

void AddWorkOptions(Command& command, Options* o) {
  command.Add("--dropout", &o->dropout, "train, finetune: dropout probability.", {.max = 0.9});
  command.Add("--data", &o->data,
      "finetune: dataset with this distribution of lengths. Default: sst2.",
      {.choices = {"sst2", "imdb"}});
  command.Add("--lora", &o->lora,
      "finetune: train the whole model, or LoRA of rank 8 on query and value or on all linear "
      "layers.",
      {.choices = {"none", "qv", "all"}});
  command.Add("--task", &o->task, "infer: classification or tagging.", {.choices = {"cls", "tag"}});
  command.Add(
      "--text", &o->text, "tokenize: text file. Default: generated words.", {.type = "FILE"});
  command.Add("--tokenizer", &o->tokenizer,
      "tokenize: a folder or tokenizer.json. Default: WordPiece, learned from the text.",
      {.type = "FOLDER"});
  command.Add(
      "--megabytes", &o->megabytes, "tokenize: size of the text.", {.min = 0.01, .max = 1e5});
}

void AddRunOptions(Command& command, Options* o) {
  command.Add("--steps", &o->steps,
      "Minimum number of timed steps; fast ones are repeated more often.",
      {.min = 1, .max = 10000});
  command.Add("--warmup", &o->warmup, "Number of steps before them.", {.max = 1000});
  command.Add("--peer", &o->peer, "Name of this program in the result lines.");
  command.Add("--json", &o->json, "Print one JSON object per line.");
  command.Add(
      "--profile", &o->profile, "train, finetune, infer: print the time of every op on stderr.");
}

}  // namespace
}  // namespace bench

void AddBench(Command& app) {
  const auto declare = [](Command& command, bench::Options& options) {
    std::vector<std::string> names;
    for (const auto& [name, work] : bench::Works()) names.push_back(name);
    command.Add("work", &options.works,
        "peak: matrix products. train: masked-LM steps; of a decoder, steps that predict each next "
        "token. finetune: classifier steps on texts of varying lengths. infer: logits. tokenize: "
        "learning a vocabulary, and text to ids. start: a new process up to its first answer. "
        "search: one query and 1000 through a million vectors of 384 dimensions (3 GB of memory).",
        {.required = true, .choices = names});
    bench::AddModelOptions(command, &options);
    bench::AddWorkOptions(command, &options);
    bench::AddRunOptions(command, &options);
  };
  app.AddCommand<bench::Options>("bench",
      "Measure the speed of this machine. Prints one line per case.",
      "  cloze bench train infer\n"
      "  cloze bench finetune --encoder base --data imdb --json",
      declare, bench::RunAll);
}

}  // namespace cloze
