#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

const std::string kRuns = CLOZE_SOURCE_DIR "/tests/golden/release_0.1/runs/";

class Quantize : public ::testing::Test {
 protected:
  Quantize() { std::ofstream(texts_) << "the sea was calm\na good day\nno one came\nwhat is it\n"; }
  RunResult Run(const std::string& run, const std::string& more) {
    return RunCloze("quantize --model " + kRuns + run + " --out " + out_ + " " + more);
  }
  // Quantizes the model and compares what commands print for the folder and for the original.
  void ExpectSameAnswers(const std::string& model, const std::string& texts,
      const std::string& metric, const std::vector<std::string>& commands) {
    fs::remove_all(out_);
    const RunResult quantized =
        RunCloze("quantize --model " + model + " --out " + out_ + " --max-loss 5 --texts " + texts);
    ASSERT_EQ(quantized.exit, 0) << model << ": " << quantized.err;
    EXPECT_EQ(json::parse(quantized.out)["metric"], metric) << model;
    for (const std::string& command : commands) {
      const RunResult f32 = RunCloze(command + " --compute f32 --model " + model),
                      int8 = RunCloze(command + " --model " + out_);
      ASSERT_EQ(f32.exit, 0) << f32.err;
      ASSERT_EQ(int8.exit, 0) << int8.err;
      EXPECT_NE(f32.out, int8.out) << model << ": " << command;
      std::istringstream a(f32.out), b(int8.out);
      std::string left, right;
      while (std::getline(a, left) && std::getline(b, right))
        ExpectNear(json::parse(left).flatten(), json::parse(right).flatten());
      EXPECT_FALSE(std::getline(a, left) || std::getline(b, right)) << model << ": " << command;
    }
  }
  static void ExpectNear(const json& wanted, const json& found) {
    ASSERT_EQ(wanted.size(), found.size()) << wanted << '\n' << found;
    for (const auto& [name, value] : wanted.items()) {
      ASSERT_TRUE(found.contains(name)) << name << '\n' << wanted << '\n' << found;
      if (!value.is_number_float()) {
        EXPECT_EQ(found[name], value) << name;
      } else {
        const double x = value;
        EXPECT_NEAR(found[name], x, 0.08 * std::max(1.0, std::fabs(x))) << name;
      }
    }
  }
  json Config() { return json::parse(std::ifstream(out_ + "/config.json")); }

  const std::string folder_ = TemporaryFolder();
  const std::string out_ = folder_ + "/int8", texts_ = folder_ + "/texts.txt";
};

TEST_F(Quantize, NumbersHaveNoAnswersToCount) {
  std::ofstream(folder_ + "/data.tsv") << "text\tlabel\na good day\t1\nno one came\t-1\n";
  const RunResult run = Run("regression", "--max-loss 100 --data " + folder_ + "/data.tsv");
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_TRUE(json::parse(run.out)["equal_answers"].is_null()) << run.out;
}

TEST_F(Quantize, WritesAFolderThatAllCommandsRead) {
  const RunResult run = Run("classifier", "--max-loss 100 --texts " + texts_);
  ASSERT_EQ(run.exit, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["metric"], "equal_answers");
  EXPECT_GE(result["equal_answers"], 0.5);
  EXPECT_EQ(result["loss_by_layer"].size(), Config()["num_hidden_layers"]);
  EXPECT_EQ(Config()["quantization_config"]["quant_method"], "compressed-tensors");
  EXPECT_THAT(
      Config()["quantization_config"]["ignore"], ::testing::Contains("classifier.out_proj"));
  EXPECT_LT(fs::file_size(out_ + "/model.safetensors"),
      fs::file_size(kRuns + "classifier/model.safetensors") * 3 / 4);
  const std::string in = " < " + texts_;
  const RunResult written = RunCloze("predict --model " + out_ + in);
  ASSERT_EQ(written.exit, 0) << written.err;
  // The same as quantizing when the model is read, up to the scales' last bits and the embeddings.
  const RunResult original =
      RunCloze("predict --compute int8 --model " + kRuns + "classifier" + in);
  std::istringstream a(written.out), b(original.out);
  for (std::string left, right; std::getline(a, left) && std::getline(b, right);)
    EXPECT_NEAR(json::parse(left)["score"], json::parse(right)["score"], 0.05);
  EXPECT_EQ(RunCloze("predict --compute f32 --model " + out_ + in).exit, 0);
  EXPECT_EQ(RunCloze("encode --out - --model " + out_ + in).exit, 0);
  EXPECT_EQ(RunCloze("verify " + out_).exit, 0);
}

// A tagger with a CRF, several labels, numbers, pairs, windows, masked tokens, scores and vectors.
// Numbers of the int8 folder differ by at most 0.08 of those of the original in f32, or of 1; all
// else is equal. (Near the border of two labels, bf16 changes the probabilities of
// roberta_classifier by 0.036, and int8 with the rest in f32 by 0.068.)
TEST_F(Quantize, TakesModelsOfAllTasks) {
  const std::string pair = folder_ + "/pair.jsonl", masked = folder_ + "/masked.txt";
  std::ofstream(pair) << "{\"text\": \"a good day\", \"text_pair\": \"no one\"}\n";
  std::ofstream(masked) << "the sea <mask> calm\n";
  const std::string from_pair = "--input-format jsonl < " + pair, from_text = "< " + texts_;
  ExpectSameAnswers(kRuns + "pairs", pair, "equal_answers", {"predict " + from_pair});
  const std::string tabs = folder_ + "/tabs.txt";
  std::ofstream(tabs) << "a good day\tno one\n";
  ExpectSameAnswers(kRuns + "pairs", tabs, "equal_answers", {"predict --pairs < " + tabs});
  for (const char* run : {"several", "windows", "roberta_classifier"})
    ExpectSameAnswers(kRuns + run, texts_, "equal_answers", {"predict " + from_text});
  ExpectSameAnswers(kRuns + "tagger", texts_, "equal_answers", {"tag " + from_text});
  ExpectSameAnswers(kRuns + "regression", texts_, "cosine", {"predict " + from_text});
  ExpectSameAnswers(kRuns + "post_norm", texts_, "cosine",
      {"fill-mask < " + masked, "score " + from_text, "encode --out - " + from_text});
  EXPECT_THAT(
      Config()["quantization_config"]["ignore"], ::testing::Contains("cls.predictions.decoder"));
}

TEST_F(Quantize, AnswersQuestions) {
  const std::string model = folder_ + "/questions", questions = folder_ + "/questions.jsonl";
  fs::copy(CLOZE_SOURCE_DIR "/tests/golden/question_answering", model);
  std::ofstream vocab(model + "/vocab.txt");
  vocab << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < 120; ++i) vocab << 'w' << i << '\n';
  vocab.close();
  std::ofstream(questions) << "{\"text\": \"w5 w6 w7\", \"text_pair\": \"w8 w9 w10 w11 w12\"}\n"
                           << "{\"text\": \"w44 w45\", \"text_pair\": \"w60 w70 w80 w90\"}\n";
  ExpectSameAnswers(
      model, questions, "equal_answers", {"predict --input-format jsonl < " + questions});
}

TEST_F(Quantize, TakesEncoderDecoders) {
  const std::string model = folder_ + "/translator", pairs = folder_ + "/pairs.tsv",
                    ids = folder_ + "/ids.txt";
  fs::copy(CLOZE_SOURCE_DIR "/tests/golden/bert2bert", model);
  std::ofstream vocab(model + "/vocab.txt");
  vocab << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < 120; ++i) vocab << 'w' << i << '\n';
  vocab.close();
  std::ofstream(pairs) << "text\ttext_pair\nw5 w6 w7\tw8 w9 w10\nw44 w45\tw60 w70\n";
  std::ofstream(ids) << "2 5 6 7 3\n2 44 45 3\n";
  const RunResult quantized =
      RunCloze("quantize --model " + model + " --out " + out_ + " --max-loss 5 --data " + pairs +
               " --set text_pair_field=text_pair");
  ASSERT_EQ(quantized.exit, 0) << quantized.err;
  const json result = json::parse(quantized.out);
  EXPECT_EQ(result["metric"], "loss");
  EXPECT_EQ(result["loss_by_layer"].size(), 4) << "two of the encoder, two of the decoder";
  EXPECT_EQ(result["kept_layers"], json::array());
  char planned[80];
  std::snprintf(planned, sizeof(planned), "all layers in int8: loss %+.2f points",
      0.0 - result["loss_points"].get<double>());
  EXPECT_THAT(quantized.err, HasSubstr(planned)) << "as measured before";
  EXPECT_LT(
      fs::file_size(out_ + "/model.safetensors"), fs::file_size(model + "/model.safetensors") / 2);
  const std::string generate =
      "generate --input-format ids --output-format ids --max-new-tokens 4 < " + ids + " --model ";
  const RunResult int8 = RunCloze(generate + out_);
  ASSERT_EQ(int8.exit, 0) << int8.err;
  EXPECT_EQ(int8.out, RunCloze(generate + model).out);
}

TEST_F(Quantize, AdaptersWorkOnTheirOwnBase) {
  const std::string adapter = " --adapter " + kRuns + "lora < " + texts_;
  ASSERT_EQ(Run("pre_norm", "--texts " + texts_).exit, 0);
  const RunResult int8 = RunCloze("predict --model " + out_ + adapter);
  ASSERT_EQ(int8.exit, 0) << int8.err;
  const RunResult f32 = RunCloze("predict --model " + kRuns + "pre_norm" + adapter);
  std::istringstream a(int8.out), b(f32.out);
  for (std::string left, right; std::getline(a, left) && std::getline(b, right);)
    EXPECT_NEAR(json::parse(left)["score"], json::parse(right)["score"], 0.02);
  EXPECT_EQ(RunCloze("predict --compute int8 --model " + out_ + adapter).out, int8.out);
  EXPECT_NE(RunCloze("predict --compute f32 --model " + out_ + adapter).out, int8.out);
  const RunResult beside = RunCloze(
      "predict --model " + out_ + " --adapter a=" + kRuns + "lora --adapter " + kRuns + "lora",
      "cat " + texts_ + " | ");
  EXPECT_EQ(beside.out, int8.out) << beside.err;
  fs::remove_all(out_);
  ASSERT_EQ(Run("classifier", "--texts " + texts_).exit, 0);
  const RunResult other = RunCloze("predict --model " + out_ + adapter);
  EXPECT_EQ(other.exit, 76);
  EXPECT_THAT(other.err, HasSubstr("is an adapter for another base"));
}

TEST_F(Quantize, IsNotTrainedMergedOrQuantizedAgain) {
  ASSERT_EQ(Run("classifier", "--max-loss 100 --texts " + texts_).exit, 0);
  const RunResult again =
      RunCloze("quantize --model " + out_ + " --out " + out_ + "2 --texts " + texts_);
  EXPECT_EQ(again.exit, 76);
  EXPECT_THAT(again.err, HasSubstr("is quantized already"));
  const RunResult training =
      RunCloze("finetune " + kRuns + "classifier/spec.textproto --set " +
               "model.start_from=" + out_ + " --set output.directory=" + folder_ + "/run");
  EXPECT_EQ(training.exit, 76) << training.err;
  EXPECT_THAT(training.err, HasSubstr("expected a model with floating-point weights"));
  fs::remove_all(out_);
  ASSERT_EQ(Run("pre_norm", "--texts " + texts_).exit, 0);
  const RunResult merge = RunCloze(
      "merge --model " + out_ + " --adapter " + kRuns + "lora --out " + folder_ + "/merged");
  EXPECT_EQ(merge.exit, 76);
  EXPECT_THAT(merge.err, HasSubstr("is quantized: expected a model with floating-point weights"));
  EXPECT_FALSE(fs::exists(folder_ + "/merged"));
}

TEST_F(Quantize, TakesTextsThatAreNotUtf8) {
  std::ofstream(texts_) << "caf\xE9 \xFF no one\na good day\n";
  const RunResult refused = Run("tagger", "--max-loss 100 --texts " + texts_);
  EXPECT_EQ(refused.exit, 65);
  EXPECT_THAT(refused.err, HasSubstr("1 of 2 lines are not UTF-8"));
  std::ofstream(texts_) << "caf\xE9 \xFF no one\na good day\n" << std::string(1000, '\n');
  const RunResult run = Run("tagger", "--max-loss 100 --texts " + texts_);
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("U+FFFD"));
}

TEST_F(Quantize, ReadsTextsOfTables) {
  const std::string table = folder_ + "/texts.csv";
  std::ofstream(table) << "id;sentence\n1;the sea was calm\n2;a good day\n";
  const RunResult wrong = Run("classifier", "--texts " + table);
  EXPECT_EQ(wrong.exit, 65);
  EXPECT_THAT(wrong.err, HasSubstr("no column"));
  const RunResult run = Run("classifier",
      "--max-loss 100 --set delimiter=';' --set text_field=sentence --texts " + table);
  EXPECT_EQ(run.exit, 0) << run.err;
}

// The run chose its best step by a metric of other data.
TEST_F(Quantize, MeasuresTheLossOfRunsThatChooseByPairs) {
  const std::string run = folder_ + "/run";
  fs::copy(kRuns + "post_norm", run);
  std::ifstream in(run + "/spec.textproto");
  std::string spec(std::istreambuf_iterator<char>(in), {});
  const std::string none = "metric: \"\"\n";
  spec.replace(spec.find(none), none.size(), "metric: \"pair_accuracy\" pairs: \"pairs.jsonl\"\n");
  std::ofstream(run + "/spec.textproto") << spec;
  const RunResult quantized = RunCloze("quantize --model " + run + " --out " + out_ +
                                       " --max-loss 100 --data " CLOZE_SOURCE_DIR
                                       "/tests/golden/release_0.1/data/text.txt");
  ASSERT_EQ(quantized.exit, 0) << quantized.err;
  EXPECT_EQ(json::parse(quantized.out)["metric"], "loss");
}

TEST_F(Quantize, RefusesWhatLosesMore) {
  const RunResult run = Run("post_norm",
      "--max-loss 0 --data " CLOZE_SOURCE_DIR "/tests/golden/release_0.1/data/text.txt");
  EXPECT_EQ(run.exit, 77) << run.err;
  EXPECT_THAT(run.err, HasSubstr("nothing is written"));
  EXPECT_FALSE(fs::exists(out_));
  const RunResult deep =
      RunCloze("quantize --model nothing --out " + folder_ + "/a/b/c --texts " + texts_);
  EXPECT_EQ(deep.exit, 66) << deep.err;
  EXPECT_FALSE(fs::exists(folder_ + "/a")) << "no empty parents stay";
}

TEST_F(Quantize, SaysWhatIsWrong) {
  const auto expect = [&](const std::string& more, int exit, const std::string& what) {
    const RunResult run = Run("classifier", more);
    EXPECT_EQ(run.exit, exit) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
    EXPECT_FALSE(fs::exists(out_));
  };
  expect("", 2, "expected --data (labelled) or --texts (without labels)");
  std::ofstream(folder_ + "/unlabelled.tsv") << "text\na\nb\n";
  expect("--data " + folder_ + "/unlabelled.tsv", 65, "label");
  const RunResult decoder =
      RunCloze("quantize --model " CLOZE_SOURCE_DIR "/tests/golden/bart --out " + out_ +
               " --texts " + texts_);
  EXPECT_EQ(decoder.exit, 76);
  EXPECT_THAT(decoder.err, HasSubstr("is an encoder-decoder: expected --data"));
  std::ofstream(folder_ + "/empty.txt") << "";
  expect("--texts " + folder_ + "/empty.txt", 65, "no texts");
}

TEST_F(Quantize, RefusesUnsoundScales) {
  ASSERT_EQ(Run("classifier", "--max-loss 100 --texts " + texts_).exit, 0);
  fs::remove(out_ + "/MANIFEST");
  const std::string path = out_ + "/model.safetensors";
  std::stringstream sound;
  sound << std::ifstream(path, std::ios::binary).rdbuf();
  const auto expect = [&](const std::string& bytes, const std::string& what) {
    std::ofstream(path, std::ios::binary) << bytes;
    const RunResult run = RunCloze("predict --model " + out_ + " < " + texts_);
    EXPECT_EQ(run.exit, 65) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
    EXPECT_EQ(run.out, "");
  };
  uint64_t header = 0;
  std::memcpy(&header, sound.str().data(), 8);
  const json tensors = json::parse(sound.str().substr(8, header));
  for (const auto& [name, tensor] : tensors.items()) {
    if (name.find("query.weight_scale") == std::string::npos) continue;
    std::string bytes = sound.str();
    const float nan = NAN;
    std::memcpy(&bytes[8 + header + size_t(tensor["data_offsets"][0])], &nan, 4);
    expect(bytes, name);
    bytes = sound.str();
    bytes.replace(bytes.find(name), name.size(), name.substr(0, name.size() - 1) + "x");
    expect(bytes, "expected floating-point scales");
    const std::string rows = tensor["shape"][0].dump();
    bytes = sound.str();
    const size_t shape = bytes.find("[" + rows + ",1]", bytes.find(name));
    bytes.replace(shape, rows.size() + 4, "[1," + rows + "]");
    expect(bytes, "found [1, " + rows + "]");
  }
}

TEST_F(Quantize, NamesOtherSchemes) {
  ASSERT_EQ(Run("classifier", "--max-loss 100 --texts " + texts_).exit, 0);
  fs::remove(out_ + "/MANIFEST");
  const json sound = Config();
  const auto expect = [&](const char* pointer, const json& value, const std::string& what) {
    json config = sound;
    config[json::json_pointer(pointer)] = value;
    std::ofstream(out_ + "/config.json") << config.dump();
    const RunResult run = RunCloze("predict --model " + out_ + " < " + texts_);
    EXPECT_EQ(run.exit, 65) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
  };
  const std::string group = "/quantization_config/config_groups/group_0/";
  expect(
      "/quantization_config/quant_method", "gptq", "quant_method: expected \"compressed-tensors\"");
  expect((group + "weights/num_bits").c_str(), 4, "group_0.weights.num_bits: expected 8");
  expect((group + "input_activations/strategy").c_str(), "tensor", "expected \"token\"");
  expect("/quantization_config/ignore", 1, "ignore: expected []");
  expect("/quantization_config", 1, "quantization_config: expected an object");
  expect("/quantized_from", 1, "quantized_from: expected an object");
  expect("/quantized_from/a", -1, "quantized_from: a: expected a hash");
}

// Pooling, normalization and length of a folder of sentence-transformers.
class SentenceFolder : public Quantize {
 protected:
  SentenceFolder() {
    fs::copy(kRuns + "post_norm", model_, fs::copy_options::recursive);
    fs::create_directory(model_ + "/1_Pooling");
    Write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    Write("1_Pooling/config.json", R"({"pooling_mode": "cls"})");
    Write("sentence_bert_config.json", R"({"max_seq_length": 5, "do_lower_case": true})");
    Write("config_sentence_transformers.json", R"({"similarity_fn_name": "dot"})");
  }
  void Write(const std::string& file, const std::string& text) {
    std::ofstream(model_ + "/" + file) << text;
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::vector<double>> Vectors(const std::string& options) {
    std::vector<std::vector<double>> vectors;
    std::istringstream lines(RunCloze("encode --out - " + options + " < " + texts_).out);
    for (std::string line; std::getline(lines, line);)
      vectors.push_back(json::parse(line)["vector"].get<std::vector<double>>());
    return vectors;
  }
  void ExpectFiles(const std::string& folder) {
    for (const char* file : {"/modules.json", "/1_Pooling/config.json",
             "/sentence_bert_config.json", "/config_sentence_transformers.json"})
      EXPECT_EQ(Read(folder + file), Read(model_ + file)) << file;
  }
  const std::string model_ = folder_ + "/sentences";
};

TEST_F(SentenceFolder, IsMeasuredAndKept) {
  const RunResult run = RunCloze(
      "quantize --model " + model_ + " --out " + out_ + " --max-loss 100 --texts " + texts_);
  ASSERT_EQ(run.exit, 0) << run.err;
  ExpectFiles(out_);
  const auto before = Vectors("--compute f32 --model " + model_),
             after = Vectors("--model " + out_);
  ASSERT_EQ(before.size(), 4);
  ASSERT_EQ(after.size(), 4);
  double cosines = 0;
  for (int i = 0; i < 4; ++i)
    for (size_t c = 0; c < before[i].size(); ++c) cosines += before[i][c] * after[i][c];
  EXPECT_NEAR(json::parse(run.out)["loss_points"], 100 * (1 - cosines / 4), 1e-3) << run.out;
}

TEST_F(SentenceFolder, IsKeptByMerge) {
  const json lora = {{"peft_type", "LORA"}, {"r", 1}, {"lora_alpha", 1}};
  fs::create_directory(folder_ + "/adapter");
  std::ofstream(folder_ + "/adapter/adapter_config.json") << lora;
  const json config = json::parse(std::ifstream(model_ + "/config.json"));
  const int hidden = config["hidden_size"];
  const std::string module = "base_model.model." + std::string(config["model_type"]) +
                             ".encoder.layer.0.attention.self.query.lora_";
  json header;
  header[module + "A.weight"] = {
      {"dtype", "F32"}, {"shape", {1, hidden}}, {"data_offsets", {0, 4 * hidden}}};
  header[module + "B.weight"] = {
      {"dtype", "F32"}, {"shape", {hidden, 1}}, {"data_offsets", {4 * hidden, 8 * hidden}}};
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::ofstream out(folder_ + "/adapter/adapter_model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), 8);
  out << text << std::string(8 * hidden, '\0');
  out.close();
  const RunResult run =
      RunCloze("merge --model " + model_ + " --adapter " + folder_ + "/adapter --out " + out_);
  ASSERT_EQ(run.exit, 0) << run.err;
  ExpectFiles(out_);
  EXPECT_EQ(Vectors("--model " + out_), Vectors("--model " + model_));
}

TEST_F(SentenceFolder, OfUnknownModulesIsRefused) {
  Write("modules.json", R"([{"path": "2_Own", "type": "sentence_transformers.models.Own"}])");
  const RunResult run =
      RunCloze("quantize --model " + model_ + " --out " + out_ + " --texts " + texts_);
  EXPECT_EQ(run.exit, 76);
  EXPECT_THAT(run.err, HasSubstr("is not supported; remove modules.json to go on without it"));
}

// A file is at fault, not the program.
TEST_F(SentenceFolder, WeightsThatOverflowAreData) {
  std::fstream file(model_ + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header = 0;
  file.read(reinterpret_cast<char*>(&header), 8);
  std::string text(header, ' ');
  file.read(text.data(), text.size());
  const json tensors = json::parse(text);
  for (const auto& [name, tensor] : tensors.items()) {
    if (name.find("intermediate.dense.weight") == std::string::npos) continue;
    const uint64_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    const std::vector<float> large((end - begin) / 4, 3e38f);
    file.seekp(8 + header + begin);
    file.write(reinterpret_cast<const char*>(large.data()), end - begin);
  }
  file.close();
  fs::remove(model_ + "/MANIFEST");
  const RunResult run = RunCloze("encode --out - --model " + model_ + " < " + texts_);
  EXPECT_EQ(run.exit, 65) << run.err;
  EXPECT_THAT(run.err, HasSubstr("its weights are too large"));
}

}  // namespace
}  // namespace cloze
