// One table of bad inputs. Each ends with one message that names the file, line or field, returns
// the documented exit code, and leaves no unfinished files. The numbers I1 to I15 are those of the
// project's list of bad inputs.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sanitized.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

const std::string kVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n";
const std::string kEncoder =
    "model { tokenizer: 'vocab.txt' encoder { preset: CUSTOM layers: 1 hidden: 8 heads: 1 "
    "intermediate: 8 max_positions: 16 } } ";
const std::string kRun =
    "batch { tokens: 64 micro_tokens: 64 } schedule { steps: 1 } output { directory: 'run' } "
    "runtime { threads: 1 } ";

std::string Mlm(const std::string& file) {
  return kEncoder + kRun + "masked_lm { max_tokens: 16 } train { files: '" + file + "' }";
}
std::string Classes(const std::string& file, const std::string& labels = "") {
  return kEncoder + kRun + "sequence_classification { max_tokens: 16 " + labels +
         "} train { files: '" + file + "' }";
}
std::string Tags(const std::string& file) {
  return kEncoder + kRun + "token_tagging { max_tokens: 16 } train { files: '" + file + "' }";
}
const std::string kLong(100'000, 'x');
std::string Repeat(const std::string& text, int64_t n) {
  std::string out;
  for (int64_t i = 0; i < n; ++i) out += text;
  return out;
}

// Files and their contents in addition to vocab.txt, the command, the exit code and parts of the
// message.
struct Case {
  std::string name;
  std::map<std::string, std::string> files;
  std::string command;
  int exit;
  std::vector<std::string> says;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::set<std::string> Names(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    names.insert(fs::relative(entry.path(), folder).string());
  return names;
}

// Expects valid UTF-8 without terminal escapes, of a bounded length.
void ExpectSafe(std::string message) {
  EXPECT_LT(message.size(), 4096);
  for (const std::string bad : {"\x1b", "\x07", "\xE2\x80\xAE", "\xC2\x9B"})
    EXPECT_EQ(message.find(bad), std::string::npos) << message;
  EXPECT_TRUE(IsUtf8(message));
}

class BadInputTest : public testing::TestWithParam<Case> {};

TEST_P(BadInputTest, IsRefused) {
  const Case& c = GetParam();
  const fs::path folder = TemporaryFolder();
  std::ofstream(folder / "vocab.txt") << kVocab;
  for (const auto& [name, content] : c.files) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  const std::set<std::string> before = Names(folder);
  const RunResult result = RunCloze(c.command, "cd " + folder.string() + " && ");
  EXPECT_EQ(result.exit, c.exit) << result.err;
  EXPECT_EQ(result.out, "");
  for (const std::string& part : c.says) EXPECT_THAT(result.err, HasSubstr(part));
  ExpectSafe(result.err);
  std::vector<std::string> left;
  for (const std::string& name : Names(folder)) {
    const bool unfinished = name.find("tmp") != std::string::npos ||
                            name.find("model.safetensors") != std::string::npos;
    if (before.count(name) == 0 && unfinished) left.push_back(name);
  }
  EXPECT_THAT(left, IsEmpty());
}

const char kPretrain[] = "pretrain s.textproto", kFinetune[] = "finetune s.textproto",
           kCheck[] = "spec check s.textproto";

std::vector<Case> DataCases() {
  const auto tsv = [](const std::string& name, const std::string& content,
                       std::vector<std::string> says, int exit = 65) {
    return Case{
        name, {{"s.textproto", Classes("d.tsv")}, {"d.tsv", content}}, kFinetune, exit, says};
  };
  const auto csv = [](const std::string& name, const std::string& content,
                       std::vector<std::string> says) {
    return Case{name, {{"s.textproto", Classes("d.csv")}, {"d.csv", content}}, kFinetune, 65, says};
  };
  const auto conll = [](const std::string& name, const std::string& content,
                         std::vector<std::string> says) {
    return Case{
        name, {{"s.textproto", Tags("d.conll")}, {"d.conll", content}}, kFinetune, 65, says};
  };
  const auto text = [](const std::string& name, const std::string& content,
                        std::vector<std::string> says) {
    return Case{name, {{"s.textproto", Mlm("d.txt")}, {"d.txt", content}}, kPretrain, 65, says};
  };
  return {
      tsv("I1_label_not_utf8", "text\tlabel\na\tx\nb\t\xFF\n",
          {"d.tsv:3: label_field", "\\xFF", "not UTF-8"}),
      tsv("I2_long_line", "text\tlabel\n" + std::string(20 << 20, 'a') + "\tx\n",
          {"d.tsv:2: the line is longer than 16777216 bytes"}),
      text("I3_empty_file", "", {"d.txt: 0 usable examples"}),
      text("I3_only_blanks", "\n \n\t\n\r\n  ", {"d.txt: 0 usable examples"}),
      tsv("I3_header_only", "text\tlabel\n", {"d.tsv: no examples"}),
      text("I4_utf16", std::string("a\0 \0b\0\n\0", 8), {"d.txt: is UTF-16 text"}),
      text("I4_utf32",
          std::string("\xFF\xFE\0\0"
                      "a\0\0\0",
              8),
          {"d.txt: is UTF-32 text"}),
      text("I4_not_utf8", "caf\xE9\nb\n",
          {"d.txt:1: not UTF-8, perhaps Windows-1252 or Latin-1; 1 of 2 lines"}),
      text("I4_gzip", "\x1F\x8B\x08 packed", {"d.txt: gzip data: unknown header flags set"}),
      text("I4_bzip2", "BZh91AY&SY packed", {"d.txt: is bzip2 data"}),
      tsv("I4_zip", "PK\x03\x04 packed", {"d.tsv: is a zip archive"}),
      tsv("I4_xlsx", "PK\x03\x04 xl/workbook.xml",
          {"d.tsv: is an Excel workbook: expected UTF-8 text (save it in Excel as \"CSV UTF-8\")"}),
      tsv("I4_parquet", "PAR1....", {"d.tsv: is a Parquet file", "write it as JSON lines"}),
      Case{"I5_unknown_label",
          {{"s.textproto", Classes("d.tsv", "labels: 'x' labels: 'y'")},
              {"d.tsv", "text\tlabel\na\tx\nb\tz\n"}},
          kFinetune, 65, {"d.tsv:3: label_field: unknown label \"z\"", ": expected \"x\", \"y\""}},
      tsv("I5_empty_label", "text\tlabel\na\t\n", {"d.tsv:2: label_field: an empty label"}),
      tsv("I5_one_class", "text\tlabel\na\tx\nb\tx\n",
          {"d.tsv: label_field: found only \"x\": expected at least 2 different labels"}),
      Case{"I5_label_twice", {{"s.textproto", Classes("d.tsv", "labels: 'x' labels: 'x'")}},
          kFinetune, 78, {"s.textproto:1:", "labels[1]", "given twice"}},
      conll("I6_ragged", "a X\nb Y\n\nc\n", {"d.conll:4: 1 column: expected 2"}),
      conll("I6_one_column", "a\nb\n", {"d.conll:1: tags_field"}),
      conll("I6_no_blank_line", Repeat("a X\n", 1000002), {"d.conll:1: no blank line within"}),
      csv("I7_open_quote", "text,label\na,x\n\"b,x\nc,y\n",
          {"d.csv:3: column 1: the quote opened here is not closed"}),
      csv("I7_text_behind_quote", "text,label\n\"a\"b,x\n", {"d.csv:2: column 1"}),
      csv("I7_million_columns", "text,label\n" + std::string(1000000, ',') + "\n",
          {"d.csv:2: more than 100000 columns"}),
      csv("I7_no_such_column", "txt,label\na,x\n",
          {"d.csv:1: text_field: no column \"text\"", "\"txt\", \"label\""}),
      tsv("I15_escapes", "te\x1b[31mxt\xE2\x80\xAE\tlabel\n", {"\\u{1B}[31m", "\\u{202E}"}),
      Case{"I10_name_with_newline", {{"s.textproto", Mlm("no\\nsuch\\033[1m.txt")}}, kPretrain, 66,
          {"no\\u{A}such\\u{1B}[1m.txt"}},
      Case{"I10_folder_for_a_file", {{"s.textproto", Mlm(".txt")}, {".txt/x", ""}}, kPretrain, 66,
          {".txt: a folder without data files"}},
      Case{"missing_data", {{"s.textproto", Mlm("none.txt")}}, kPretrain, 66,
          {"s.textproto:1:", "none.txt: cannot open"}},
      Case{"unknown_extension", {{"s.textproto", Mlm("d.bin")}, {"d.bin", ""}}, kPretrain, 78,
          {"s.textproto:1:", "d.bin: format"}},
  };
}

std::vector<Case> SpecCases() {
  const auto spec = [](const std::string& name, const std::string& text,
                        std::vector<std::string> says) {
    return Case{"I8_" + name, {{"s.textproto", text}}, kCheck, 78, says};
  };
  const auto set = [](const std::string& name, const std::string& assignment,
                       std::vector<std::string> says) {
    return Case{"I8_set_" + name, {{"s.textproto", Mlm("d.txt")}},
        std::string(kCheck) + " --set " + assignment, 78, says};
  };
  return {
      spec("unknown_field", "schedule {\n  stepz: 3\n}",
          {"s.textproto:2:3: unknown field \"stepz\"", "steps"}),
      spec("typographic_quotes", "output { directory: \u201Cruns\u201D }",
          {"s.textproto:1:21: a character that is not ASCII"}),
      spec("field_twice", "seed: 1\nseed: 2", {"s.textproto:2:1: field \"seed\" is given twice"}),
      spec("nested", Repeat("model {", 100000), {"s.textproto:1:", "nest deeper than 32"}),
      spec("two_megabytes", std::string(2 << 20, ' '),
          {"s.textproto: 2097152 bytes: expected a spec of at most 1048576 bytes"}),
      spec("octal", "seed: 010", {"s.textproto:1:7: number 010 starts with 0"}),
      spec("nan", "optimizer { learning_rate: nan }",
          {"s.textproto:1:", "optimizer.learning_rate", "not finite"}),
      spec("infinity", "optimizer { learning_rate: inf }",
          {"optimizer.learning_rate", "not finite"}),
      spec("not_a_number", "seed: many", {"s.textproto:1:7"}),
      spec("unclosed", "model { tokenizer: 'a", {"s.textproto:1:"}),
      spec("long_name", std::string(5000, 'x') + ": 1", {"s.textproto:1:1: unknown field", "..."}),
      spec("gzip", "\x1F\x8B\x08 packed", {"s.textproto: is gzip data"}),
      spec("utf16", "\xFF\xFEs\xFE", {"s.textproto: is UTF-16 text"}),
      spec("escapes", "\x1b[31m: 1", {"s.textproto:1:1"}),
      spec("label_not_utf8", Classes("d.tsv", "labels: 'a' labels: '\\377'"),
          {"sequence_classification.labels[1]", "UTF-8"}),
      Case{"I9_binary", {{"s.textproto", std::string("\x0A\x03\x0A\x01m\x68\x01", 7)}}, kCheck, 78,
          {"s.textproto:"}},
      set("negative_rate", "optimizer.learning_rate=-1",
          {"optimizer.learning_rate: -1 is out of range: expected 0 to 10 per step"}),
      set("nan", "optimizer.beta1=nan", {"optimizer.beta1: nan is not finite"}),
      set("octal", "seed=010", {"without a leading 0"}),
      set("heads", "model.encoder.heads=3", {"model.encoder.heads: 3 does not divide hidden = 8"}),
      set("hidden", "model.encoder.hidden=2147483647",
          {"model.encoder.hidden: 2147483647 is out of range: expected 8 to 16384 dimensions"}),
      set("layers", "model.encoder.layers=1000000",
          {"model.encoder.layers: 1000000 is out of range: expected 1 to 128 layers"}),
      set("positions", "model.encoder.max_positions=1000000000", {"model.encoder.max_positions"}),
      set("max_tokens", "masked_lm.max_tokens=1000000000", {"masked_lm.max_tokens"}),
      set("zero_tokens", "batch.tokens=0", {"batch.tokens: 0 is out of range"}),
      set("too_big", "batch.tokens=99999999999999999999", {"expected a whole number of 64 bits"}),
      set("no_value", "batch.tokens", {"--set batch.tokens: expected FIELD=VALUE"}),
      Case{"I8_too_few_positions", {{"s.textproto", Mlm("d.txt")}},
          std::string(kPretrain) + " --set masked_lm.max_tokens=17", 78,
          {"--set masked_lm.max_tokens=17: masked_lm.max_tokens: 17 is more than "
           "model.encoder.max_positions = 16"}},
      Case{"I8_memory_bomb", {{"s.textproto", Mlm("d.txt")}, {"d.txt", "a b a b a b"}},
          std::string(kPretrain) +
              " --set model.encoder.hidden=16384 --set model.encoder.intermediate=65536 --set "
              "model.encoder.layers=128",
          77, {"need", "MB"}},
  };
}

std::vector<Case> ModelCases() {
  const auto vocab = [](const std::string& name, const std::string& content,
                         std::vector<std::string> says) {
    return Case{"I11_" + name, {{"v.txt", content}}, "tokenize --model v.txt", 65, says};
  };
  const auto tokenizer = [](const std::string& name, const std::string& content,
                             std::vector<std::string> says) {
    return Case{"I12_" + name, {{"m/tokenizer.json", content}}, "tokenize --model m", 65, says};
  };
  const std::string special = "[UNK]\n[CLS]\n[SEP]\n";
  const auto config_of = [](int positions) {
    return absl::StrCat(
        R"({"model_type": "bert", "vocab_size": 8, "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1, )",
        R"("intermediate_size": 2, "max_position_embeddings": )", positions, "}");
  };
  const std::string config = config_of(4);
  const auto model = [&](const std::string& name, const std::string& header,
                         const std::string& data, std::vector<std::string> says, int exit = 65) {
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size()), file[1] = static_cast<char>(header.size() >> 8);
    absl::StrAppend(&file, header, data);
    return Case{name, {{"m/config.json", config}, {"m/model.safetensors", file}},
        "encode --model m --out out.safetensors", exit, says};
  };
  const auto index = [&](const std::string& name, const std::string& json,
                         std::vector<std::string> says, int exit = 65) {
    return Case{"I13_" + name,
        {{"m/config.json", config}, {"m/model.safetensors.index.json", json}},
        "encode --model m --out o", exit, says};
  };
  return {
      vocab("duplicate", special + "a\nb\na\n", {"v.txt:6: token a is a duplicate of line 4"}),
      vocab("no_class", "[UNK]\n[SEP]\n", {"v.txt: no class token"}),
      vocab("blank_line", special + "\na\n", {"v.txt:4: empty"}),
      vocab("megabyte_token", special + std::string(1 << 20, 'x') + "\n", {"v.txt:4: token of"}),
      vocab("not_utf8", special + "\xFF\n", {"v.txt:4: token \\xFF is not UTF-8"}),
      vocab("gzip", "\x1F\x8B\x08", {"v.txt: gzip data: truncated after 3 bytes"}),
      Case{"I11_no_mask",
          {{"s.textproto", Mlm("d.txt")}, {"vocab.txt", special + "a\n"}, {"d.txt", "a a a\n"}},
          kPretrain, 78, {"s.textproto:1:9: model.tokenizer", "no <mask>"}},
      Case{"I11_missing", {{"s.textproto", Mlm("d.txt")}, {"d.txt", "a"}},
          std::string(kPretrain) + " --set model.tokenizer=none", 66,
          {"--set model.tokenizer=none: model.tokenizer", "none: no such file or folder"}},
      tokenizer("depth", Repeat("[", 100000), {"m/tokenizer.json: nested deeper"}),
      tokenizer("not_json", "{\"version\": }", {"m/tokenizer.json:1: not valid JSON"}),
      tokenizer("regex",
          R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}})",
          {"m/tokenizer.json: normalizer: type Replace: expected BertNormalizer"}),
      tokenizer("other_model",
          R"({"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "ByteLevel"}})",
          {"pre_tokenizer: type ByteLevel"}),
      model("I13_truncated", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "1234",
          {"m/model.safetensors", "tensor a"}),
      model("I13_name_twice",
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "x", {"header: member \"a\" is given twice"}),
      model("I13_not_safetensors", "PK", "", {"m/model.safetensors: header"}),
      model("I14_disagreements",
          R"({"embeddings.word_embeddings.weight":{"dtype":"U8","shape":[9,9],"data_offsets":[0,81]}})",
          std::string(81, 'x'),
          {"word_embeddings.weight: expected shape [8, 2], found [9, 9]",
              "position_embeddings.weight: missing", "token_type_embeddings.weight: missing"},
          76),
      index("outside", R"({"weight_map": {"a": "../x.safetensors"}})",
          {"weight_map: a: ../x.safetensors is not the plain name"}),
      index("missing_shard", R"({"weight_map": {"a": "x.safetensors"}})",
          {"m/x.safetensors: cannot open"}, 66),
      index("long_shard", "{\"weight_map\": {\"a\": \"" + kLong + "\"}}",
          {"weight_map: a: xxx", "xxx... is not the plain name"}),
      Case{"long_base",
          {{"m/adapter_config.json",
              "{\"peft_type\": \"LORA\", \"r\": 1, \"lora_alpha\": 1, \"base_model_name_or_path\": "
              "\"" +
                  kLong + "\"}"}},
          "encode --model m --out o", 66,
          {"its base xxx", "xxx... does not exist relative to its"}},
      Case{"long_adapter_type", {{"m/adapter_config.json", "{\"peft_type\": \"" + kLong + "\"}"}},
          "encode --model m --out o", 76, {"peft_type: \"xxx", "xxx...: expected"}},
      Case{"many_tensors_missing",
          {{"m/config.json", absl::StrReplaceAll(
                                 config, {{"num_hidden_layers\": 1", "num_hidden_layers\": 33"}})},
              {"m/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10)}},
          "encode --model m --out o", 76, {" tensors do not fit the model", "\n  ..."}},
      Case{"I14_config_range",
          {{"m/config.json", R"({"model_type": "bert", "vocab_size": 4294967296})"}},
          "encode --model m --out o", 65,
          {"m/config.json: vocab_size: expected a whole number", "found 4294967296"}},
      Case{"I14_two_positions", {{"m/config.json", config_of(2)}}, "encode --model m --out o", 65,
          {"config.json: max_position_embeddings: 2"}},
      Case{"I12_config_depth", {{"m/config.json", "{\"a\":" + Repeat("[", 100000)}},
          "encode --model m --out o", 65, {"m/config.json", "nested"}},
      Case{"pickle", {{"m/config.json", config}, {"m/pytorch_model.bin", ""}},
          "encode --model m --out o", 66, {"never read"}},
      Case{"I15_line_of_json", {{"in", "{\"text\": 5, \"\x1b[1m\": 1}\n"}},
          "tokenize --model vocab.txt --input-format jsonl in", 65, {"in:1:"}},
      Case{"I15_id", {{"in", "1 \x1b[2J\n"}}, "tokenize --model vocab.txt --input-format ids in",
          65, {"in:1:", "\\u{1B}[2J"}},
  };
}

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Data, BadInputTest, testing::ValuesIn(DataCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Spec, BadInputTest, testing::ValuesIn(SpecCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Model, BadInputTest, testing::ValuesIn(ModelCases()), NameOf);

// Unusual but valid input: I1 invalid UTF-8, I3 empty input, I4 byte order marks and line ends, I6
// variants of CoNLL.
TEST(OddInput, IsTaken) {
  const std::string folder = TemporaryFolder(), cd = "cd " + folder + " && ";
  std::ofstream(folder + "/vocab.txt")
      << "\xEF\xBB\xBF[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\na\r\nb\r\n##b\r\n";
  EXPECT_EQ(RunCloze("tokenize --model vocab.txt", cd + ": | ").out, "");
  const RunResult r = RunCloze("tokenize --model vocab.txt",
      cd + "(printf '\\357\\273\\277a \\377\\300\\257b\\355\\240\\200\\r\\n'; yes '' | head -n "
           "1000) | ");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\"ids\": [2, 5, 6, 3]"));
  std::ofstream(folder + "/d.txt") << "a b a b a b\xFF\xFE a b" << std::string(1000, '\n');
  std::ofstream(folder + "/mlm.textproto") << Mlm("d.txt");
  const RunResult mlm = RunCloze("pretrain mlm.textproto", cd);
  EXPECT_EQ(mlm.exit, 0) << mlm.err;
  EXPECT_THAT(mlm.err, HasSubstr("not UTF-8, read as U+FFFD: 2 bytes"));
  std::ofstream(folder + "/d.conll")
      << "-DOCSTART- -X- O\r\n\r\na x I-A\r\nb x O\r\n\r\n-DOCSTART- -X- O\r\n\r\na x B-B";
  std::ofstream(folder + "/tags.textproto") << Tags("d.conll");
  const RunResult tags = RunCloze("finetune tags.textproto --set output.directory=tags", cd);
  EXPECT_EQ(tags.exit, 0) << tags.err;
  EXPECT_THAT(tags.err, HasSubstr("train: 2 examples"));
}

// A run that resumes with too little memory ends with one message and a sound checkpoint.
TEST(OutOfMemory, LeavesTheCheckpointSound) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more addresses than a limit leaves";
  const std::string folder = TemporaryFolder(), cd = "cd " + folder + "; ";
  std::ofstream(folder + "/vocab.txt") << kVocab;
  std::ofstream(folder + "/d.txt") << Repeat("a b ", 60000);
  std::ofstream(folder + "/s.textproto")
      << "model { tokenizer: 'vocab.txt' encoder { preset: CUSTOM layers: 2 hidden: 64 heads: 1 "
         "intermediate: 256 max_positions: 64 } } "
         "masked_lm { max_tokens: 64 } train { files: 'd.txt' } batch { tokens: 80000 "
         "micro_tokens: 80000 } schedule { steps: 100000 } "
         "output { directory: 'run' checkpoint_every_steps: 1 } runtime { threads: 1 compute: F32 "
         "}";
  const std::string until =
      "n=0; until [ -e run/step-00000001 ] || [ $n -ge 600 ]; do sleep 0.1; n=$((n + 1)); done; ";
  ASSERT_EQ(
      RunCloze("pretrain s.textproto >log 2>&1 & p=$!; " + until + "kill -TERM $p; wait $p", cd)
          .exit,
      75);
  const RunResult starved = RunCloze("pretrain s.textproto", cd + "ulimit -v 300000; ");
  EXPECT_EQ(starved.exit, 77) << starved.err;
  EXPECT_THAT(starved.err, HasSubstr("memory"));
  for (const std::string& name : Names(folder))
    EXPECT_EQ(name.find("tmp"), std::string::npos) << name;
  const std::string resumed =
      "n=0; until grep -q 'resumed at step' log || [ $n -ge 600 ]; do sleep 0.1; n=$((n + 1)); "
      "done; ";
  RunCloze("pretrain s.textproto >log 2>&1 & p=$!; " + resumed + "kill -TERM $p; wait $p", cd);
  EXPECT_EQ(RunCloze("--version >/dev/null; grep -q 'resumed at step' log", cd).exit, 0);
}

// Under limits at which the program can hardly start, it exits with a documented code and never
// aborts.
TEST(OutOfMemory, EndsInOrderWhereverItRunsOut) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more addresses than a limit leaves";
  const std::string folder = TemporaryFolder(), cd = "cd " + folder + "; ";
  std::string tokens = kVocab;
  for (int i = 0; i < 200000; ++i) tokens += absl::StrCat("t", i, "\n");
  std::ofstream(folder + "/vocab.txt") << tokens;
  std::ofstream(folder + "/in") << Repeat("t1 t22 t333 a b\n", 20000);
  int refused = 0;
  for (const int kilobytes : {66000, 70000, 74000, 78000, 4000000}) {
    const RunResult r = RunCloze("tokenize --threads 1 --model vocab.txt in",
        cd + "ulimit -v " + std::to_string(kilobytes) + "; ");
    EXPECT_TRUE(r.exit == 0 || r.exit == 77) << kilobytes << ": " << r.exit << ' ' << r.err;
    if (r.exit == 77) {
      EXPECT_THAT(r.err, HasSubstr("memory"));
    }
    refused += r.exit != 0;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 5);
}

// I15: terminal escapes and markup in any input are escaped in all output.
TEST(OddInput, IsEscapedInAllOutput) {
  const std::string payload = "\x1b[31m\x07\xE2\x80\xAE\xE2\x81\xA6\xC2\x9B\xFF<script>\"\\";
  const std::string folder = TemporaryFolder(), cd = "cd " + folder + " && ";
  std::ofstream(folder + "/vocab.txt") << kVocab << "<script>\n\xE2\x80\xAE\n";
  std::ofstream(folder + "/in") << payload << "\n";
  const RunResult r = RunCloze("tokenize --model vocab.txt in", cd);
  EXPECT_EQ(r.exit, 65) << "not UTF-8";
  ExpectSafe(r.out);
  ExpectSafe(r.err);
  EXPECT_THAT(
      r.out, HasSubstr("\\u001b[31m\\u0007\\u202e\\u2066\\u009b\xEF\xBF\xBD<script>\\\"\\\\"));
  const RunResult missing =
      RunCloze("tokenize --model vocab.txt \"$(printf 'no\\033[2Jfile')\"", cd);
  EXPECT_EQ(missing.exit, 66);
  EXPECT_THAT(missing.err, HasSubstr("no\\u{1B}[2Jfile: cannot open"));
  ExpectSafe(missing.err);
  const std::string path = "/missing/" + std::string(1500, 'p') + "/" + std::string(1500, 'q');
  for (const std::string command : {"tokenize --model ", "predict --model "})
    EXPECT_THAT(RunCloze(command + path, "echo a | ").err, HasSubstr(path)) << "paths are not cut";
}

}  // namespace
}  // namespace cloze
