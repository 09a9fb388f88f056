// The program `cloze-serve`: options, signals, and the life of the server.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "absl/strings/ascii.h"
#include "tools/command.h"
#include "tools/serve/server.h"

namespace cloze {
namespace {

struct ServeOptions {
  std::vector<std::string> models, adapters, listen;
  std::string compute = "auto", key_file;
  ServeLimits limits;
  ServerOptions server;
};

void DeclareOptions(Command& command, ServeOptions* options) {
  command.Add("--model", &options->models,
      "Model folder: a run, a Hugging Face folder, or an adapter folder (LoRA). Repeatable; "
      "requests name one by the member \"model\". Default name: that of the folder.",
      {.type = "[NAME=]FOLDER", .repeatable = true});
  command.Add("--adapter", &options->adapters,
      "Adapter folder beside a model; with several models, MODEL:NAME=FOLDER. Repeatable; requests "
      "name one by the member \"adapter\".",
      {.type = "NAME=FOLDER", .repeatable = true});
  command.Add("--compute", &options->compute, "Type of activations, as in `cloze predict`.",
      {.choices = {"auto", "f32", "bf16", "int8"}});
  command.Add("--listen", &options->listen,
      "ADDRESS:PORT (0: a free one) or unix:PATH. Repeatable. Default: the sockets that systemd "
      "passes, else 127.0.0.1:8080.",
      {.type = "WHERE", .repeatable = true});
  command.Add("--api-key-file", &options->key_file,
      "File with a key that requests need (Authorization: Bearer KEY), but for /health. Default: "
      "the environment variable CLOZE_API_KEY, else no key.",
      {.type = "FILE"});
  command.Add("--allow-origin", &options->server.allow_origin,
      "Origin whose pages may read answers (CORS), or *. Default: none.", {.type = "ORIGIN"});
  command.Add("--max-body", &options->limits.body, "Most bytes of a request.",
      {.min = 1000, .max = 1e9, .type = "BYTES"});
  command.Add("--max-texts", &options->limits.texts, "Most texts of a request.",
      {.min = 1, .max = 100'000, .type = "N"});
  command.Add("--max-batch-tokens", &options->limits.batch_tokens,
      "Requests are joined to batches of this many tokens, of four bytes each.",
      {.min = 1, .max = 1e8, .type = "N"});
  command.Add("--max-queue", &options->limits.queue,
      "Most requests that wait for a model; others get status 429.",
      {.min = 1, .max = 1e6, .type = "N"});
  command.Add("--max-connections", &options->server.connections, "Most open connections.",
      {.min = 2, .max = 1e6, .type = "N"});
  command.Add("--timeout", &options->server.timeout,
      "Seconds for a client to send the headers of a request, its body, and to take the answer.",
      {.min = 0.1, .max = 86'400, .type = "SECONDS"});
  command.Add(
      "--quiet", &options->server.quiet, "Do not log requests (JSON lines on standard error).");
}

absl::Status SetKey(ServeOptions* options) {
  std::string& key = options->server.key;
  if (!options->key_file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options->key_file, 1 << 16));
    key = std::string(absl::StripAsciiWhitespace(text));
    if (key.empty())
      return Error(Exit::kData, QuotePath(options->key_file), ": empty: expected a key");
  } else if (const char* variable = std::getenv("CLOZE_API_KEY"); variable != nullptr) {
    key = variable;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ListeningSocket>> Sockets(const ServeOptions& options) {
  ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets, InheritedSockets());
  std::vector<std::string> listen = options.listen;
  if (listen.empty() && sockets.empty()) listen.push_back("127.0.0.1:8080");
  for (const std::string& where : listen) {
    ASSIGN_OR_RETURN(ListeningSocket socket, ListenOn(where));
    sockets.push_back(std::move(socket));
  }
  for (const ListeningSocket& socket : sockets) {
    if (!socket.local && options.server.key.empty())
      std::fprintf(stderr, "cloze-serve: warning: %s: other machines can connect, without a key\n",
          socket.name.c_str());
  }
  return sockets;
}

// The signals that end or reload the server; all threads block them, and Wait takes them.
sigset_t ServeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

// Serves until SIGTERM or SIGINT.
void Wait(Server& server, ServedModels& models) {
  const sigset_t signals = ServeSignals();
  while (true) {
    const timespec second = {1, 0};
    const int signal = ::sigtimedwait(&signals, nullptr, &second);
    if (signal == SIGINT || signal == SIGTERM) return;
    if (signal == SIGHUP) models.Reload();
    server.CloseLate();
  }
}

absl::Status Serve(ServeOptions options) {
  const sigset_t signals = ServeSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  RETURN_IF_ERROR(SetKey(&options));
  ServeMetrics metrics;
  ASSIGN_OR_RETURN(const std::unique_ptr<ServedModels> models,
      ServedModels::Open(
          options.models, options.adapters, options.compute, options.limits, &metrics));
  ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets, Sockets(options));
  std::string where;
  for (const ListeningSocket& socket : sockets)
    absl::StrAppend(&where, where.empty() ? "" : ", ", socket.name);
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
      Server::Start(std::move(sockets), options.server,
          {models.get(), &metrics, options.limits, std::string(Version()), kCommit}, &metrics));
  std::fprintf(stderr, "cloze-serve: listening on %s\n", where.c_str());
  Wait(*server, *models);
  server->Drain();
  models->Finish();
  return absl::OkStatus();
}

}  // namespace

const Program kProgram = {"cloze-serve",
    "Answers HTTP requests with models: classes, tags, vectors, filled masks. Has the routes of "
    "text-embeddings-inference and of OpenAI's embeddings. SIGHUP loads the folders anew; SIGTERM "
    "answers what is under way and ends.",
    "Examples:\n"
    "  cloze-serve --model runs/reviews\n"
    "  cloze-serve --model sst2=runs/sst2 --model st=runs/st --listen 127.0.0.1:8080\n\n"
    "Exit codes: 0 success, 2 usage, 65 data, 66 input missing, 69 CPU, 70 internal, 73 cannot "
    "listen,\n74 I/O, 76 mismatch, 77 limit.",
    /*needs_command=*/false, [](Command& root, CommandLine* line) {
      auto options = std::make_shared<ServeOptions>();
      DeclareOptions(root, options.get());
      line->run = [options] { return Serve(*options); };
      AddHelp(root);
      AddVersion(root);
    }};

}  // namespace cloze
