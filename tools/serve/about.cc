// Routes that tell about the server, and /tokenize.
#include "absl/strings/str_replace.h"
#include "tools/html.h"
#include "tools/serve/fields.h"

namespace cloze {
namespace {

// Returns the tokens of a text as text-embeddings-inference lists them; places are in code points.
OrderedJson Tokens(
    const Engine& engine, const Record& record, const Encoding& encoding, bool special) {
  OrderedJson tokens = OrderedJson::array();
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const bool around = encoding.words[i] < 0;
    if (around && !special) continue;
    const Span bytes = encoding.bytes[i], chars = encoding.chars[i];
    OrderedJson token = {{"id", encoding.ids[i]},
        {"text", around ? engine.Token(encoding.ids[i]) : Slice(record.text, bytes)},
        {"special", around}, {"start", nullptr}, {"stop", nullptr}};
    if (!around) token["start"] = chars.begin, token["stop"] = chars.end;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

OrderedJson Description(const ServedModel& model) {
  const Engine& engine = *model.engine;
  return {{"name", model.name}, {"kind", engine.kind()}, {"compute", engine.compute()},
      {"max_tokens", engine.max_tokens()}, {"dimensions", engine.dimensions()},
      {"labels", engine.config().labels}, {"adapters", engine.adapters()}};
}

// A page to try the models by hand. It loads nothing from elsewhere.
constexpr char kPage[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; connect-src 'self';
 style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>cloze-serve</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto;
  padding: 0 1rem; color-scheme: light dark }
textarea, pre { width: 100%; box-sizing: border-box; font: 14px/1.5 monospace }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
</style>
</head>
<body>
<h1>cloze-serve</h1>
<p><label>Model <select id="model">@MODELS@</select></label></p>
<p><label>A text in each line<br><textarea id="text" rows="5"></textarea></label></p>
<p><button id="ask">Answer</button> <span id="time"></span></p>
<pre id="answer"></pre>
<script>
const by = id => document.getElementById(id);
by("ask").onclick = async () => {
  const option = by("model").selectedOptions[0], kind = option.dataset.kind;
  const texts = by("text").value.split("\n").filter(t => t.trim());
  const routes = {sequence_classification: "predict", token_tagging: "tag", masked_lm: "fill-mask"};
  const pairs = texts.map(t => t.split("\t").slice(0, 2));
  const inputs = kind === "sequence_classification" ? pairs : texts;
  const begin = performance.now();
  try {
    const body = JSON.stringify({model: option.value, inputs, truncate: true});
    const reply = await fetch(routes[kind] || "embed", {method: "POST", body});
    by("answer").textContent = JSON.stringify(await reply.json(), null, 1);
  } catch (error) {
    by("answer").textContent = String(error);
  }
  by("time").textContent = (performance.now() - begin).toFixed(1) + " ms";
};
</script>
</body>
</html>
)";

}  // namespace

absl::StatusOr<Work> ReadTokenize(const ServeContext& context, const Json& body) {
  ASSIGN_OR_RETURN(const ServedModel model, ModelField(context, body, {}));
  ASSIGN_OR_RETURN(auto texts, TextsField(context, body, "inputs"));
  ASSIGN_OR_RETURN(const bool special, BoolField(body, "add_special_tokens", true));
  OrderedJson out = OrderedJson::array();
  for (std::string& text : texts) {
    Record record;
    record.text = std::move(text);
    ASSIGN_OR_RETURN(const Encoding encoding, model.engine->Tokenize(record));
    out.push_back(Tokens(*model.engine, record, encoding, special));
  }
  return Immediate(ToJsonLine(out));
}

absl::StatusOr<Work> ReadInfo(const ServeContext& context, const Json&) {
  const std::vector<ServedModel> all = context.models->All();
  const Engine& first = *all[0].engine;
  OrderedJson type = {{"embedding", OrderedJson::object()}};
  if (first.kind() == kClassifier[0]) {
    OrderedJson labels = OrderedJson::object();
    for (size_t i = 0; i < first.config().labels.size(); ++i)
      labels[absl::StrCat(i)] = first.config().labels[i];
    type = {{"classifier", {{"id2label", labels}}}};
  }
  OrderedJson models = OrderedJson::array();
  for (const ServedModel& model : all) models.push_back(Description(model));
  return Immediate(ToJsonLine({{"model_id", all[0].name}, {"model_dtype", first.compute()},
      {"model_type", type}, {"max_concurrent_requests", context.limits.queue},
      {"max_input_length", first.max_tokens()}, {"max_batch_tokens", context.limits.batch_tokens},
      {"max_client_batch_size", context.limits.texts}, {"auto_truncate", false},
      {"version", context.version}, {"sha", context.commit}, {"models", models}}));
}

absl::StatusOr<Work> ReadHealth(const ServeContext&, const Json&) { return Immediate("{}"); }

absl::StatusOr<Work> ReadMetrics(const ServeContext& context, const Json&) {
  return Immediate(context.metrics->Text(), "text/plain; version=0.0.4; charset=utf-8");
}

absl::StatusOr<Work> ReadPage(const ServeContext& context, const Json&) {
  std::string options;
  for (const ServedModel& model : context.models->All()) {
    const std::string name = HtmlEscape(model.name), kind = HtmlEscape(model.engine->kind());
    absl::StrAppend(&options, "<option value=\"", name, "\" data-kind=\"", kind, "\">", name, " (",
        kind, ")</option>");
  }
  return Immediate(absl::StrReplaceAll(kPage, {{"@MODELS@", options}}), "text/html; charset=utf-8");
}

}  // namespace cloze
