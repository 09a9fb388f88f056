// Reads specs, locates their fields, and applies `--set` by reflection.
#include "proto/spec.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "proto/spec_text.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;

constexpr int kMaxDepth = 32, kMaxCorrections = 100;

absl::Status TooLarge(const std::string& path, int64_t size) {
  return Error(Exit::kSpec, QuotePath(path), ": ", size, " bytes: expected a spec of at most ",
      kMaxSpecBytes, " bytes");
}

// Records the place of each field of `message` in `where`.
void Locate(const pb::Message& message, const pb::TextFormat::ParseInfoTree& tree,
    const SpecText& scan, const std::string& prefix, std::map<std::string, std::string>* where) {
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string name = prefix + field->name();
    const auto note = [&](const std::string& key, int index) {
      const pb::TextFormat::ParseLocation location = tree.GetLocation(field, index);
      if (location.line >= 0)
        (*where)[key] = scan.Where(scan.Offset(location.line, location.column));
    };
    note(name, field->is_repeated() ? 0 : -1);
    for (int i = 0; field->is_repeated() && i < reflection->FieldSize(message, field); ++i)
      note(absl::StrCat(name, "[", i, "]"), i);
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    if (const auto* nested = tree.GetTreeForNested(field, -1))
      Locate(reflection->GetMessage(message, field), *nested, scan, name + ".", where);
  }
}

std::string Expected(const pb::FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL: return "true or false";
    case pb::FieldDescriptor::CPPTYPE_FLOAT: return "a number";
    case pb::FieldDescriptor::CPPTYPE_INT32: return "a whole number of 32 bits";
    case pb::FieldDescriptor::CPPTYPE_UINT64: return "a whole number of 64 bits from 0";
    default: return "a whole number of 64 bits";
  }
}

// Sets a singular field or appends to a repeated one.
absl::Status SetValue(
    const pb::FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  const bool text = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  const bool octal = !text && IsOctal(value);
  if (!octal && parser.ParseFieldValueFromString(
                    text ? absl::StrCat("\"", absl::CEscape(value), "\"") : std::string(value),
                    field, message)) {
    return absl::OkStatus();
  }
  if (const pb::EnumDescriptor* type = field->enum_type(); type != nullptr) {
    for (int i = 0; i < type->value_count(); ++i) {
      if (absl::EqualsIgnoreCase(type->value(i)->name(), value) && type->value(i)->name() != value)
        return SetValue(field, type->value(i)->name(), message);
    }
  }
  if (field->enum_type() != nullptr)
    return Error(Exit::kSpec, UnknownValue(field->enum_type(), field->name(), value));
  return Error(Exit::kSpec, "expected ", Expected(field), octal ? " without a leading 0" : "",
      ", found \"", Quote(value), "\"");
}

absl::Status SetField(
    const pb::FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  message->GetReflection()->ClearField(message, field);
  if (field->is_repeated()) {
    if (value.empty()) return absl::OkStatus();
    for (const absl::string_view item : absl::StrSplit(value, ','))
      RETURN_IF_ERROR(SetValue(field, item, message));
    return absl::OkStatus();
  }
  if (field->message_type() == nullptr) return SetValue(field, value, message);
  if (value == "{}") message->GetReflection()->MutableMessage(message, field);
  if (value.empty() || value == "{}") return absl::OkStatus();
  return Error(Exit::kSpec, "expected a field of the message ", field->message_type()->name(), " (",
      field->name(), ".", field->message_type()->field(0)->name(), "=...), {} or nothing");
}

absl::Status Assign(absl::string_view path, absl::string_view value, pb::Message* message) {
  const pb::FieldDescriptor* field = nullptr;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (field != nullptr) {
      if (field->message_type() == nullptr || field->is_repeated())
        return Error(Exit::kSpec, "\"", field->name(), "\" has no fields");
      message = message->GetReflection()->MutableMessage(message, field);
    }
    field = message->GetDescriptor()->FindFieldByName(std::string(name));
    if (field == nullptr) return Error(Exit::kSpec, UnknownField(message->GetDescriptor(), name));
  }
  return SetField(field, value, message);
}

bool ParseText(const std::string& text, FirstError* error, pb::TextFormat::ParseInfoTree* tree,
    TaskSpec* result) {
  pb::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMaxDepth);
  parser.RecordErrorsTo(error);
  parser.WriteLocationsTo(tree);
  pb::io::ArrayInputStream input(text.data(), text.size());
  // The arena drops partial messages without destructors, which would access a member of a oneof
  // whose allocation failed.
  pb::Arena arena;
  auto* spec = pb::Arena::CreateMessage<TaskSpec>(&arena);
  if (!parser.Parse(&input, spec)) return false;
  TaskSpec whole(*spec);
  result->Swap(&whole);
  return true;
}

}  // namespace

absl::StatusOr<LoadedSpec> ParseSpec(absl::string_view text, const std::string& path) {
  if (text.size() > kMaxSpecBytes) return TooLarge(path, text.size());
  if (const absl::string_view other = OtherFormat(text); !other.empty()) {
    return Error(Exit::kSpec, QuotePath(path), ": is ", other,
        ": expected a text file (convert or unpack it first)");
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string upper(text);  // with the names of enum values in upper case
  const SpecText scan(upper, path);
  RETURN_IF_ERROR(scan.Check(kMaxDepth));
  for (int corrections = 0;; ++corrections) {
    FirstError error;
    pb::TextFormat::ParseInfoTree tree;
    LoadedSpec loaded;
    if (ParseText(upper, &error, &tree, &loaded.spec)) {
      loaded.path = path;
      Locate(loaded.spec, tree, scan, "", &loaded.where);
      return loaded;
    }
    const auto wrong = error.WrongCase(scan);
    if (!wrong || corrections == kMaxCorrections) return error.ToStatus(scan);
    upper.replace(wrong->first, wrong->second.size(), wrong->second);
  }
}

absl::StatusOr<LoadedSpec> LoadSpec(const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size > kMaxSpecBytes) return TooLarge(path, size);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSpecBytes));
  return ParseSpec(text, path);
}

void HoldOut(TaskSpec* spec) {
  const float share = spec->validation().share();
  DataSpec& train = *spec->mutable_train();
  if (share <= 0) return;
  if (spec->validation().files().empty()) {
    DataSpec held_out = train;
    for (auto clear : {&DataSpec::clear_max_examples, &DataSpec::clear_leave_out})
      (held_out.*clear)();
    held_out.MergeFrom(spec->validation());
    *spec->mutable_validation() = held_out;
  }
  if (!absl::c_equal(spec->validation().files(), train.files())) return;
  train.set_leave_out(share);
  if (train.share_rule() == spec->validation().share_rule()) return;
  train.set_share_rule(1);
  spec->mutable_validation()->set_share_rule(1);
}

void KeepRules(const TaskSpec& recorded, TaskSpec* now) {
  const int32_t rule = recorded.train().has_share_rule() ? recorded.train().share_rule() : 1;
  now->mutable_train()->set_share_rule(rule);
  if (now->has_validation()) now->mutable_validation()->set_share_rule(rule);
  now->set_default_rule(recorded.has_default_rule() ? recorded.default_rule() : 1);
}

void KeepChoices(const TaskSpec& recorded, TaskSpec* now) {
  const OpenSettings open = OpenSettingsOf(*now);  // before the rule of an earlier run closes them
  KeepRules(recorded, now);
  if (!now->batch().has_micro_tokens() && recorded.batch().has_micro_tokens())
    now->mutable_batch()->set_micro_tokens(recorded.batch().micro_tokens());
  if (open.batch) {
    now->mutable_batch()->set_tokens(recorded.batch().tokens());
    now->mutable_batch()->set_examples(recorded.batch().examples());
  }
  if (open.length) {
    now->mutable_schedule()->set_steps(recorded.schedule().steps());
    now->mutable_schedule()->set_epochs(recorded.schedule().epochs());
  }
  if (open.rate) now->mutable_optimizer()->set_learning_rate(recorded.optimizer().learning_rate());
}

OpenSettings OpenSettingsOf(const TaskSpec& spec) {
  constexpr TaskSpec::TaskCase kTasks[] = {TaskSpec::kSequenceClassification,
      TaskSpec::kTokenTagging, TaskSpec::kQuestionAnswering, TaskSpec::kSequenceToSequence};
  if (spec.default_rule() < 2 || !absl::c_linear_search(kTasks, spec.task_case())) return {};
  const ScheduleSpec& schedule = spec.schedule();
  return {.batch = !spec.batch().has_tokens() && !spec.batch().has_examples(),
      .length =
          !schedule.has_steps() && !schedule.has_epochs() && schedule.time_budget_minutes() <= 0,
      .rate = !spec.optimizer().has_learning_rate() && spec.optimizer().muon_rate() <= 0};
}

bool LearnsVocabulary(const TaskSpec& spec) {
  return spec.model().start_from().empty() && spec.model().tokenizer().empty();
}

absl::StatusOr<LoadedSpec> LoadVerifiedSpec(
    const std::string& path, const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(LoadedSpec loaded, LoadSpec(path));
  for (const std::string& assignment : overrides)
    RETURN_IF_ERROR(ApplyOverride(&loaded, assignment));
  const float left_out = loaded.spec.train().leave_out();
  HoldOut(&loaded.spec);
  if (left_out > 0 && loaded.spec.train().leave_out() != left_out)
    return SpecError(loaded, "train.leave_out", left_out, " differs from validation.share, ",
        loaded.spec.validation().share(),
        ", which sets it: expected one of them (other shares cannot be left out beside it)");
  RETURN_IF_ERROR(VerifySpec(loaded));
  return loaded;
}

bool TrainsAll(const TrainableSpec& trainable) {
  return trainable.part_case() == TrainableSpec::PART_NOT_SET ||
         (trainable.has_head_only() && !trainable.head_only());
}

absl::Status ApplyOverride(LoadedSpec* loaded, absl::string_view assignment,
    absl::string_view option, absl::string_view prefix) {
  const std::string where = absl::StrCat(option, " ", Quote(assignment));
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) return Error(Exit::kSpec, where, ": expected FIELD=VALUE");
  const std::string key = absl::StrCat(prefix, assignment.substr(0, equals));
  TaskSpec changed = loaded->spec;
  RETURN_IF_ERROR(Annotate(Assign(key, assignment.substr(equals + 1), &changed), where));
  loaded->spec.Swap(&changed);
  std::erase_if(loaded->where, [&](const auto& entry) {
    return entry.first.starts_with(key + ".") || entry.first.starts_with(key + "[");
  });
  loaded->where[key] = where;
  return absl::OkStatus();
}

absl::Status AtField(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status) {
  std::string where = QuotePath(loaded.path);
  for (std::string path = field; !path.empty();) {
    if (const auto found = loaded.where.find(path); found != loaded.where.end()) {
      where = found->second;
      break;
    }
    const size_t end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
  return Annotate(status, where, ": ", field);
}

}  // namespace cloze
