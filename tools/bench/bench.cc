// `cloze bench`: how fast this machine trains, infers, tokenises and starts.
#include "tools/bench/bench.h"

#include <map>

#include "tools/command.h"

namespace cloze {
namespace {

using Work = absl::Status (*)(const BenchOptions&);

const std::map<std::string, Work>& Works() {
  static const std::map<std::string, Work> works = {{"peak", BenchPeak}, {"train", BenchTrain},
      {"finetune", BenchFinetune}, {"infer", BenchInfer}, {"tokenize", BenchTokenize},
      {"start", BenchStart}};
  return works;
}

absl::Status Bench(const BenchOptions& options) {
  if (options.data != "" && options.data != "sst2" && options.data != "imdb")
    return UsageError("--data: sst2 or imdb expected");
  for (const std::string& work : options.works) {
    ForgetPeak();
    RETURN_IF_ERROR(Annotate(Works().at(work)(options), absl::StrCat("bench ", work)));
  }
  return absl::OkStatus();
}

}  // namespace

void AddBench(CLI::App& app, Run* run) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure this machine: a result line for each case.");
  auto o = std::make_shared<BenchOptions>();
  std::vector<std::string> names;
  for (const auto& [name, work] : Works()) names.push_back(name);
  bench
      ->add_option("work", o->works,
          "peak: matrix products; train: masked-LM steps; finetune: classifier steps on texts of "
          "uneven lengths; infer: logits; "
          "tokenize: text to ids, learning a vocabulary; start: a new process and its first "
          "answer.")
      ->required()
      ->check(CLI::IsMember(names));
  bench->add_option("--encoder", o->encoder, "tiny, mini, small, medium or base.")
      ->capture_default_str();
  bench
      ->add_option("--vocab", o->vocab,
          "Tokens in the vocabulary. Default: 30522; tokenize also learns 8192.")
      ->check(CLI::Range(100, 1000000));
  bench
      ->add_option("--batch", o->batch,
          "Sequences of a step. Default: 64 in train, 32 (imdb 8) in finetune, 1 and 32 in infer.")
      ->check(CLI::Range(1, 65536));
  bench
      ->add_option(
          "--seq", o->seq, "Tokens of a sequence. Default: 128 in train, 32, 128 and 512 in infer.")
      ->check(CLI::Range(8, 65536));
  bench->add_option("--compute", o->compute, "auto (infer: each that this CPU has), f32 or bf16.")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  bench->add_option("--dropout", o->dropout, "train, finetune: probability.")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  bench->add_option("--data", o->data, "finetune: lengths as in sst2 or imdb. Default: sst2.");
  bench
      ->add_option("--lora", o->lora,
          "finetune: the whole model learns, or LoRA of rank 8 on query and value or all linear "
          "layers.")
      ->check(CLI::IsMember({"none", "qv", "all"}))
      ->capture_default_str();
  bench->add_option("--task", o->task, "infer: cls or tag.")
      ->check(CLI::IsMember({"cls", "tag"}))
      ->capture_default_str();
  bench->add_option("--text", o->text, "tokenize: a text file. Default: made-up words.");
  bench->add_option("--megabytes", o->megabytes, "tokenize: of the text to use.")
      ->check(CLI::Range(0.01, 1e5))
      ->capture_default_str();
  bench->add_option("--steps", o->steps, "Timed steps.")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  bench->add_option("--warmup", o->warmup, "Steps before them.")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  bench->add_option("--peer", o->peer, "Name of this program in the lines.")->capture_default_str();
  bench->add_flag("--json", o->json, "A JSON object a line.");
  bench->add_flag(
      "--profile", o->profile, "train, finetune, infer: where the time goes, op by op, on stderr.");
  bench->callback([=] { *run = [=] { return Bench(*o); }; });
}

}  // namespace cloze
