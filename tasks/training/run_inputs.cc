#include "tasks/training/run_inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/families/families.h"
#include "encoder/folder/model_folder.h"
#include "tasks/compute_type.h"
#include "tasks/data/readers.h"
#include "tasks/data_duplicates.h"
#include "tasks/data_summary.h"
#include "tasks/labelled_task.h"
#include "tasks/training/learned_vocab.h"

namespace cloze {
namespace {

constexpr int64_t kCheckedBytes = 1 << 20;  // of texts, for a vocabulary in a check

// Returns the field of the spec that says where the tokenizer is.
std::string TokenizerField(const TaskSpec& spec) {
  return spec.model().tokenizer().empty() && !spec.model().start_from().empty() ? "model.start_from"
                                                                                : "model.tokenizer";
}

// Returns an error unless the task fits the kind of model, the vocabulary its embedding table, and
// the longest sequence its positions.
absl::Status CheckFit(const LoadedSpec& loaded, const Task& task, const ModelConfig& config,
    const Tokenizer& tokenizer) {
  if (tokenizer.vocab_size() > config.vocab) {
    return AtField(loaded, TokenizerField(loaded.spec),
        Error(Exit::kMismatch, "the tokenizer has ", tokenizer.vocab_size(),
            " tokens: expected at most ", config.vocab, ", the vocabulary of the model"));
  }
  return task.CheckModel(loaded, config);
}

void SetDropout(const ModelSpec& model, ModelConfig* config) {
  if (config->encoder != nullptr) {
    ModelConfig encoder = *config->encoder;
    SetDropout(model, &encoder);
    config->encoder = std::make_shared<const ModelConfig>(std::move(encoder));
  }
  if (model.has_dropout()) config->dropout = model.dropout(), config->classifier_dropout = -1;
  if (model.has_attention_dropout()) config->attention.dropout = model.attention_dropout();
}

// Returns the encoder-decoder that sequence_to_sequence trains: `config` itself, or two models of
// its shape, or it and model.decoder_from.
absl::StatusOr<ModelConfig> WithDecoder(
    const LoadedSpec& loaded, const Tokenizer& tokenizer, const ModelConfig& config) {
  const ModelSpec& model = loaded.spec.model();
  if (config.encoder != nullptr && !model.decoder_from().empty())
    return SpecError(loaded, "model.decoder_from",
        "model.start_from is an encoder-decoder: expected no decoder_from, or an encoder there");
  if (!loaded.spec.has_sequence_to_sequence() || config.encoder != nullptr) return config;
  if (!TrainsAll(loaded.spec.trainable()))
    return SpecError(loaded, "trainable",
        "the decoder's attention to the encoder is new and must be trained: expected no trainable");
  absl::StatusOr<ModelConfig> decoder = config;
  if (!model.decoder_from().empty()) decoder = LoadConfig(model.decoder_from());
  auto pair = decoder.ok() ? JoinEncoderDecoder(config, *decoder) : decoder;
  if (!pair.ok()) {
    return AtField(loaded,
        model.start_from().empty()     ? "model.encoder"
        : model.decoder_from().empty() ? "model.start_from"
                                       : "model.decoder_from",
        pair.status());
  }
  pair->end_id = tokenizer.special().sep;
  pair->generation.start_id = tokenizer.special().cls;
  SetDropout(model, &*pair);
  return pair;
}

absl::StatusOr<ModelConfig> EncoderConfig(const LoadedSpec& loaded, const Tokenizer& tokenizer) {
  const ModelSpec& model = loaded.spec.model();
  const SpecialIds& special = tokenizer.special();
  ModelConfig config;
  if (model.start_from().empty()) {
    ASSIGN_OR_RETURN(config, ConfigFromSpec(model.encoder()));
    config.vocab = tokenizer.vocab_size();
    config.SetPad(std::max(special.pad, 0));
    config.end_id = special.sep;
  } else {
    auto start = LoadConfig(model.start_from());
    if (start.ok() && start->int8)
      start = Error(Exit::kMismatch, QuotePath(model.start_from()),
          ": is quantized: expected a model with floating-point weights (train that one, then "
          "quantize the result)");
    if (!start.ok()) return AtField(loaded, "model.start_from", start.status());
    config = *std::move(start);
  }
  SetDropout(model, &config);
  // The ids that transformers would else take from the family's own vocabulary.
  if (config.special_ids.empty()) {
    config.special_ids = {{kSpecialIds[0], special.cls}, {kSpecialIds[1], special.cls},
        {kSpecialIds[2], special.sep}, {kSpecialIds[3], special.sep}};
  }
  return WithDecoder(loaded, tokenizer, config);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizerOf(
    const LoadedSpec& loaded, const LearnOptions& learning) {
  const ModelSpec& model = loaded.spec.model();
  const std::string field = TokenizerField(loaded.spec);
  if (LearnsVocabulary(loaded.spec)) {
    auto learned = LearnTokenizer(loaded.spec, learning);
    return learned.ok() ? std::move(learned) : AtData(loaded, "train", learned.status());
  }
  auto tokenizer = LoadTokenizer(
      model.tokenizer().empty() ? model.start_from() : model.tokenizer(), model.lowercase());
  if (!tokenizer.ok()) return AtField(loaded, field, tokenizer.status());
  if (!model.tokenizer().empty() && !model.start_from().empty()) {
    const auto own = LoadTokenizer(model.start_from(), model.lowercase());
    if (own.ok() && !(*own)->SameIds(**tokenizer))
      return AtField(loaded, field,
          Error(Exit::kMismatch, "gives other ids than the tokenizer of model.start_from"));
  }
  return tokenizer;
}

// Reads up to `most` pairs of evaluation.pairs; none if it is not set.
absl::StatusOr<std::vector<TextPair>> ReadPairs(const LoadedSpec& loaded,
    const Tokenizer& tokenizer, const ModelConfig& config, int64_t most, CutCounts* cut) {
  const auto& paths = loaded.spec.evaluation().pairs();
  const std::vector<std::string> files(paths.begin(), paths.end());
  std::vector<TextPair> pairs;
  if (files.empty()) return pairs;
  const auto read = [&]() -> absl::Status {
    DataSpec data;
    *data.mutable_files() = paths;
    RETURN_IF_ERROR(RequireFiles(data, "it is read at each start"));
    ASSIGN_OR_RETURN(PairReader reader, PairReader::Open(files, /*group=*/""));
    ASSIGN_OR_RETURN(pairs, reader.Next(most, {&tokenizer, config.max_tokens()}, cut));
    return pairs.empty() ? Error(Exit::kData, "the files have no pairs") : absl::OkStatus();
  };
  if (const absl::Status status = read(); !status.ok())
    return AtField(loaded, "evaluation.pairs", status);
  return pairs;
}

// The errors of a spec's inputs.
struct InputErrors {
  std::vector<absl::Status> list;
  bool Check(const absl::Status& status) {
    if (!status.ok()) list.push_back(status);
    return status.ok();
  }
};

// Checks what the model and its tokenizer must fit.
void CheckModel(const LoadedSpec& loaded, const Task& task, const ModelConfig& config,
    const Tokenizer& tokenizer, InputErrors* wrong) {
  wrong->Check(CheckFit(loaded, task, config, tokenizer));
  wrong->Check(CheckTrainable(loaded.spec.trainable(), config));
  CutCounts cut;
  wrong->Check(ReadPairs(loaded, tokenizer, config, /*most=*/1, &cut).status());
}

// Adds the names of columns, so that a folder without a spec reads tables.
void AddFields(const DataSpec& data, ModelConfig* config) {
  const DataSpec& defaults = DataSpec::default_instance();
  for (const auto& [name, field, usual] :
      {std::tuple("text_field", &data.text_field(), &defaults.text_field()),
          std::tuple("text_pair_field", &data.text_pair_field(), &defaults.text_pair_field())}) {
    if (!field->empty() && *field != *usual) config->task_fields[name] = *field;
  }
}

// Checks the metric and the beginning of the data.
void CheckData(const LoadedSpec& loaded, const Task& task, InputErrors* wrong) {
  const TaskSpec& spec = loaded.spec;
  if (const std::string& name = spec.evaluation().metric(); !name.empty()) {
    const absl::Status known = FindMetric(MetricsOf(task, spec), name).status();
    if (!known.ok()) wrong->Check(AtField(loaded, "evaluation.metric", known));
  }
  wrong->Check(AtData(loaded, "train", task.CheckData(spec.train())));
  if (spec.validation().files_size() > 0)
    wrong->Check(AtData(loaded, "validation", task.CheckData(spec.validation())));
}

// Learns the labels, writes the task into inputs->config, and binds the task to it.
absl::Status DescribeTask(
    const LoadedSpec& loaded, const std::atomic<bool>* stop, RunInputs* inputs) {
  const TaskSpec& spec = loaded.spec;
  Task& task = *inputs->task;
  ModelConfig& config = inputs->config;
  absl::StatusOr<std::vector<std::string>> labels = std::vector<std::string>();
  if (task.labelled() != nullptr) labels = task.labelled()->LearnLabels(spec.train(), config, stop);
  if (!labels.ok()) return AtData(loaded, "train", labels.status());
  config.labels = *std::move(labels);
  config.pooler = config.crf = false;
  config.problem_type.clear();
  config.task_fields.clear();
  task.Describe(spec.train(), &config);
  AddFields(spec.train(), &config);
  const absl::Status bound = task.Bind(config, inputs->tokenizer.get(), spec.seed());
  return bound.ok() ? bound : AtField(loaded, TokenizerField(spec), bound);
}

}  // namespace

absl::Status AtData(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status) {
  const Exit exit = ExitOf(status);
  return exit == Exit::kSpec || exit == Exit::kNoInput
             ? AtField(loaded, exit == Exit::kNoInput ? field + ".files" : field, status)
             : status;
}

absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, Task& task, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options) {
  RETURN_IF_ERROR(CheckFit(loaded, task, config, tokenizer));
  const bool held_out = &data == &loaded.spec.validation();
  auto built =
      task.Build(data, held_out ? DataUse::kEvaluation : DataUse::kTraining, tokenizer, options);
  if (!built.ok()) return AtData(loaded, held_out ? "validation" : "train", built.status());
  return built;
}

RunFacts RunInputs::facts() const {
  return {.rows = static_cast<double>(train->store.size()),
      .tokens = static_cast<double>(train->store.tokens()),
      .hidden = config.hidden,
      .labels = static_cast<int64_t>(config.labels.size()),
      .pretrained = !loaded.spec.model().start_from().empty()};
}

std::string RunInputs::EvaluatedData() const {
  std::string name = validation->name();
  if (const int64_t max_examples = loaded.spec.evaluation().max_examples(); max_examples > 0)
    absl::StrAppend(&name, "-", max_examples);
  if (pairs.empty()) return name;
  Hasher hasher;
  for (const TextPair& pair : pairs)
    for (const std::string& text : pair.texts) hasher.AddText(text);
  return absl::StrCat(name, "-", hasher.Hex());
}

std::vector<Metric> MetricsOf(const Task& task, const TaskSpec& spec) {
  std::vector<Metric> metrics = task.metrics();
  if (spec.evaluation().pairs_size() > 0) metrics.push_back({"pair_accuracy", Better::kLarger});
  return metrics;
}

absl::StatusOr<DType> ConfigureCompute(const LoadedSpec& loaded) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  const RuntimeSpec& runtime = loaded.spec.runtime();
  SetThreads(runtime.threads() > 0 ? runtime.threads() : Threads());
  return TrainingType(runtime.compute());
}

absl::Status CheckStreams(const LoadedSpec& loaded, absl::string_view several) {
  std::map<std::pair<uint64_t, uint64_t>, std::string> seen;  // device and inode of each stream
  for (const auto& [name, data] : {std::pair("train", &loaded.spec.train()),
           std::pair("validation", &loaded.spec.validation())}) {
    for (const std::string& file : data->files()) {
      struct stat info;
      if (!IsStream(file)) continue;
      std::string why(several);
      if (why.empty() && (file == "-" ? ::fstat(0, &info) : ::stat(file.c_str(), &info)) == 0) {
        const auto [before, is_new] = seen.emplace(std::pair(info.st_dev, info.st_ino), name);
        if (!is_new) why = absl::StrCat(before->second, " names it as well");
      }
      if (!why.empty()) return AtData(loaded, name, RequireFiles(*data, why));
    }
  }
  return absl::OkStatus();
}

std::vector<absl::Status> CheckInputs(const LoadedSpec& loaded) {
  InputErrors wrong;
  const std::unique_ptr<Task> task = MakeTask(loaded.spec);
  const auto tokenizer = LoadTokenizerOf(loaded, {.most_bytes = kCheckedBytes});
  if (wrong.Check(tokenizer.status())) {
    const auto config = EncoderConfig(loaded, **tokenizer);
    if (wrong.Check(config.status())) {
      CheckModel(loaded, *task, *config, **tokenizer, &wrong);
      wrong.Check(ReadStartVectors(loaded, *config, **tokenizer).status());
    }
  }
  wrong.Check(CheckStreams(loaded));
  CheckData(loaded, *task, &wrong);
  return std::move(wrong.list);
}

absl::StatusOr<RunInputs> LoadRunInputs(const LoadedSpec& loaded, const BuildOptions& options,
    const MadeStores& made, std::vector<std::string>* notes) {
  RunInputs inputs;
  inputs.loaded = loaded;
  std::vector<std::string> ignored;
  if (notes == nullptr) notes = &ignored;
  const TaskSpec& spec = loaded.spec;
  ASSIGN_OR_RETURN(inputs.tokenizer, LoadTokenizerOf(loaded, {.stop = options.stop}));
  inputs.task = MakeTask(spec);
  Task& task = *inputs.task;
  ModelConfig& config = inputs.config;
  ASSIGN_OR_RETURN(config, EncoderConfig(loaded, *inputs.tokenizer));
  InputErrors wrong;  // before any data are read to the end
  CheckModel(loaded, task, config, *inputs.tokenizer, &wrong);
  if (made.train.empty()) wrong.Check(CheckStreams(loaded));
  CheckData(loaded, task, &wrong);
  if (!wrong.list.empty()) return wrong.list.front();
  ASSIGN_OR_RETURN(inputs.start, ReadStartVectors(loaded, config, *inputs.tokenizer));
  if (!inputs.start.ids.empty()) notes->push_back(inputs.start.Describe(config.vocab));
  RETURN_IF_ERROR(DescribeTask(loaded, options.stop, &inputs));
  const auto build = [&](const DataSpec& data, const std::string& made_before) {
    BuildOptions of_part = options;
    of_part.made = made_before;
    return BuildStore(loaded, task, data, config, *inputs.tokenizer, of_part);
  };
  const auto describe = [&](absl::string_view name, const BuiltStore& built) {
    for (std::string& line : DescribeStore(name, built)) notes->push_back(std::move(line));
  };
  ASSIGN_OR_RETURN(inputs.train, build(spec.train(), made.train));
  if (task.labelled() != nullptr)
    RETURN_IF_ERROR(task.labelled()->WeighLabels(inputs.train->store, notes));
  describe("train", *inputs.train);
  if (spec.validation().files_size() > 0) {
    ASSIGN_OR_RETURN(inputs.validation, build(spec.validation(), made.validation));
    describe("validation", *inputs.validation);
    if (HasStream(spec.validation()) && inputs.validation->name() == inputs.train->name())
      notes->push_back("warning: the validation data are the training data");
  }
  CutCounts cut;
  ASSIGN_OR_RETURN(inputs.pairs,
      ReadPairs(loaded, *inputs.tokenizer, config, std::numeric_limits<int64_t>::max(), &cut));
  if (cut.texts > 0) notes->push_back(absl::StrCat("pairs: ", cut.DescribeCut()));
  const bool known =
      inputs.train->reused && (!inputs.validation.has_value() || inputs.validation->reused);
  if (!task.pretrains() && !known) {
    ASSIGN_OR_RETURN(const DataDuplicates duplicates,
        FindDuplicates(inputs.train->store, inputs.validation ? &inputs.validation->store : nullptr,
            options.stop));
    for (std::string& line : DescribeDuplicates(duplicates, config.labels))
      notes->push_back(std::move(line));
  }
  return inputs;
}

}  // namespace cloze
