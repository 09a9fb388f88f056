#include "tools/model_card.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "proto/spec.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/result_sentence.h"
#include "tasks/task.h"

namespace cloze {
namespace {

constexpr char kCardName[] = "README.md", kMark[] = "\n<!-- written by cloze, ";
constexpr int64_t kMaxCard = 1 << 20;
constexpr size_t kMaxCardRows = 50;

// Returns the name of a metric on hubs; "" for metrics that they do not know.
std::string HubMetric(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {{"accuracy", "accuracy"},
      {"macro_f1", "f1"}, {"micro_f1", "f1"}, {"span_f1", "f1"}, {"f1", "f1"},
      {"mcc", "matthews_correlation"}, {"auc", "roc_auc"}, {"pearson", "pearsonr"},
      {"spearman", "spearmanr"}, {"mse", "mse"}, {"mae", "mae"}, {"perplexity", "perplexity"},
      {"exact_match", "exact_match"}, {"bleu", "bleu"}, {"chrf", "chrf"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? "" : found->second;
}

// A task's name on hubs, and the arguments with which transformers opens a model of it.
struct Use {
  const char *architecture, *pipeline, *arguments;
};
constexpr Use kUses[] = {{"ForSequenceClassification", "text-classification", ""},
    {"ForTokenClassification", "token-classification", ", aggregation_strategy=\"simple\""},
    {"ForMaskedLM", "fill-mask", ""}, {"ForQuestionAnswering", "question-answering", ""},
    {"LMHeadModel", "text-generation", ""}};

// The files of a run from which the card is made.
struct CardFacts {
  LoadedSpec loaded;
  Json config, metrics, about, result;
  std::vector<std::string> names;  // of the metrics, in the order of the file
  bool adapter = false;

  const Use* use() const {
    const Json& architectures = JsonMember(config, "architectures");
    for (const Use& use : kUses)
      if (architectures.is_array() && architectures.size() == 1 && architectures[0].is_string() &&
          absl::EndsWith(architectures[0].get<std::string>(), use.architecture))
        return &use;
    return nullptr;
  }
};

absl::StatusOr<std::string> TextIfThere(const std::string& path) {
  if (!PathExists(path)) return "";
  return ReadFile(path, int64_t{64} << 20);
}

absl::StatusOr<CardFacts> ReadFacts(const std::string& run) {
  CardFacts facts;
  ASSIGN_OR_RETURN(facts.loaded, LoadVerifiedSpec(JoinPath(run, kSpecName), {}));
  facts.adapter = PathExists(JoinPath(run, "adapter_config.json"));
  for (const auto& [name, out] :
      {std::pair("config.json", &facts.config), {"metrics.json", &facts.metrics},
          {"about.json", &facts.about}, {"result.json", &facts.result}}) {
    ASSIGN_OR_RETURN(const std::string text, TextIfThere(JoinPath(run, name)));
    if (text.empty()) continue;
    ASSIGN_OR_RETURN(*out, ParseJson(text, name));
    if (out != &facts.metrics) continue;
    facts.metrics = JsonMember(facts.metrics, "metrics");
    facts.names = MetricNames(text);
  }
  return facts;
}

std::string FileNames(const DataSpec& data) {
  return absl::StrJoin(data.files(), ", ", [](std::string* out, const std::string& path) {
    absl::StrAppend(out, "`", QuotePath(BaseName(path)), "`");
  });
}

// The front matter. JSON strings are YAML strings.
std::string FrontMatter(const CardFacts& facts, const std::string& name) {
  const Use* use = facts.use();
  std::string out =
      absl::StrCat("---\nlicense: unknown\nlibrary_name: ", facts.adapter ? "peft" : "transformers",
          "\ntags:\n- cloze\n");
  if (use == nullptr) return out + "---\n";
  absl::StrAppend(&out, "pipeline_tag: ", use->pipeline, "\n");
  std::string metrics, results;
  std::set<std::string> listed;
  for (const std::string& metric : facts.names) {
    const std::string type = HubMetric(metric);
    if (type.empty()) continue;
    if (listed.insert(type).second) absl::StrAppend(&metrics, "- ", type, "\n");
    absl::StrAppend(&results, "    - type: ", type, "\n      name: ", metric,
        "\n      value: ", facts.metrics[metric].dump(), "\n");
  }
  const DataSpec& data = facts.loaded.spec.validation();
  if (results.empty() || data.files_size() == 0) return out + "---\n";
  const std::string file = JsonString(BaseName(data.files(0)));
  return absl::StrCat(out, "metrics:\n", metrics, "model-index:\n- name: ", JsonString(name),
      "\n  results:\n  - task:\n      type: ", use->pipeline, "\n    dataset:\n      type: ", file,
      "\n      name: ", file, "\n    metrics:\n", results, "---\n");
}

std::string ResultPart(const CardFacts& facts) {
  if (facts.names.empty()) return "";
  const bool words = facts.loaded.spec.has_token_tagging();
  const std::string sentence =
      ResultSentence(facts.metrics, words ? "words" : "texts", facts.result);
  std::string out = absl::StrCat("## Results\n\n", sentence, sentence.empty() ? "" : "\n\n",
      "| metric | value |\n| --- | --- |\n");
  for (const std::string& name : facts.names)
    absl::StrAppendFormat(&out, "| %s | %.4g |\n", name, facts.metrics[name].get<double>());
  const Json& classes = JsonMember(facts.metrics, "per_class");
  if (!classes.is_array() || classes.size() > kMaxCardRows) return out;
  out += "\n| label | precision | recall | F1 | examples |\n| --- | --- | --- | --- | --- |\n";
  for (const Json& row : classes) {
    const auto cell = [&](const char* member) {
      const Json& value = JsonMember(row, member);
      return !value.is_number()        ? std::string("-")
             : value.is_number_float() ? absl::StrFormat("%.3f", value.get<double>())
                                       : value.dump();
    };
    const std::string label =
        JsonMember(row, "label").is_string() ? row["label"].get<std::string>() : "";
    absl::StrAppend(&out, "| ", absl::StrReplaceAll(QuotePath(label), {{"|", "\\|"}}), " | ",
        cell("precision"), " | ", cell("recall"), " | ", cell("f1"), " | ", cell("support"),
        " |\n");
  }
  return out;
}

std::string DataPart(const CardFacts& facts) {
  std::string out = "## Data\n\n";
  const Json& data = JsonMember(facts.about, "data");
  for (const auto& [part, spec] : {std::pair("train", &facts.loaded.spec.train()),
           {"validation", &facts.loaded.spec.validation()}}) {
    if (spec->files_size() == 0) continue;
    const Json& examples = JsonMember(JsonMember(data, part), "examples");
    absl::StrAppend(&out, "- ", part, ": ", FileNames(*spec),
        examples.is_number() ? absl::StrCat(", ", examples.dump(), " examples") : "",
        spec->share() > 0 ? absl::StrFormat(" (a held-out share of %g)", spec->share()) : "", "\n");
  }
  return out;
}

std::string SettingsPart(const CardFacts& facts) {
  std::string out = "## Training\n\n";
  const Json& program = JsonMember(facts.about, "program");
  const std::string& start = facts.loaded.spec.model().start_from();
  absl::StrAppend(&out, "Trained with ", program.is_string() ? program.get<std::string>() : "Cloze",
      start.empty() ? ", from random weights"
                    : absl::StrCat(", from the weights of `", QuotePath(BaseName(start)), "`"),
      ". Settings that are not the defaults:\n\n```\n");
  for (const auto& [name, value] : FieldsOf(facts.loaded.spec, /*changed=*/true))
    if (!absl::StartsWith(name, "output.") && !absl::StrContains(name, "share_rule"))
      absl::StrAppend(&out, name, ": ", value, "\n");
  return out + "```\n";
}

std::string UsePart(const CardFacts& facts, const std::string& name) {
  const std::string command = MakeTask(facts.loaded.spec)->command();
  std::string out = absl::StrCat(
      "## Use\n\nWith Cloze:\n\n```sh\ncloze ", command, " --model ", name, " texts.txt\n```\n");
  const Use* use = facts.use();
  if (use == nullptr || facts.adapter) return out;
  absl::StrAppend(&out,
      "\nWith transformers:\n\n```python\nfrom transformers import pipeline\nanswer = pipeline(\"",
      use->pipeline, "\", model=\"", name, "\"", use->arguments, ")\n```\n");
  std::vector<std::string> ignored;
  for (const char* member : {"temperature", "thresholds", "crf", "long_texts", "pieces"})
    if (facts.config.contains(member) && facts.config[member] != false)
      ignored.push_back(absl::StrCat("`", member, "`"));
  if (!ignored.empty())
    absl::StrAppend(&out,
        "\ntransformers does not read these members of config.json, so its answers can differ: ",
        absl::StrJoin(ignored, ", "), ".\n");
  return out;
}

// The licence that the card of the model at the start names: the line "license: ..." at its top.
std::string StartLicence(const TaskSpec& spec) {
  const auto card = TextIfThere(JoinPath(spec.model().start_from(), kCardName));
  if (spec.model().start_from().empty() || !card.ok() || !absl::StartsWith(*card, "---")) return "";
  for (const absl::string_view line : absl::StrSplit(card->substr(3, 4000), '\n')) {
    if (absl::StartsWith(line, "---")) break;
    if (absl::StartsWith(line, "license: ")) return std::string(line.substr(9));
  }
  return "";
}

std::string HashOfCard(absl::string_view text) {
  Hasher hasher;
  hasher.AddText(text);
  return hasher.Hex();
}

std::string WithMark(const std::string& text) {
  return absl::StrCat(text, kMark, HashOfCard(text), " -->\n");
}

// True if Cloze wrote the card and nobody has changed it.
bool IsOwnCard(const std::string& card) {
  const size_t mark = card.rfind(kMark);
  return mark != std::string::npos && card == WithMark(card.substr(0, mark));
}

}  // namespace

absl::Status WriteModelCard(const std::string& folder, const std::string& run) {
  const std::string path = JoinPath(folder, kCardName);
  ASSIGN_OR_RETURN(const std::string before, TextIfThere(path));
  if (PathExists(path) && !IsOwnCard(before)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const CardFacts facts, ReadFacts(run));
  const std::string name = BaseName(AbsolutePath(folder)),
                    licence = StartLicence(facts.loaded.spec);
  return WriteFileAtomically(
      path, WithMark(absl::StrJoin(
                {FrontMatter(facts, name), absl::StrCat("# ", name, "\n"), ResultPart(facts),
                    DataPart(facts), SettingsPart(facts), UsePart(facts, name),
                    absl::StrCat("## Licence\n\nNot stated: the training does not know it.",
                        licence.empty() ? ""
                                        : absl::StrCat(" The model that it started from names `",
                                              QuotePath(licence), "`."),
                        " State it in the first lines of this file (`license:`).\n")},
                "\n")));
}

absl::Status CopyModelCard(
    const std::string& from, const std::string& to, absl::string_view change) {
  const std::string path = JoinPath(from, kCardName);
  if (!PathExists(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string card, ReadFile(path, kMaxCard));
  if (IsOwnCard(card)) card.resize(card.rfind(kMark));
  return WriteFileAtomically(
      JoinPath(to, kCardName), absl::StrCat(card, "\n## Changed afterwards\n\n", change, "\n"));
}

}  // namespace cloze
