// GET /: a page to try the models by hand. It loads nothing from elsewhere.
#include "absl/strings/str_replace.h"
#include "tools/html.h"
#include "tools/serve/fields.h"

namespace cloze {
namespace {

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
