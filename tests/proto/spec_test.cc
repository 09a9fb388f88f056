#include "proto/spec.h"

#include <google/protobuf/util/message_differencer.h>

#include <fstream>
#include <set>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/options.pb.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGood[] = R"(model { tokenizer: "v" encoder { preset: TINY } }
masked_lm {}
train { files: "a.txt" }
output { directory: "out" }
)";

std::string ParseErrorOf(absl::string_view text) {
  const auto loaded = ParseSpec(text, "a.textproto");
  EXPECT_FALSE(loaded.ok());
  EXPECT_EQ(ExitOf(loaded.status()), Exit::kSpec);
  return std::string(loaded.status().message());
}

std::string VerifyErrorOf(const std::string& text) {
  const auto loaded = ParseSpec(text, "a.textproto");
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return "";
  const absl::Status status = VerifySpec(*loaded);
  EXPECT_EQ(ExitOf(status), Exit::kSpec);
  return std::string(status.message());
}

// Returns kGood after `--set` assignments.
absl::StatusOr<LoadedSpec> Overridden(const std::vector<std::string>& assignments) {
  LoadedSpec loaded = *ParseSpec(kGood, "a.textproto");
  for (const std::string& assignment : assignments)
    RETURN_IF_ERROR(ApplyOverride(&loaded, assignment));
  return loaded;
}

std::string OverrideErrorOf(const std::string& assignment) {
  const auto loaded = Overridden({assignment});
  EXPECT_EQ(ExitOf(loaded.status()), Exit::kSpec);
  return std::string(loaded.status().message());
}

TEST(FieldsWithoutEffect, AreNamed) {
  EXPECT_THAT(FieldsWithoutEffect(Overridden({"masked_lm.mean_span=3"})->spec),
      testing::Contains("warning: masked_lm.mean_span has no effect: masked_lm.unit is not SPAN"));
  const auto names = [](const std::vector<std::string>& assignments) {
    std::string all;
    for (const std::string& warning : FieldsWithoutEffect(Overridden(assignments)->spec))
      all += warning;
    return all;
  };
  EXPECT_EQ(names({}), "");
  EXPECT_EQ(
      names({"masked_lm.mean_span=3", "masked_lm.longest_span=7", "masked_lm.unit=SPAN"}), "");
  EXPECT_EQ(names({"schedule.decay_share=0.5", "schedule.shape=TRAPEZOID"}), "");
  for (const char* field : {"masked_lm.longest_span=7", "masked_lm.causal_until=0.5",
           "masked_lm.warmup_share=0.5", "batch.warmup_share=0.5", "schedule.decay_share=0.5",
           "sequence_classification.threshold=0.7", "sequence_classification.label_separator=;"}) {
    const std::string name(field, std::string(field).find('='));
    EXPECT_THAT(names({field}), HasSubstr(name + " has no effect")) << field;
  }
}

TEST(ParseSpec, AcceptsAGoodOne) {
  const auto loaded = ParseSpec(kGood, "a.textproto");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(VerifySpec(*loaded).ok()) << VerifySpec(*loaded);
  EXPECT_EQ(loaded->where.at("model.encoder.preset"), "a.textproto:1:34");
}

TEST(ParseSpec, PointsAtUnknownFields) {
  EXPECT_THAT(ParseErrorOf("schedule {\n  stepz: 3\n}"),
      StartsWith("a.textproto:2:3: unknown field \"stepz\" in ScheduleSpec; did you mean "
                 "\"steps\"? (fields: shape, steps, "));
  EXPECT_THAT(ParseErrorOf("# stepz\nschedule { epochs: 1\n\tstepz  :\n 3 }"),
      StartsWith("a.textproto:3:2: unknown field \"stepz\""));
  EXPECT_THAT(ParseErrorOf("qqqqqqqq: 1"), Not(HasSubstr("did you mean")));
}

TEST(ParseSpec, KnowsTheUsualNamesOfFields) {
  EXPECT_THAT(ParseErrorOf("optimizer { lr: 1 }"),
      HasSubstr("unknown field \"lr\" in OptimizerSpec; did you mean \"learning_rate\"?"));
  EXPECT_THAT(ParseErrorOf("batch { batch_size: 1 }"), HasSubstr("did you mean \"examples\"?"));
}

TEST(ApplyOverride, TakesEnumValuesInAnyCase) {
  auto loaded = ParseSpec(kGood, "a.textproto");
  ASSERT_TRUE(loaded.ok());
  EXPECT_TRUE(ApplyOverride(&*loaded, "train.format=csv").ok());
  EXPECT_EQ(loaded->spec.train().format(), DataSpec::CSV);
  EXPECT_FALSE(ApplyOverride(&*loaded, "train.format=csx").ok());
}

TEST(ExplainSpec, SearchesByTopic) {
  const auto found = ExplainSpec("early stopping");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, HasSubstr("evaluation.patience"));
  EXPECT_THAT(*found, Not(HasSubstr("optimizer.beta1")));
}

TEST(ParseSpec, PointsAtUnknownEnumValues) {
  EXPECT_THAT(ParseErrorOf("model { encoder {\n  preset: SMAL\n} }"),
      StartsWith("a.textproto:2:11: unknown value \"SMAL\" of preset; did you mean \"SMALL\"? "
                 "(values: CUSTOM, TINY, MINI, SMALL, MEDIUM, BASE)"));
}

TEST(Spec, ValuesOfEnumsInAnyCase) {
  const auto loaded = ParseSpec(
      "model { encoder { preset: small } }\n"
      "train { files: 'csv' format: Csv }\nvalidation { format: csv encoding: utf16 }",
      "a.textproto");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->spec.model().encoder().preset(), EncoderSpec::SMALL);
  EXPECT_EQ(loaded->spec.train().files(0), "csv");
  EXPECT_EQ(loaded->spec.train().format(), DataSpec::CSV);
  EXPECT_EQ(loaded->spec.validation().encoding(), DataSpec::UTF16);
  EXPECT_EQ(loaded->where.at("validation.format"), "a.textproto:3:14");
  std::string many;
  for (int i = 0; i < 200; ++i) many += "train { format: csv }\n";
  EXPECT_THAT(ParseErrorOf(many), HasSubstr("a.textproto:"));
}

TEST(ParseSpec, CountsColumnsInCharacters) {
  EXPECT_THAT(ParseErrorOf("output { directory: \"\xC3\xA9\xC3\xA9\" stepz: 1 }"),
      StartsWith("a.textproto:1:26: unknown field"));
  EXPECT_THAT(ParseErrorOf("\xEF\xBB\xBFstepz: 1"), StartsWith("a.textproto:1:1: unknown field"));
}

TEST(ParseSpec, RefusesWhatIsGivenTwice) {
  EXPECT_THAT(ParseErrorOf("seed: 1\nseed: 2"),
      StartsWith("a.textproto:2:1: field \"seed\" is given twice"));
  EXPECT_THAT(ParseErrorOf("masked_lm {}\n  token_tagging {}"),
      StartsWith("a.textproto:2:3: \"token_tagging\" and \"masked_lm\" exclude each other"));
}

TEST(ParseSpec, RefusesOctal) {
  EXPECT_THAT(ParseErrorOf("batch {\n  tokens: 010 }"),
      StartsWith("a.textproto:2:11: number 010 starts with 0"));
  EXPECT_TRUE(ParseSpec(
      "optimizer { learning_rate: 0.1 beta1: 0 } # 010\noutput { directory: \"010\" }", "a")
                  .ok());
}

TEST(ParseSpec, RefusesDeepNesting) {
  std::string deep = "model ";
  for (int i = 0; i < 100000; ++i) deep += "{ encoder ";
  EXPECT_THAT(ParseErrorOf(deep), HasSubstr("messages nest deeper than 32"));
  EXPECT_THAT(ParseErrorOf(std::string(1 << 20, '<')), HasSubstr("messages nest deeper than 32"));
}

TEST(ParseSpec, RefusesMoreThanOneMebibyte) {
  EXPECT_TRUE(ParseSpec(std::string(1 << 20, ' '), "a").ok());
  EXPECT_THAT(ParseErrorOf(std::string((1 << 20) + 1, ' ')), HasSubstr("at most 1048576"));
}

TEST(ParseSpec, TakesAnyBytes) {
  uint32_t state = 1;
  const std::string pieces[] = {"model", "{", "}", "<", ">", "\"", "'", "\\", "\n", ":", "[", "]",
      ",", "files", "train", "nan", "-", "0", "1e999", "0x", "\xFF", std::string(1, '\0'), "#",
      "label", "seed", ".", "type.googleapis.com/x", ";"};
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "" : kGood;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525 + 1013904223;
      const std::string& piece = pieces[(state >> 16) % std::size(pieces)];
      text.insert((state >> 8) % (text.size() + 1), piece);
    }
    const auto loaded = ParseSpec(text, "a.textproto");
    if (loaded.ok()) {
      (void)VerifySpec(*loaded);
      EXPECT_TRUE(ParseSpec(PrintEffective(loaded->spec), "b").ok()) << text;
    } else {
      EXPECT_THAT(std::string(loaded.status().message()), StartsWith("a.textproto:"));
    }
  }
}

TEST(LoadSpec, TellsMissingFromWrong) {
  EXPECT_EQ(ExitOf(LoadSpec("/nonexistent/spec").status()), Exit::kNoInput);
  const TestFolder folder;
  const std::string path = folder.path() + "/spec.textproto";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_EQ(ExitOf(LoadSpec(path).status()), Exit::kSpec);
  std::ofstream(path) << kGood;
  EXPECT_TRUE(LoadVerifiedSpec(path, {"schedule.steps=5"}).ok());
  EXPECT_EQ(ExitOf(LoadVerifiedSpec(path, {"schedule.steps=-5"}).status()), Exit::kSpec);
}

TEST(VerifySpec, NamesPlaceValueAndRange) {
  EXPECT_EQ(VerifyErrorOf(absl::StrCat(kGood, "optimizer {\n  learning_rate: 20 }")),
      "a.textproto:6:3: optimizer.learning_rate: 20 is out of range: expected 0 to 10 per step");
  EXPECT_EQ(VerifyErrorOf(absl::StrCat(kGood, "batch { tokens: -1 }")),
      "a.textproto:5:9: batch.tokens: -1 is out of range: expected 8 to 1e+09 tokens");
  EXPECT_THAT(VerifyErrorOf(absl::StrCat(kGood, "optimizer { learning_rate: nan }")),
      HasSubstr("learning_rate: nan is not finite: expected 0 to 10"));
  EXPECT_THAT(VerifyErrorOf(absl::StrCat(kGood, "optimizer { clip_norm: 1e999 }")),
      HasSubstr("clip_norm: inf is not finite"));
}

TEST(VerifySpec, AllowsBothEndsOfARange) {
  EXPECT_TRUE(
      VerifySpec(*Overridden({"model.encoder.norm_epsilon=0.1", "masked_lm.mask_share=0.001",
                     "schedule.epochs=0.0001", "optimizer.beta2=0.9999999", "model.dropout=0.9"}))
          .ok());
  EXPECT_FALSE(VerifySpec(*Overridden({"model.dropout=0.9001"})).ok());
}

// Collects the names of numeric fields without both bounds.
void CollectUnbounded(const google::protobuf::Descriptor* message, std::set<std::string>* names) {
  for (int i = 0; i < message->field_count(); ++i) {
    const auto* field = message->field(i);
    if (field->message_type() != nullptr) {
      CollectUnbounded(field->message_type(), names);
      continue;
    }
    using Field = google::protobuf::FieldDescriptor;
    const auto type = field->cpp_type();
    if (type == Field::CPPTYPE_STRING || type == Field::CPPTYPE_BOOL || type == Field::CPPTYPE_ENUM)
      continue;
    const Limits& limits = field->options().GetExtension(cloze::limits);
    if (!limits.has_min() || !limits.has_max()) names->insert(field->full_name());
  }
}

TEST(VerifySpec, EveryNumberHasARange) {
  std::set<std::string> unbounded;
  CollectUnbounded(TaskSpec::descriptor(), &unbounded);
  EXPECT_EQ(unbounded, std::set<std::string>{"cloze.TaskSpec.seed"});
}

TEST(VerifySpec, ReportsAllErrorsAtOnce) {
  const std::string errors = VerifyErrorOf("");
  EXPECT_THAT(errors, HasSubstr("a.textproto: task: is not set: expected one of masked_lm {}, "));
  EXPECT_THAT(errors, HasSubstr("a.textproto: model: has neither"));
  EXPECT_THAT(errors, HasSubstr("a.textproto: train.files: is empty"));
  EXPECT_THAT(errors, HasSubstr("a.textproto: output.directory: is not set"));
}

TEST(VerifySpec, RefusesCausalSequencesWithReplacedTokens) {
  const auto loaded =
      Overridden({"masked_lm.replaced_tokens.weight=50", "masked_lm.causal_share=0.5"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(std::string(VerifySpec(*loaded).message()),
      HasSubstr("masked_lm.causal_share: cannot be used with masked_lm.replaced_tokens"));
}

TEST(VerifySpec, RefusesFieldsOfOtherArchitectures) {
  const auto loaded = Overridden({"model.encoder.window=64", "model.encoder.embedding=64"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::string errors(VerifySpec(*loaded).message());
  EXPECT_THAT(errors, HasSubstr("model.encoder.window: is only for architecture MODERN"));
  EXPECT_THAT(errors, HasSubstr("model.encoder.embedding: is not for architecture BERT"));
}

TEST(VerifySpec, ComparesFields) {
  const auto error = [](const std::vector<std::string>& assignments) {
    return std::string(VerifySpec(*Overridden(assignments)).message());
  };
  EXPECT_EQ(error({"model.encoder.heads=3"}),
      "--set model.encoder.heads=3: model.encoder.heads: 3 does not divide hidden = 128");
  EXPECT_THAT(error({"model.encoder.preset=CUSTOM", "model.encoder.hidden=64"}),
      HasSubstr("model.encoder.layers: is not set"));
  EXPECT_THAT(error({"masked_lm.warmup_from_tokens=129"}),
      HasSubstr("129 is out of range: expected 0, or 8 to max_tokens = 128"));
  EXPECT_THAT(error({"masked_lm.warmup_from_tokens=7"}), HasSubstr("7 is out of range"));
  EXPECT_THAT(error({"schedule.time_budget_minutes=60", "schedule.warmup_steps=10"}),
      HasSubstr("expected warmup_share"));
  EXPECT_THAT(error({"masked_lm.keep_share=0.6", "masked_lm.random_share=0.6"}),
      HasSubstr("keep_share + random_share is 1.2"));
  EXPECT_THAT(error({"masked_lm.max_tokens=513"}),
      HasSubstr("masked_lm.max_tokens: 513 is more than model.encoder.max_positions = 512"));
  EXPECT_THAT(error({"batch.micro_tokens=64"}),
      HasSubstr("batch.micro_tokens: 64 is less than masked_lm.max_tokens = 128"));
  EXPECT_EQ(error({"batch.micro_tokens=128"}), "");
  EXPECT_EQ(error({"masked_lm.max_tokens=10000", "model.encoder.max_positions=10000"}), "")
      << "a micro-batch that is not given grows";
  EXPECT_THAT(error({"model.start_from=x"}),
      HasSubstr("a.textproto:1:24: model.encoder: cannot be used with model.start_from"));
  EXPECT_EQ(error({"model.tokenizer="}), "") << "the run learns a vocabulary";
  EXPECT_EQ(error({"schedule.steps=10", "schedule.warmup_steps=10"}), "");
  EXPECT_THAT(error({"schedule.steps=10", "schedule.warmup_steps=11"}),
      HasSubstr("11 is more than schedule.steps = 10"));
  EXPECT_THAT(
      error({"train.files=a,,b"}), HasSubstr("--set train.files=a,,b: train.files[1]: is empty"));
  EXPECT_THAT(error({"sequence_classification.labels=a,b,a"}),
      HasSubstr("labels[2]: label \"a\" is given twice"));
  EXPECT_EQ(
      error({"sequence_classification.labels=a", "sequence_classification.kind=MULTI_LABEL"}), "");
  EXPECT_THAT(
      error({"sequence_classification.labels=a,b", "sequence_classification.kind=REGRESSION"}),
      HasSubstr("expected at most one name"));
  EXPECT_THAT(error({"sequence_classification.label_separator=",
                  "sequence_classification.kind=MULTI_LABEL"}),
      HasSubstr("is empty"));
  EXPECT_EQ(
      error({"sequence_classification.labels=a,b", "sequence_classification.class_weights=1,2.5"}),
      "");
  EXPECT_THAT(error({"sequence_classification.class_weights=1,2"}),
      HasSubstr("class_weights: 2 weights for 0 labels"));
  EXPECT_THAT(
      error({"sequence_classification.labels=a,b", "sequence_classification.class_weights=1,-1"}),
      HasSubstr("class_weights[1]: -1 is out of range"));
  EXPECT_THAT(
      error({"sequence_classification.labels=a,b", "sequence_classification.class_weights=0,0"}),
      HasSubstr("all are 0"));
  EXPECT_THAT(
      error({"sequence_classification.labels=a,b", "sequence_classification.class_weights=1,1",
          "sequence_classification.balance_classes=true"}),
      HasSubstr("excludes class_weights"));
  EXPECT_EQ(error({"sequence_classification.label_weights=a=2,b=c=0.5"}), "");
  EXPECT_THAT(error({"sequence_classification.label_weights=a=1,b"}),
      HasSubstr("label_weights[1]: \"b\": expected LABEL=WEIGHT"));
  EXPECT_THAT(error({"sequence_classification.label_weights=a=1,a=2"}),
      HasSubstr("label_weights[1]: a second weight of \"a\""));
  EXPECT_THAT(error({"sequence_classification.label_weights=a=1",
                  "sequence_classification.balance_classes=true"}),
      HasSubstr("label_weights: excludes class_weights and balance_classes"));
  EXPECT_THAT(error({"sequence_classification.kind=REGRESSION",
                  "sequence_classification.label_smoothing=0.1",
                  "sequence_classification.balance_classes=true"}),
      HasSubstr("label_smoothing: is only for SINGLE_LABEL"));
  EXPECT_THAT(error({"sequence_classification.long_texts=WINDOWS", "train.text_pair_field=b"}),
      HasSubstr("WINDOWS is only for single texts"));
  EXPECT_THAT(
      error({"sequence_classification={}", "train.text_pair_field=b", "validation.files=v.tsv"}),
      HasSubstr("validation.text_pair_field: is not set, but train.text_pair_field is"));
  EXPECT_THAT(
      error({"repeat=3"}), HasSubstr("repeat: the choice of the best run needs validation data"));
  EXPECT_THAT(error({"evaluation.patience=3"}),
      HasSubstr("evaluation.patience: early stopping needs validation data"));
  EXPECT_THAT(error({"evaluation.pairs=p.jsonl"}),
      HasSubstr("evaluation.pairs: an evaluation needs validation data"));
  EXPECT_THAT(error({"token_tagging={}", "validation.files=v.conll", "evaluation.pairs=p.jsonl"}),
      HasSubstr("evaluation.pairs: can only be scored with masked_lm"));
  EXPECT_THAT(error({"token_tagging.labels=a"}), HasSubstr("token_tagging.labels: only one label"));
  EXPECT_EQ(error({"token_tagging.labels=a,b", "token_tagging.class_weights=1,0",
                "token_tagging.label_smoothing=0.1"}),
      "");
  EXPECT_THAT(error({"token_tagging.class_weights=1,2"}),
      HasSubstr("token_tagging.class_weights: 2 weights for 0 labels"));
  EXPECT_THAT(error({"token_tagging.labels=a,b", "token_tagging.class_weights=0,0"}),
      HasSubstr("all are 0"));
  for (const char* field : {"class_weights=1,2", "balance_classes=true", "label_smoothing=0.1"}) {
    EXPECT_THAT(error({"token_tagging.labels=a,b", "token_tagging.crf=true",
                    std::string("token_tagging.") + field}),
        HasSubstr(" cannot be used with crf"));
  }
  EXPECT_THAT(error({std::string("output.directory=a\0b", 20)}),
      HasSubstr("output.directory: contains a NUL"));
  EXPECT_EQ(error({"model.encoder=", "model.start_from=x"}), "");
  EXPECT_THAT(error({"model.encoder=", "model.start_from=out"}),
      HasSubstr("which the run would overwrite"));
}

TEST(ApplyOverride, SetsEveryKind) {
  const auto loaded = Overridden({"optimizer.learning_rate=1e-4", "train.files=a.txt,b=c.txt",
      "model.encoder.preset=BASE", "batch.shuffle=false", "seed=18446744073709551615",
      "schedule.steps=1000000000000", "masked_lm.max_tokens=64", "output.directory=x y"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const TaskSpec& spec = loaded->spec;
  EXPECT_EQ(spec.optimizer().learning_rate(), 1e-4f);
  EXPECT_THAT(spec.train().files(), ::testing::ElementsAre("a.txt", "b=c.txt"));
  EXPECT_EQ(spec.model().encoder().preset(), EncoderSpec::BASE);
  EXPECT_FALSE(spec.batch().shuffle());
  EXPECT_EQ(spec.seed(), 18446744073709551615u);
  EXPECT_EQ(spec.schedule().steps(), 1000000000000);
  EXPECT_EQ(spec.masked_lm().max_tokens(), 64);
  EXPECT_EQ(spec.output().directory(), "x y");
}

TEST(ApplyOverride, SetsListsOfNames) {
  LoadedSpec loaded = *ParseSpec(kGood, "a.textproto");
  ASSERT_TRUE(ApplyOverride(&loaded, "trainable.lora.targets=QUERY,OUTPUT").ok());
  EXPECT_EQ(loaded.spec.trainable().lora().targets(1), LoraSpec::OUTPUT);
  EXPECT_THAT(std::string(ApplyOverride(&loaded, "trainable.lora.targets=QUERI").message()),
      HasSubstr("did you mean \"QUERY\""));
  ASSERT_TRUE(ApplyOverride(&loaded, "trainable.lora.targets=KEY,KEY").ok());
  ASSERT_TRUE(ApplyOverride(&loaded, "trainable.lora.rank=0").ok());
  ASSERT_TRUE(ApplyOverride(&loaded, "optimizer.muon_rate=2").ok());
  const std::string message(VerifySpec(loaded).message());
  EXPECT_THAT(
      message, HasSubstr("trainable.lora.rank: 0 is out of range: expected 1 to 1024 dimensions"));
  EXPECT_THAT(message, HasSubstr("KEY is given twice"));
  EXPECT_THAT(message, HasSubstr("expected its folder in model.start_from"));
  EXPECT_THAT(message, HasSubstr("muon_rate: does not apply to the matrices of trainable.lora"));
}

TEST(ApplyOverride, SwitchesTheTask) {
  EXPECT_EQ(Overridden({"token_tagging.max_tokens=64"})->spec.task_case(), TaskSpec::kTokenTagging);
  EXPECT_EQ(Overridden({"sequence_classification={}"})->spec.task_case(),
      TaskSpec::kSequenceClassification);
  EXPECT_EQ(Overridden({"masked_lm="})->spec.task_case(), TaskSpec::TASK_NOT_SET);
}

TEST(ApplyOverride, NamesTheTextThatIsWrong) {
  EXPECT_THAT(OverrideErrorOf("optimzer.beta1=1"),
      StartsWith("--set optimzer.beta1=1: unknown field \"optimzer\" in TaskSpec; did you mean "
                 "\"optimizer\"?"));
  EXPECT_THAT(OverrideErrorOf("optimizer.beta=1"),
      HasSubstr("unknown field \"beta\" in OptimizerSpec; did you mean \"beta1\"?"));
  EXPECT_THAT(OverrideErrorOf("lr=1"), HasSubstr("did you mean \"optimizer.learning_rate\"?"));
  EXPECT_THAT(OverrideErrorOf("epochs=1"), HasSubstr("did you mean \"schedule.epochs\"?"));
  EXPECT_EQ(OverrideErrorOf("optimizer.beta1=x"),
      "--set optimizer.beta1=x: expected a number, found \"x\"");
  for (const char* value : {"nan", "1e60", "-inf"}) {
    const auto loaded = Overridden({absl::StrCat("optimizer.beta1=", value)});
    EXPECT_THAT(std::string(VerifySpec(*loaded).message()),
        HasSubstr(" is not finite: expected 0 to 0.99999"));
  }
  EXPECT_THAT(OverrideErrorOf("batch.tokens=010"), HasSubstr("without a leading 0"));
  EXPECT_THAT(OverrideErrorOf("batch.tokens=1.5"), HasSubstr("expected a whole number"));
  EXPECT_THAT(OverrideErrorOf("runtime.threads=3000000000"),
      HasSubstr("expected a whole number of 32 bits"));
  EXPECT_THAT(OverrideErrorOf("seed=-1"), HasSubstr("expected a whole number of 64 bits from 0"));
  EXPECT_THAT(OverrideErrorOf("batch.shuffle=maybe"), HasSubstr("expected true or false"));
  EXPECT_THAT(OverrideErrorOf("runtime.compute=bf61"),
      HasSubstr("did you mean \"BF16\"? (values: AUTO, F32, BF16)"));
  EXPECT_THAT(OverrideErrorOf("seed.x=1"), HasSubstr("\"seed\" has no fields"));
  EXPECT_THAT(
      OverrideErrorOf("optimizer=1"), HasSubstr("expected a field of the message OptimizerSpec"));
  EXPECT_THAT(OverrideErrorOf("seed"), HasSubstr("expected FIELD=VALUE"));
  EXPECT_THAT(OverrideErrorOf("=1"), HasSubstr("unknown field \"\""));
  EXPECT_THAT(OverrideErrorOf("train..files=1"), HasSubstr("unknown field \"\" in DataSpec"));
}

TEST(ApplyOverride, LeavesTheSpecAloneWhenItFails) {
  LoadedSpec loaded = *ParseSpec(kGood, "a.textproto");
  const TaskSpec before = loaded.spec;
  EXPECT_FALSE(ApplyOverride(&loaded, "sequence_classification.x=1").ok());
  EXPECT_TRUE(MessageDifferencer::Equals(before, loaded.spec));
}

TEST(FieldsOf, ListsFieldsWithoutTheirDefaults) {
  const auto loaded = ParseSpec(
      "model { start_from: 'm' } sequence_classification { max_tokens: 48 label_weights: 'a=1' "
      "label_weights: 'b=2' } train { files: 'a.csv' } seed: 7",
      "a");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  using Fields = std::vector<std::pair<std::string, std::string>>;
  const Fields changed = FieldsOf(loaded->spec, true);
  EXPECT_THAT(changed, ::testing::Contains(std::pair<std::string, std::string>(
                           "sequence_classification.label_weights", "\"a=1\", \"b=2\"")));
  EXPECT_THAT(changed,
      ::testing::Contains(std::pair<std::string, std::string>("model.start_from", "\"m\"")));
  for (const auto& [name, value] : changed) EXPECT_NE(name, "optimizer.beta1");
  EXPECT_LT(changed.size(), 10);
  EXPECT_GT(FieldsOf(loaded->spec).size(), 60);
}

TEST(PrintEffective, ParsesBackToTheSame) {
  for (const std::vector<std::string>& assignments : std::vector<std::vector<std::string>>{{},
           {"optimizer.learning_rate=0.1", "train.files=\xC3\xA9,b\"c,\x01"},
           {"model.encoder=", "model.start_from=x"}, {"token_tagging.labels=O,B-x"},
           {"schedule.epochs=1e-3", "seed=18446744073709551615"}}) {
    const auto loaded = Overridden(assignments);
    const std::string text = PrintEffective(loaded->spec);
    const auto again = ParseSpec(text, "b.textproto");
    ASSERT_TRUE(again.ok()) << again.status() << text;
    EXPECT_TRUE(VerifySpec(*again).ok()) << VerifySpec(*again);
    EXPECT_TRUE(MessageDifferencer::Equals(EffectiveSpec(loaded->spec), again->spec)) << text;
    EXPECT_EQ(PrintEffective(again->spec), text);
  }
}

TEST(PrintEffective, ShowsDefaultsButNotWhatPresetOrFolderSay) {
  const std::string text = PrintEffective(ParseSpec(kGood, "a")->spec);
  EXPECT_THAT(
      text, StartsWith("# proto-file: proto/task.proto\n# proto-message: cloze.TaskSpec\n"));
  EXPECT_THAT(text, HasSubstr("learning_rate: 5e-05"));
  EXPECT_THAT(text, HasSubstr("max_positions: 512"));
  EXPECT_THAT(text, Not(HasSubstr("heads:")));
  EXPECT_THAT(text, HasSubstr("  dropout: 0.1"));
  EXPECT_THAT(PrintEffective(Overridden({"model.encoder=", "model.start_from=x"})->spec),
      Not(HasSubstr("  dropout:")));
}

TEST(ExplainSpec, SaysCommentTypeDefaultRangeAndUnit) {
  const auto text = ExplainSpec("");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("batch.tokens  (int64, default 8192, 8 to 1e+09 tokens)\n    Batch "
                               "size in tokens, special tokens included. Ignored when `examples` "
                               "is set."));
  EXPECT_THAT(*text, HasSubstr("train.files  (list of string)"));
  EXPECT_THAT(
      *text, HasSubstr("      CUSTOM  No preset: set layers, hidden, heads and intermediate.\n"));
}

// Every field has a comment. A number has a unit. A field without a default says what happens if it
// is not set.
void ExpectDocumented(const google::protobuf::Descriptor* message, const std::string& prefix) {
  for (int i = 0; i < message->field_count(); ++i) {
    const auto* field = message->field(i);
    const std::string path = prefix + field->name(), text = *ExplainSpec(path);
    const bool has_default = text.substr(0, text.find('\n')).find(", default ") != text.npos;
    const std::string comment = text.substr(text.find('\n') + 1);
    EXPECT_THAT(comment, ::testing::MatchesRegex("    [A-Z][^\n]{7,}(.|\n)*")) << path;
    if (field->message_type() != nullptr) {
      ExpectDocumented(field->message_type(), path + ".");
      continue;
    }
    using Field = google::protobuf::FieldDescriptor;
    const bool number = field->cpp_type() == Field::CPPTYPE_FLOAT ||
                        field->cpp_type() == Field::CPPTYPE_INT32 ||
                        field->cpp_type() == Field::CPPTYPE_INT64;
    const Limits& limits = field->options().GetExtension(cloze::limits);
    EXPECT_EQ(number, !limits.unit().empty()) << path << " needs a unit";
    if (has_default || field->containing_oneof() != nullptr || path.ends_with("files")) continue;
    EXPECT_THAT(comment, ::testing::ContainsRegex("Empty: |Not set: |`labels`")) << path;
  }
}

TEST(ExplainSpec, DocumentsEveryField) { ExpectDocumented(TaskSpec::descriptor(), ""); }

TEST(ExplainSpec, ContinuesCommentsOfEnumValues) {
  EXPECT_THAT(*ExplainSpec("long_texts"), HasSubstr("average"));
  EXPECT_THAT(*ExplainSpec("long_texts"), HasSubstr("\n          "));
}

TEST(ExplainSpec, Filters) {
  EXPECT_THAT(*ExplainSpec("optimizer.beta1"), StartsWith("optimizer.beta1  (float, default 0.9"));
  EXPECT_THAT(*ExplainSpec("learning_rate"), StartsWith("optimizer.learning_rate"));
  EXPECT_THAT(*ExplainSpec("DataSpec"), HasSubstr("validation.files"));
  EXPECT_THAT(*ExplainSpec("optimizer"), Not(HasSubstr("batch.tokens")));
  const auto unknown = ExplainSpec("learnin_rate");
  EXPECT_EQ(ExitOf(unknown.status()), Exit::kUsage);
  EXPECT_THAT(
      std::string(unknown.status().message()), HasSubstr("did you mean \"learning_rate\"?"));
}

TEST(ParseLabelWeight, TakesDecimalNumbers) {
  EXPECT_EQ(ParseLabelWeight("a=b=0.5"), std::pair(std::string("a=b"), 0.5f));
  for (const char* text : {"a=0x10", "a=inf", "a=-1", "a=", "=1", "a"})
    EXPECT_FALSE(ParseLabelWeight(text).has_value()) << text;
}

}  // namespace
}  // namespace cloze
