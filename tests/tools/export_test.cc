#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "core/base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/onnx.pb.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kGolden = CLOZE_SOURCE_DIR "/tests/golden/";

cloze_onnx::ModelProto Parse(const std::string& folder) {
  std::ifstream in(folder + "/model.onnx", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  cloze_onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

template <typename Items>
std::vector<std::string> Names(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name());
  return names;
}

// Values that nodes or outputs use before anything gives them.
std::vector<std::string> Undefined(const cloze_onnx::GraphProto& graph) {
  std::set<std::string> known;
  std::vector<std::string> undefined;
  const auto use = [&](const std::string& name) {
    if (known.count(name) == 0) undefined.push_back(name);
  };
  for (const std::string& name : Names(graph.initializer())) EXPECT_TRUE(known.insert(name).second);
  for (const std::string& name : Names(graph.input())) EXPECT_TRUE(known.insert(name).second);
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) use(input);
    for (const std::string& output : node.output()) EXPECT_TRUE(known.insert(output).second);
  }
  for (const std::string& name : Names(graph.output())) use(name);
  for (const std::string& name : Names(graph.value_info())) use(name);
  return undefined;
}

void ExpectWholeConstants(const cloze_onnx::GraphProto& graph) {
  using cloze_onnx::TensorProto;
  for (const auto& tensor : graph.initializer()) {
    const int type = tensor.data_type();
    int64_t bytes = type == TensorProto::INT8 ? 1 : type == TensorProto::INT64 ? 8 : 4;
    for (const int64_t dim : tensor.dims()) bytes *= dim;
    EXPECT_EQ(tensor.raw_data().size(), bytes) << tensor.name();
  }
}

// tests/e2e/onnx.sh compares the results of all of them with transformers'.
TEST(Export, WritesASoundGraph) {
  const std::string folder = TemporaryFolder();
  const std::pair<const char*, std::vector<std::string>> models[] = {
      {"sequence_classification", {"logits"}},
      {"question_answering", {"start_logits", "end_logits"}}, {"albert_masked_lm", {"logits"}},
      {"modernbert_token_tagging", {"logits"}}, {"mpnet_masked_lm", {"logits"}},
      {"deberta_v2_conv", {"logits"}}};
  for (const auto& [name, outputs] : models) {
    const std::string out = folder + "/" + name;
    const RunResult result = RunCloze("export --model " + kGolden + name + " --out " + out);
    ASSERT_EQ(result.exit, 0) << result.err;
    const cloze_onnx::ModelProto model = Parse(out);
    EXPECT_EQ(model.opset_import(0).version(), 17);
    EXPECT_THAT(Undefined(model.graph()), IsEmpty()) << name;
    EXPECT_EQ(Names(model.graph().output()), outputs);
    ExpectWholeConstants(model.graph());
    EXPECT_TRUE(std::filesystem::exists(out + "/config.json"));
  }
  EXPECT_THAT(Names(Parse(folder + "/sequence_classification").graph().input()),
      ElementsAre("input_ids", "attention_mask", "token_type_ids"));
}

// Two blocks of six layers, of which three share their input.
TEST(Export, WritesProductsOfInt8) {
  const std::string out = TemporaryFolder() + "/out",
                    options = "export --int8 --model " + kGolden + "sequence_classification";
  ASSERT_EQ(RunCloze(options + " --out " + out).exit, 0);
  const cloze_onnx::ModelProto model = Parse(out);
  EXPECT_THAT(Undefined(model.graph()), IsEmpty());
  ExpectWholeConstants(model.graph());
  std::map<std::string, int> nodes;
  for (const auto& node : model.graph().node()) ++nodes[node.op_type()];
  EXPECT_EQ(nodes["DynamicQuantizeLinear"], 8);
  EXPECT_EQ(nodes["MatMulInteger"], 12);
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.data_type() != cloze_onnx::TensorProto::INT8) continue;
    EXPECT_THAT(tensor.name(), HasSubstr("encoder.layer."));
    const bool full = tensor.raw_data().find('\x7f') != std::string::npos ||
                      tensor.raw_data().find('\x81') != std::string::npos;
    EXPECT_TRUE(full) << tensor.name();
  }
  ASSERT_EQ(RunCloze(options + " --external-data --out " + out + "2").exit, 0);
  const cloze_onnx::ModelProto apart = Parse(out + "2");
  for (const auto& tensor : apart.graph().initializer())
    EXPECT_TRUE(tensor.name().find(".weight") == std::string::npos || tensor.raw_data().empty());
}

TEST(Export, PutsWeightsIntoAFileOfTheirOwn) {
  const std::string out = TemporaryFolder() + "/out";
  ASSERT_EQ(
      RunCloze("export --external-data --model " + kGolden + "masked_lm --out " + out).exit, 0);
  int64_t end = 0;
  const cloze_onnx::ModelProto model = Parse(out);
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.data_location() != cloze_onnx::TensorProto::EXTERNAL) continue;
    EXPECT_EQ(tensor.raw_data(), "");
    ASSERT_EQ(tensor.external_data_size(), 3);
    EXPECT_EQ(tensor.external_data(0).value(), "model.onnx_data");
    EXPECT_EQ(std::stoll(tensor.external_data(1).value()), end) << tensor.name();
    end += (std::stoll(tensor.external_data(2).value()) + 4095) / 4096 * 4096;
  }
  EXPECT_GT(end, 0);
  EXPECT_EQ(std::filesystem::file_size(out + "/model.onnx_data"), end);
}

// Without --pool, a folder of sentence-transformers says how.
TEST(Export, KeepsThePoolingOfSentenceTransformers) {
  const std::string folder = TemporaryFolder(), model = folder + "/model";
  std::filesystem::create_directories(model + "/1_Pooling");
  std::filesystem::copy(kGolden + "masked_lm/model.safetensors", model);
  std::ifstream in(kGolden + "masked_lm/config.json");
  Json config = *ParseJson(std::string(std::istreambuf_iterator<char>(in), {}), "config");
  config["architectures"] = {"BertModel"};
  std::ofstream(model + "/config.json") << config.dump();
  const auto modules = [&](const std::string& pool, const std::string& more) {
    std::ofstream(model + "/1_Pooling/config.json") << R"({"pooling_mode": ")" << pool << "\"}";
    std::ofstream(model + "/modules.json")
        << R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})"
        << more << "]";
  };
  const std::string normalize =
      R"(, {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})";
  // Returns the types of the last nodes, and checks them with ONNX Runtime if there is one.
  const auto last = [&](const std::string& options, const std::string& out) {
    const RunResult result =
        RunCloze("export --model " + model + " --out " + folder + "/" + out + options);
    EXPECT_EQ(result.exit, 0) << result.err;
    const RunResult checked = RunCloze(
        "export --check --model " + model + " --out " + folder + "/checked_" + out + options);
    EXPECT_THAT(checked.exit, ::testing::AnyOf(0, 66)) << checked.err;
    const cloze_onnx::ModelProto graph = Parse(folder + "/" + out);
    EXPECT_THAT(Undefined(graph.graph()), IsEmpty());
    std::set<std::string> types;
    bool after = false;
    for (const auto& node : graph.graph().node()) {
      if (after) types.insert(node.op_type());
      after |= node.output(0) == "last_hidden_state";
    }
    return types;
  };
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::Not;
  modules("cls", normalize);
  EXPECT_EQ(last("", "a"), last(" --pool cls", "b"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/a/1_Pooling/config.json"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/a/modules.json"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/b/modules.json"));
  modules("mean", "");
  EXPECT_THAT(last("", "c"), AllOf(Contains("ReduceSum"), Not(Contains("Sqrt"))));
  modules("max", normalize);
  EXPECT_THAT(last("", "d"), AllOf(Contains("GlobalMaxPool"), Contains("Sqrt")));
  EXPECT_THAT(last(" --pool none", "e"), IsEmpty());
  modules("lasttoken", "");
  EXPECT_EQ(RunCloze("export --model " + model + " --out " + folder + "/f").exit, 76);
}

// Positions of RoBERTa's kind follow from the tokens, so that padding may stand on either side.
TEST(Export, CountsPositionsWithoutPadding) {
  const std::string out = TemporaryFolder() + "/out";
  for (const auto& [name, counts] : {std::pair("roberta_masked_lm", 1), {"mpnet_masked_lm", 1},
           {"xlm_roberta_masked_lm", 1}, {"masked_lm", 0}}) {
    ASSERT_EQ(RunCloze("export --model " + kGolden + name + " --out " + out + name).exit, 0);
    std::map<std::string, int> nodes;
    const cloze_onnx::ModelProto model = Parse(out + name);
    for (const auto& node : model.graph().node()) ++nodes[node.op_type()];
    EXPECT_EQ(nodes["CumSum"], counts) << name;
  }
}

// Needs ONNX Runtime; without it, one line says so and nothing is written.
TEST(Export, ChecksWithOnnxRuntime) {
  for (const std::string name : {"question_answering", "modernbert_masked_lm", "token_tagging",
           "roberta_masked_lm", "mpnet_masked_lm"}) {
    const std::string out = TemporaryFolder() + "/out";
    const RunResult result = RunCloze("export --check --model " + kGolden + name + " --out " + out);
    if (result.exit == 66) {
      EXPECT_THAT(result.err, HasSubstr("install libonnxruntime"));
      EXPECT_FALSE(std::filesystem::exists(out));
      continue;
    }
    ASSERT_EQ(result.exit, 0) << result.err;
    const Json report = *ParseJson(result.out, "report");
    EXPECT_GT(report["values"].get<int64_t>(), 100);
    EXPECT_LT(report["largest_difference"].get<double>(), 1e-5);
    EXPECT_EQ(report["equal_answers"].get<double>(), 1);
  }
}

TEST(Export, RefusesWhatItCannotWrite) {
  const std::string folder = TemporaryFolder();
  const auto fails = [&](const std::string& options, int exit, const std::string& says) {
    const RunResult result = RunCloze("export " + options);
    EXPECT_EQ(result.exit, exit) << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(folder + "/out"));
  };
  const std::string model = "--model " + kGolden, out = " --out " + folder + "/out";
  fails(model + "release_0.1/runs/lora" + out, 76, "cloze merge");
  fails(model + "gpt2_causal_lm" + out, 76, "is a decoder");
  fails(model + "masked_lm --out " + folder, 73, "exists already");
  fails(model + "masked_lm --pool mean" + out, 2, "--pool is for models without a head");
  fails(model + "masked_lm --opset 3" + out, 2, "--opset");
  fails(model + "nothing" + out, 66, "nothing");
}

}  // namespace
}  // namespace cloze
