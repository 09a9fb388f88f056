// `cloze attention`: what each token of a text looks at, drawn.
#include <algorithm>
#include <cstdio>

#include "core/base/text.h"
#include "tools/attention_page.h"
#include "tools/infer.h"

namespace cloze {
namespace {

constexpr int64_t kMaxShownTokens = 128;  // more are no picture

struct AttentionOptions {
  InferOptions infer;
  std::string text, pair;
};

absl::Status DrawAttention(AttentionOptions options) {
  const std::string& out = options.infer.out;
  RETURN_IF_ERROR(CheckExtension(out, {"html", "htm"}));
  if (out != "-") RETURN_IF_ERROR(CheckOutput(out, options.infer.force));
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  if (session->has_adapters_beside())
    return UsageError("--adapter: `cloze attention` takes one adapter, without a name");
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session->TokenizerOr());
  const int64_t most = std::min<int64_t>(kMaxShownTokens, session->config().max_tokens());
  int64_t cut = 0;
  const bool pair = !options.pair.empty();
  const Encoding encoding =
      pair ? tokenizer->EncodePair(options.text, options.pair) : tokenizer->Encode(options.text);
  const Query query{ExampleOf(encoding, most, &cut, tokenizer->usual_keep())};
  AttentionMaps maps = {.model = options.infer.model,
      .text = absl::StrCat(options.text, pair ? " | " : "", options.pair),
      .heads = session->config().heads};
  bool second = false;
  for (const int32_t id : query.ids) {
    maps.tokens.push_back(tokenizer->token(id));
    maps.special.push_back(tokenizer->is_special(id));
    maps.second.push_back(second);
    second |= pair && id == tokenizer->special().sep;
  }
  ASSIGN_OR_RETURN(maps.probs, session->Attention(query));
  RETURN_IF_ERROR(WriteOutput(out, options.infer.force,
      [&](LineWriter& writer) { return writer.WriteText(AttentionPage(maps)); }));
  if (cut > 0)
    std::fprintf(stderr, "cloze: showing the first %lld of %lld tokens\n", (long long)most,
        (long long)most + cut);
  if (out == "-") return absl::OkStatus();
  std::fprintf(stderr, "%s: %s x %s, %s; open it in a browser\n", QuotePath(out).c_str(),
      Counted(maps.probs.size(), "layer").c_str(), Counted(maps.heads, "head").c_str(),
      Counted(maps.tokens.size(), "token").c_str());
  return absl::OkStatus();
}

}  // namespace

void AddAttention(Command& app) {
  const auto declare = [](Command& command, AttentionOptions& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("text", &options.text, "Text to show.", {.required = true});
    command.Add("text_pair", &options.pair, "Second text, for models of pairs.");
    command.Add("--out", &options.infer.out,
        "HTML file to write, or - for standard output; it loads nothing and has no scripts.",
        {.required = true});
    command.Add("--force", &options.infer.force, "Replace an existing file.");
  };
  app.AddCommand<AttentionOptions>("attention",
      "Draw the attention maps of a text as an HTML page, by layer and head.",
      "  cloze attention --model runs/sst2 --out page.html 'A fine film.'\n"
      "  cloze attention --model runs/pairs --out pair.html 'A man eats.' 'He is hungry.' --force",
      declare, DrawAttention);
}

}  // namespace cloze
