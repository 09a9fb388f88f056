// What a run remembers: saving and resuming of Trainer.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/ops/matmul.h"
#include "core/ops/ops.h"
#include "core/tensor/safetensors.h"
#include "core/tensor/safetensors_writer.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/samples.h"
#include "tasks/training/trainer.h"

namespace cloze {
namespace {

// What of a spec decides the numbers of a run.
TaskSpec Essence(const TaskSpec& spec) {
  TaskSpec essence = EffectiveSpec(spec);
  essence.clear_output();
  essence.clear_evaluation();
  essence.clear_validation();
  essence.mutable_train()->clear_files();  // their content is compared, not their names
  essence.mutable_runtime()->clear_threads();
  essence.mutable_runtime()->clear_memory_limit_mb();
  essence.mutable_runtime()->clear_recompute();
  return essence;
}

// kMismatch with each field that differs.
absl::Status CompareSpecs(
    const TaskSpec& old_spec, const TaskSpec& new_spec, const std::string& directory) {
  const TaskSpec before = Essence(old_spec), now = Essence(new_spec);
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(before, now)) return absl::OkStatus();
  return Error(Exit::kMismatch,
      absl::StrCat("the run in ", QuotePath(directory),
          " was started with another spec; undo the difference, or start a new run from its ",
          "weights: --fork ", QuotePath(directory), " --set output.directory=...\n",
          absl::StripTrailingAsciiWhitespace(differences)));
}

// The content hash of a store is the end of its folder's name.
std::string FingerprintOf(const BuiltStore& built) {
  const std::string& folder = built.store.folder();
  return folder.substr(folder.rfind('/') + 1);
}

// kMismatch naming the first file whose size or content is not what `state` remembers; else the
// vocabulary, or how texts are read, differs.
absl::Status DataChanged(
    const TrainerState& state, const std::vector<SourceFile>& now, const std::string& checkpoint) {
  std::string what = "the training data or the vocabulary";
  for (int i = 0; i < state.source_size() && i < static_cast<int>(now.size()); ++i) {
    const auto& before = state.source(i);
    if (before.size() == now[i].size && before.sample() == now[i].sample) continue;
    what = absl::StrCat(
        QuotePath(now[i].path), " (", before.size(), " bytes then, ", now[i].size, " now)");
    break;
  }
  return Error(Exit::kMismatch, absl::StrCat(what, " changed since ", QuotePath(checkpoint),
                                    " was written; choose another output.directory"));
}

absl::Status CheckFinite(absl::string_view kind, const Param& param, const float* data) {
  const float* odd =
      std::find_if(data, data + param.size(), [](float x) { return !std::isfinite(x); });
  if (odd == data + param.size()) return absl::OkStatus();
  return Error(Exit::kInternal,
      absl::StrCat(kind, " ", param.name, "[", odd - data, "] is ", *odd,
          "; nothing was written, the newest checkpoint is sound. Lower optimizer.learning_rate"));
}

// Views of the moments of every trainable parameter, "m.NAME" and "v.NAME", and of the moving
// average of the weights, "ema.NAME".
std::vector<TensorData> Moments(const ParamStore& params, Optimizer& optimizer) {
  std::vector<TensorData> tensors;
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& p = params.param(id);
    if (!p.trainable) continue;
    for (const auto& [prefix, data] : {std::pair("m.", optimizer.m()),
             std::pair("v.", optimizer.v()), std::pair("ema.", optimizer.average())}) {
      if (data.empty()) continue;
      tensors.push_back({.name = prefix + p.name,
          .shape = {p.rows, p.cols},
          .type = FileType::kF32,
          .data = data.data() + p.grad_offset});
    }
  }
  return tensors;
}

const char* NameOf(DType compute) { return compute == DType::kF32 ? "f32" : "bf16"; }

absl::Status ReadMoments(const std::string& path, const ParamStore& params, Optimizer* optimizer) {
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  for (const TensorData& t : Moments(params, *optimizer)) {
    float* data = const_cast<float*>(static_cast<const float*>(t.data));
    RETURN_IF_ERROR(reader.ReadF32(t.name, absl::MakeSpan(data, t.shape[0] * t.shape[1])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Trainer::WriteModel(const std::string& folder) const {
  const ParamStore& params = model_->params();
  for (ParamId id = 0; id < params.size(); ++id)
    RETURN_IF_ERROR(
        CheckFinite("weight", params.param(id), params.values().data() + params.param(id).offset));
  if (spec_.trainable().has_lora()) {
    RETURN_IF_ERROR(SaveAdapter(folder, setup_.config, spec_.trainable().lora(),
        AbsolutePath(spec_.model().start_from()), params));
  } else {
    RETURN_IF_ERROR(SaveWeights(folder, setup_.config, params));
  }
  RETURN_IF_ERROR(SaveTokenizer(*setup_.tokenizer, folder, setup_.config.max_tokens()));
  return WriteSamples(*model_, compute_, folder);
}

absl::Status Trainer::WriteState(const std::string& folder) const {
  RETURN_IF_ERROR(WriteModel(folder));
  RETURN_IF_ERROR(
      WriteSafetensors(JoinPath(folder, kMomentsName), Moments(model_->params(), *optimizer_)));
  TrainerState state;
  state.set_step(step_);
  state.set_total_steps(pace_->total_steps());
  state.set_seconds(pace_->Seconds());
  state.set_next_example(next_example_);
  state.set_seed(spec_.seed());
  state.set_spec(PrintEffective(spec_));
  state.set_data_fingerprint(FingerprintOf(*setup_.train));
  state.set_matmul_version(MatmulLibrary());
  state.set_isa(KernelsName());
  state.set_compute(NameOf(compute_));
  state.set_skipped_steps(skipped_);
  const bool skipped =
      !recently_skipped_.recent().empty() && recently_skipped_.recent().back() == step_;
  state.set_skipped_in_a_row(skipped ? recently_skipped_.InARow() : 0);
  for (const int64_t step : recently_skipped_.recent()) state.add_recently_skipped(step);
  state.set_last_loss(last_loss_);
  state.set_metric(metric_);
  state.set_evaluations_without_best(evaluations_without_best_);
  if (best_value_.has_value()) state.set_best_value(*best_value_);
  for (const auto& [name, value] : best_.values) {
    TrainerState::Metric* metric = state.add_best();
    metric->set_name(name);
    metric->set_value(value);
  }
  for (const auto& [name, json] : best_.tables) {
    TrainerState::Table* table = state.add_best_table();
    table->set_name(name);
    table->set_json(json);
  }
  state.set_best_step(best_step_);
  state.set_evaluation_due(evaluation_due_);
  for (const SourceFile& file : setup_.train->sources) {
    TrainerState::Source* source = state.add_source();
    source->set_path(file.path);
    source->set_size(file.size);
    source->set_mtime_ns(file.mtime_ns);
    source->set_sample(file.sample);
  }
  if (!forked_from_.empty()) state.set_forked_from(forked_from_);
  return WriteTrainerState(folder, state);
}

int64_t Trainer::ModelBytes() const {
  const int64_t written =
      spec_.trainable().has_lora() ? optimizer_->m().size() : model_->params().values().size();
  return 4 * written + (1 << 20);
}

absl::Status Trainer::SaveBest() {
  const auto write = [&](const std::string& folder) {
    RETURN_IF_ERROR(WriteModel(folder));
    return WriteNewFile(JoinPath(folder, "metrics.json"),
        absl::StrCat("{\"step\":", step_, ",\"metrics\":", best_.ToJson(), "}\n"));
  };
  return SaveModel(spec_.output().directory(), step_, write, ModelBytes());
}

void Trainer::WatchSources() {
  for (const auto* built : {&setup_.train, &setup_.validation}) {
    if (sources_changed_ || !built->has_value()) continue;
    const absl::Status status = CheckSources((*built)->sources);
    if (status.ok()) continue;
    sources_changed_ = true;
    progress_->Note(absl::StrCat(
        "warning: ", status.message(), "; this run goes on with what it read at its start"));
  }
}

absl::Status Trainer::Save() {
  if (saved_step_ == step_) return absl::OkStatus();
  const int64_t bytes = ModelBytes() + 4 * static_cast<int64_t>(2 * optimizer_->m().size() +
                                                                optimizer_->average().size());
  const absl::Status status = SaveCheckpoint(
      spec_.output().directory(), step_,
      [&](const std::string& folder) { return WriteState(folder); },
      spec_.output().keep_checkpoints(), bytes);
  progress_->SkipTime();
  if (status.ok()) {
    saved_step_ = step_;
    failed_saves_ = 0;
    progress_->Note(absl::StrCat("saved ", Path(CheckpointName(step_))));
    WatchSources();
    return status;
  }
  // Training goes on in memory; a full disk may be emptied before the next interval. Numbers that
  // are not finite do not come back.
  if (++failed_saves_ >= 3 || ExitOf(status) == Exit::kInternal || done_ >= 1 || Stopped())
    return Annotate(status, "cannot save");
  progress_->Note(
      absl::StrCat("cannot save: ", std::string(status.message()), "; going on, the next try is ",
          save_every_ > 0 ? absl::StrCat(save_every_, " steps away") : "a tenth of the run away"));
  return absl::OkStatus();
}

absl::Status Trainer::LoadCheckpoint(const std::string& folder) {
  if (spec_.trainable().has_lora()) {
    ASSIGN_OR_RETURN(const Adapter adapter, Adapter::Open(folder, setup_.config));
    RETURN_IF_ERROR(adapter.CheckBase(HashParams(model_->params(), setup_.config)));
    return adapter.Load("", &model_->params());
  }
  std::vector<std::string> fresh;
  RETURN_IF_ERROR(model_->Load(folder, spec_.seed(), &fresh));
  return fresh.empty()
             ? absl::OkStatus()
             : Error(Exit::kMismatch, absl::StrCat(QuotePath(folder), " lacks ", fresh.front()));
}

absl::Status Trainer::FindRun() {
  const std::string& directory = spec_.output().directory();
  RemoveLeftovers(directory);
  std::vector<std::string> skipped;
  ASSIGN_OR_RETURN(const std::optional<FoundCheckpoint> found, FindCheckpoint(directory, &skipped));
  for (const std::string& line : skipped) setup_.notes.push_back(absl::StrCat("skipped ", line));
  if (!found.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(TrainerState state, ReadTrainerState(found->path));
  ASSIGN_OR_RETURN(
      const LoadedSpec before, ParseSpec(state.spec(), JoinPath(found->path, kStateName)));
  if (!spec_.batch().has_micro_tokens())
    loaded_.spec.mutable_batch()->set_micro_tokens(before.spec.batch().micro_tokens());
  RETURN_IF_ERROR(CompareSpecs(before.spec, spec_, directory));
  RETURN_IF_ERROR(VerifySpec(loaded_));
  if (state.data_fingerprint() != FingerprintOf(*setup_.train))
    return DataChanged(state, setup_.train->sources, found->path);
  found_ = Found{found->path, std::move(state)};
  return absl::OkStatus();
}

absl::Status Trainer::Resume() {
  if (!found_.has_value()) return options_.fork.empty() ? absl::OkStatus() : Fork();
  if (!options_.fork.empty())
    setup_.notes.push_back("a run is here already and goes on; --fork is for new ones");
  const auto& [path, state] = *found_;
  RETURN_IF_ERROR(LoadCheckpoint(path));
  RETURN_IF_ERROR(ReadMoments(JoinPath(path, kMomentsName), model_->params(), optimizer_.get()));
  step_ = saved_step_ = state.step();
  next_example_ = state.next_example();
  seconds_ = state.seconds();
  skipped_ = state.skipped_steps();
  for (const int64_t step : state.recently_skipped()) recently_skipped_.Add(step);
  optimizer_->set_steps(step_ - skipped_);
  last_loss_ = state.last_loss();
  metric_ = state.metric();
  evaluations_without_best_ = state.evaluations_without_best();
  if (state.has_best_value()) best_value_ = state.best_value();
  for (const auto& metric : state.best()) best_.values.emplace_back(metric.name(), metric.value());
  for (const auto& table : state.best_table())
    best_.tables.emplace_back(table.name(), table.json());
  best_step_ = state.best_step();
  evaluation_due_ = state.evaluation_due() && setup_.validation.has_value();
  forked_from_ = state.forked_from();
  setup_.notes.push_back(absl::StrCat("resumed at ", pace_->Describe(step_), " from ", path));
  const auto made_with = [](absl::string_view kernels, absl::string_view library,
                             absl::string_view compute) {
    return absl::StrCat(kernels, ", ", library, ", ", compute);
  };
  const std::string then = made_with(state.isa(), state.matmul_version(), state.compute()),
                    now = made_with(KernelsName(), MatmulLibrary(), NameOf(compute_));
  if (then != now) {
    setup_.notes.push_back(absl::StrCat("warning: the checkpoint was written with ", then,
        "; this run has ", now, ": its results will not have the same bits"));
  }
  return absl::OkStatus();
}

absl::Status Trainer::Fork() {
  std::vector<std::string> skipped, fresh;
  ASSIGN_OR_RETURN(
      const std::optional<FoundCheckpoint> found, FindCheckpoint(options_.fork, &skipped));
  if (!found.has_value()) {
    return Error(Exit::kNoInput, absl::StrCat("--fork: ", QuotePath(options_.fork),
                                     " has no checkpoint; model.start_from takes model folders"));
  }
  for (const std::string& line : skipped) setup_.notes.push_back(absl::StrCat("skipped ", line));
  ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(found->path, true));
  if (!tokenizer->SameIds(*setup_.tokenizer)) {
    return Error(Exit::kMismatch, absl::StrCat("--fork: the vocabulary of ", QuotePath(found->path),
                                      " is not that of this run"));
  }
  RETURN_IF_ERROR(model_->Load(found->path, spec_.seed(), &fresh));
  if (!fresh.empty())
    setup_.notes.push_back(absl::StrCat("new in this model: ", absl::StrJoin(fresh, ", ")));
  forked_from_ = found->path;
  saved_step_ = -1;  // so that the run has its first weights, whatever becomes of the old one
  setup_.notes.push_back(absl::StrCat("a new run with the weights of ", found->path));
  return absl::OkStatus();
}

}  // namespace cloze
