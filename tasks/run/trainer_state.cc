#include "tasks/run/trainer_state.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "core/base/file.h"
#include "core/ops/matmul.h"
#include "proto/spec_text.h"
#include "tasks/run/run_folder.h"

namespace cloze {
namespace {

constexpr int kFormat = 2;
constexpr int64_t kMaxState = 64 << 20;          // bytes of the file
constexpr int64_t kMaxCount = int64_t{1} << 60;  // of steps and examples; leaves room to count on

// Returns the name of a field with a value that no run can have written; empty if there is none.
std::string OutOfRange(const TrainerState& state) {
  const int64_t step = state.step(), skipped = state.skipped_steps();
  const struct {
    const char* field;
    int64_t value, largest;
  } numbers[] = {{"step", step, kMaxCount}, {"next_example", state.next_example(), kMaxCount},
      {"tokens", state.tokens(), kMaxCount}, {"total_steps", state.total_steps(), kMaxCount},
      {"skipped_steps", skipped, step}, {"skipped_in_a_row", state.skipped_in_a_row(), skipped},
      {"best_step", state.best_step(), step},
      {"evaluations_without_best", state.evaluations_without_best(), step},
      {"recently_skipped", state.recently_skipped_size(), skipped}};
  for (const auto& [field, value, largest] : numbers) {
    if (value < 0 || value > largest) return field;
  }
  for (const int64_t example : state.waiting_example()) {
    if (example < 0 || example >= state.next_example()) return "waiting_example";
  }
  int64_t before = 0;
  for (const int64_t at : state.recently_skipped()) {
    if (at <= before || at > step) return "recently_skipped";
    before = at;
  }
  if (!(state.seconds() >= 0 && std::isfinite(state.seconds()))) return "seconds";
  if (state.has_steps_per_epoch() &&
      !(state.steps_per_epoch() > 0 && state.steps_per_epoch() <= kMaxCount))
    return "steps_per_epoch";
  if (state.has_best_value() && !std::isfinite(state.best_value())) return "best_value";
  return "";
}

// Returns the part of a spec that determines the trained weights.
TaskSpec Essence(const TaskSpec& spec) {
  TaskSpec essence = EffectiveSpec(spec);
  essence.clear_output();
  essence.clear_evaluation();
  essence.clear_validation();
  essence.mutable_train()->clear_files();       // CheckSameData compares their content
  essence.mutable_train()->clear_share_rule();  // a run keeps its own
  essence.clear_default_rule();                 // and the values that followed from it
  // Recorded by earlier versions also where it was not set; CheckSameData compares the texts.
  if (spec.has_sentence_embedding()) essence.mutable_train()->clear_documents();
  if (spec.model().tokenizer() == VocabFolder(spec)) essence.mutable_model()->set_tokenizer("");
  essence.mutable_runtime()->clear_threads();
  essence.mutable_runtime()->clear_memory_limit_mb();
  essence.mutable_runtime()->clear_recompute();
  essence.mutable_distributed()->clear_timeout_seconds();
  return essence;
}

}  // namespace

absl::Status WriteTrainerState(const std::string& folder, const TrainerState& state) {
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(state, &text))
    return Error(Exit::kInternal, "cannot print the state of the run");
  return WriteNewFile(JoinPath(folder, kStateName), text);
}

absl::StatusOr<TrainerState> ReadTrainerState(const std::string& folder) {
  const std::string path = JoinPath(folder, kStateName);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxState));
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(true);  // the format version tells whether a newer program wrote it
  parser.SetRecursionLimit(32);
  TrainerState state;
  if (!parser.ParseFromString(text, &state))
    return Error(Exit::kData, QuotePath(path), ":", Quote(error.text()));
  if (state.format_version() > kFormat) {
    return Error(Exit::kMismatch, QuotePath(path), ": format_version ", state.format_version(),
        " of a newer program: expected at most ", kFormat);
  }
  if (const std::string field = OutOfRange(state); !field.empty())
    return Error(Exit::kData, QuotePath(path), ": ", field, ": impossible number");
  return state;
}

void DescribeRun(
    const TaskSpec& spec, const BuiltStore& train, DType compute, TrainerState* state) {
  state->set_format_version(kFormat);
  state->set_seed(spec.seed());
  state->set_spec(PrintEffective(spec));
  state->set_data_fingerprint(train.name());
  state->clear_source();
  for (const SourceFile& file : train.sources) {
    TrainerState::Source* source = state->add_source();
    source->set_path(file.path);
    source->set_size(file.size);
    source->set_mtime_ns(file.mtime_ns);
    source->set_sample(file.sample);
  }
  state->set_matmul_version(MatmulLibrary());
  state->set_isa(KernelsName());
  state->set_compute(NameOf(compute));
}

absl::Status CheckSameSpec(
    const TaskSpec& before, const TaskSpec& now, const std::string& directory) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(Essence(before), Essence(now))) return absl::OkStatus();
  return Error(Exit::kMismatch, QuotePath(directory),
      ": the run was started with another spec (undo the difference, or choose another ",
      "output.directory for a new run, which may start from the weights of this one)\n",
      absl::StripTrailingAsciiWhitespace(differences));
}

absl::Status CheckSameData(
    const TrainerState& state, const BuiltStore& train, const std::string& checkpoint) {
  if (state.data_fingerprint() == train.name()) return absl::OkStatus();
  const auto changed = [&](absl::string_view what) {
    return Error(Exit::kMismatch, what, " changed since ", QuotePath(checkpoint),
        " was written; choose another output.directory");
  };
  for (int i = 0; i < std::min<int>(state.source_size(), train.sources.size()); ++i) {
    const TrainerState::Source& before = state.source(i);
    const SourceFile& now = train.sources[i];
    if (now.stream)
      return changed(absl::StrCat(QuoteInput(now.path), " (a stream) or the vocabulary"));
    if (before.size() != now.size || before.sample() != now.sample) {
      return changed(absl::StrCat(
          QuotePath(now.path), " (", before.size(), " bytes then, ", now.size, " now)"));
    }
  }
  return changed("the training data or the vocabulary");
}

std::string CodeWarning(const TrainerState& state, DType compute, bool one_pass) {
  const std::string then =
      absl::StrCat(state.isa(), ", ", state.matmul_version(), ", ", state.compute());
  const std::string now = absl::StrCat(KernelsName(), ", ", MatmulLibrary(), ", ", NameOf(compute));
  if (then == now && !one_pass && state.format_version() < 2)
    return "warning: the checkpoint was written by a version that added up the gradients of "
           "several passes in another order: the results will not have that version's bits";
  if (then == now) return "";
  return absl::StrCat("warning: the checkpoint was written with ", then, "; this run uses ", now,
      ": its results will not have the same bits");
}

MetricResults BestOf(const TrainerState& state) {
  MetricResults best;
  for (const auto& metric : state.best()) best.values.emplace_back(metric.name(), metric.value());
  for (const auto& table : state.best_table()) best.tables.emplace_back(table.name(), table.json());
  best.answers = state.best_answers();
  return best;
}

ModelScore BestScore(const TrainerState& state) {
  if (!state.has_best_value()) return {};
  return {state.best_value(), ScoreOf(BestOf(state), "").loss};
}

bool OutOfPatience(const TaskSpec& spec, const TrainerState& state) {
  const int64_t patience = spec.evaluation().patience();
  return patience > 0 && state.evaluations_without_best() >= patience;
}

void ForgetBest(TrainerState* state) {
  state->clear_best_value();
  state->set_best_step(0);
  state->clear_best();
  state->clear_best_table();
  state->clear_best_answers();
}

void SetBest(const MetricResults& results, int64_t step, double value, TrainerState* state) {
  ForgetBest(state);
  state->set_best_value(value);
  state->set_best_step(step);
  for (const auto& [name, number] : results.values) {
    TrainerState::Metric* metric = state->add_best();
    metric->set_name(name);
    metric->set_value(number);
  }
  for (const auto& [name, json] : results.tables) {
    TrainerState::Table* table = state->add_best_table();
    table->set_name(name);
    table->set_json(json);
  }
  if (!results.answers.empty()) state->set_best_answers(results.answers);
}

}  // namespace cloze
