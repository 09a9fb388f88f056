// `cloze bench`: measures how fast this machine trains, infers, tokenizes and starts.
#include "tools/bench/bench.h"

#include <map>
#include <memory>

#include "tools/command.h"

namespace cloze {
namespace bench {
namespace {

using Work = absl::Status (*)(const Options&);

const std::map<std::string, Work>& Works() {
  static const std::map<std::string, Work> works = {{"peak", Peak}, {"train", Train},
      {"finetune", Finetune}, {"infer", Infer}, {"tokenize", Tokenize}, {"start", Start}};
  return works;
}

absl::Status RunAll(const Options& options) {
  for (const std::string& work : options.works) {
    ForgetPeak();
    RETURN_IF_ERROR(Annotate(Works().at(work)(options), "bench ", work));
  }
  return absl::OkStatus();
}

void AddModelOptions(CLI::App* command, Options* o) {
  command->add_option("--encoder", o->encoder, "Size of the encoder.")
      ->check(CLI::IsMember({"tiny", "mini", "small", "medium", "base"}))
      ->capture_default_str();
  command
      ->add_option("--vocab", o->vocab,
          "Size of the vocabulary in tokens. Default: 30522; tokenize also learns 8192.")
      ->check(CLI::Range(100, 1000000));
  command
      ->add_option("--batch", o->batch,
          "Sequences per step. Default: 64 for train, 32 (imdb: 8) for finetune, 1 and 32 for "
          "infer.")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--seq", o->seq,
          "Tokens per sequence. Default: 128 for train; 32, 128 and 512 for infer.")
      ->check(CLI::Range(8, 65536));
  command
      ->add_option("--compute", o->compute,
          "Type of activations and packed weights; auto: bf16 if the CPU has it, for infer both.")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->capture_default_str();
}

void AddWorkOptions(CLI::App* command, Options* o) {
  command->add_option("--dropout", o->dropout, "train, finetune: dropout probability.")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  command
      ->add_option("--data", o->data,
          "finetune: dataset with this distribution of lengths. "
          "Default: sst2.")
      ->check(CLI::IsMember({"sst2", "imdb"}));
  command
      ->add_option("--lora", o->lora,
          "finetune: train the whole model, or LoRA of rank 8 on query and value or on all linear "
          "layers.")
      ->check(CLI::IsMember({"none", "qv", "all"}))
      ->capture_default_str();
  command->add_option("--task", o->task, "infer: classification or tagging.")
      ->check(CLI::IsMember({"cls", "tag"}))
      ->capture_default_str();
  command->add_option("--text", o->text, "tokenize: text file. Default: generated words.")
      ->type_name("FILE");
  command->add_option("--megabytes", o->megabytes, "tokenize: size of the text.")
      ->check(CLI::Range(0.01, 1e5))
      ->capture_default_str();
}

void AddRunOptions(CLI::App* command, Options* o) {
  command->add_option("--steps", o->steps, "Number of timed steps.")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--warmup", o->warmup, "Number of steps before them.")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--peer", o->peer, "Name of this program in the result lines.")
      ->capture_default_str();
  command->add_flag("--json", o->json, "Print one JSON object per line.");
  command->add_flag(
      "--profile", o->profile, "train, finetune, infer: print the time of every op on stderr.");
}

}  // namespace
}  // namespace bench

void AddBench(CLI::App& app, Run* run) {
  CLI::App* command =
      app.add_subcommand("bench", "Measure the speed of this machine. Prints one line per case.");
  auto options = std::make_shared<bench::Options>();
  std::vector<std::string> names;
  for (const auto& [name, work] : bench::Works()) names.push_back(name);
  command
      ->add_option("work", options->works,
          "peak: matrix products. train: masked-LM steps. finetune: classifier steps on texts of "
          "varying lengths. infer: logits. tokenize: learning a vocabulary, and text to ids. "
          "start: "
          "a new process up to its first answer.")
      ->required()
      ->check(CLI::IsMember(names));
  bench::AddModelOptions(command, options.get());
  bench::AddWorkOptions(command, options.get());
  bench::AddRunOptions(command, options.get());
  command->footer(
      "Examples:\n"
      "  cloze bench train infer\n"
      "  cloze bench finetune --encoder base --data imdb --json");
  command->callback([=] { *run = [=] { return bench::RunAll(*options); }; });
}

}  // namespace cloze
