// What a run remembers: saving and resuming of Trainer.
#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/ops/matmul.h"
#include "core/ops/ops.h"
#include "core/tensor/safetensors.h"
#include "core/tensor/safetensors_writer.h"
#include "encoder/model_folder.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/trainer.h"

namespace cloze {
namespace {

constexpr char kOptimizer[] = "optimizer.safetensors";

// What of a spec decides the numbers of a run.
TaskSpec Essence(const TaskSpec& spec) {
  TaskSpec essence = EffectiveSpec(spec);
  essence.clear_output();
  essence.clear_evaluation();
  essence.clear_validation();
  essence.mutable_runtime()->clear_threads();
  essence.mutable_runtime()->clear_memory_limit_mb();
  return essence;
}

// kMismatch with each field that differs.
absl::Status CompareSpecs(const TaskSpec& old_spec, const TaskSpec& new_spec, const std::string& directory) {
  const TaskSpec before = Essence(old_spec), now = Essence(new_spec);
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(before, now)) return absl::OkStatus();
  return Error(Exit::kMismatch,
               absl::StrCat("the run in ", Quote(directory), " was started with another spec; choose another output.directory, or undo:\n",
                            absl::StripTrailingAsciiWhitespace(differences)));
}

// The content hash of a store is the end of its folder's name.
std::string FingerprintOf(const BuiltStore& built) {
  const std::string& folder = built.store.folder();
  return folder.substr(folder.rfind('/') + 1);
}

// Views of the moments of every trainable parameter, "m.NAME" and "v.NAME".
std::vector<TensorData> Moments(const ParamStore& params, Optimizer& optimizer) {
  std::vector<TensorData> tensors;
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& p = params.param(id);
    if (!p.trainable) continue;
    for (auto& [prefix, data] : {std::pair("m.", optimizer.m().data()), std::pair("v.", optimizer.v().data())}) {
      tensors.push_back({.name = prefix + p.name, .shape = {p.rows, p.cols}, .type = FileType::kF32, .data = data + p.grad_offset});
    }
  }
  return tensors;
}

absl::Status ReadMoments(const std::string& path, const ParamStore& params, Optimizer* optimizer) {
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  for (const TensorData& t : Moments(params, *optimizer)) {
    float* data = const_cast<float*>(static_cast<const float*>(t.data));
    RETURN_IF_ERROR(reader.ReadF32(t.name, absl::MakeSpan(data, t.shape[0] * t.shape[1])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Trainer::WriteState(const std::string& folder) const {
  RETURN_IF_ERROR(SaveWeights(folder, setup_.config, model_->params()));
  RETURN_IF_ERROR(setup_.tokenizer->Save(folder, setup_.config.max_positions - setup_.config.position_offset));
  RETURN_IF_ERROR(WriteSafetensors(JoinPath(folder, kOptimizer), Moments(model_->params(), *optimizer_)));
  TrainerState state;
  state.set_step(step_);
  state.set_total_steps(total_steps_);
  state.set_next_example(next_example_);
  state.set_seed(spec_.seed());
  state.set_spec(PrintEffective(spec_));
  state.set_data_fingerprint(FingerprintOf(*setup_.train));
  state.set_matmul_version(MatmulLibrary());
  state.set_isa(IsaName());
  state.set_compute(compute_ == DType::kF32 ? "f32" : "bf16");
  state.set_skipped_steps(skipped_);
  state.set_skipped_in_a_row(skipped_in_a_row_);
  state.set_last_loss(last_loss_);
  state.set_metric(metric_);
  if (best_value_.has_value()) state.set_best_value(*best_value_);
  for (const auto& [name, value] : best_.values) {
    TrainerState::Metric* metric = state.add_best();
    metric->set_name(name);
    metric->set_value(value);
  }
  return WriteTrainerState(folder, state);
}

absl::Status Trainer::Save() {
  if (saved_step_ == step_) return absl::OkStatus();
  const int64_t bytes =
      4 * (static_cast<int64_t>(model_->params().values().size()) + 2 * static_cast<int64_t>(optimizer_->m().size())) + (1 << 20);
  const absl::Status status = SaveCheckpoint(
      spec_.output().directory(), step_, [&](const std::string& folder) { return WriteState(folder); }, spec_.output().keep_checkpoints(),
      bytes);
  progress_->SkipTime();
  if (status.ok()) {
    saved_step_ = step_;
    failed_saves_ = 0;
    progress_->Note(absl::StrCat("saved ", Path(CheckpointName(step_))));
    return status;
  }
  // Training goes on in memory; a full disk may be emptied before the next interval.
  if (++failed_saves_ >= 3 || step_ == total_steps_ || Stopped()) return Annotate(status, "cannot save");
  progress_->Note(absl::StrCat("cannot save: ", std::string(status.message()), "; going on, the next try is ", save_every_, " steps away"));
  return absl::OkStatus();
}

absl::Status Trainer::Resume() {
  const std::string& directory = spec_.output().directory();
  RemoveLeftovers(directory);
  std::vector<std::string> skipped;
  ASSIGN_OR_RETURN(const std::optional<FoundCheckpoint> found, FindCheckpoint(directory, &skipped));
  for (const std::string& line : skipped) setup_.notes.push_back(absl::StrCat("skipped ", line));
  if (!found.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TrainerState state, ReadTrainerState(found->path));
  ASSIGN_OR_RETURN(const LoadedSpec before, ParseSpec(state.spec(), JoinPath(found->path, "trainer.textproto")));
  RETURN_IF_ERROR(CompareSpecs(before.spec, spec_, directory));
  if (state.data_fingerprint() != FingerprintOf(*setup_.train)) {
    return Error(Exit::kMismatch, absl::StrCat("the training data or the vocabulary changed since ", Quote(found->path),
                                               " was written; choose another output.directory"));
  }
  std::vector<std::string> fresh;
  RETURN_IF_ERROR(model_->Load(found->path, spec_.seed(), &fresh));
  if (!fresh.empty()) return Error(Exit::kMismatch, absl::StrCat(Quote(found->path), " lacks ", fresh.front()));
  RETURN_IF_ERROR(ReadMoments(JoinPath(found->path, kOptimizer), model_->params(), optimizer_.get()));
  step_ = saved_step_ = state.step();
  next_example_ = state.next_example();
  skipped_ = state.skipped_steps();
  skipped_in_a_row_ = state.skipped_in_a_row();
  optimizer_->set_steps(step_ - skipped_);
  last_loss_ = state.last_loss();
  metric_ = state.metric();
  if (state.has_best_value()) best_value_ = state.best_value();
  for (const auto& metric : state.best()) best_.values.emplace_back(metric.name(), metric.value());
  setup_.notes.push_back(absl::StrCat("resumed at step ", step_, " of ", total_steps_, " from ", found->path));
  if (state.isa() != IsaName() || state.matmul_version() != MatmulLibrary()) {
    setup_.notes.push_back(absl::StrCat("the checkpoint was written with ", state.isa(), " and ", state.matmul_version(), ", this run has ",
                                        IsaName(), " and ", MatmulLibrary(), ": results may differ in the last bits"));
  }
  return absl::OkStatus();
}

}  // namespace cloze
