// HTTP: connections and requests, with libmicrohttpd.
#ifndef CLOZE_TOOLS_SERVE_SERVER_H_
#define CLOZE_TOOLS_SERVE_SERVER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tools/serve/routes.h"
#include "tools/serve/sockets.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace cloze {

struct ServerOptions {
  std::string key;           // that requests need; "": none
  std::string allow_origin;  // Access-Control-Allow-Origin; "": none
  double timeout = 30;       // seconds for a client to send a request, and to take an answer
  int64_t connections = 4096;
  bool quiet = false;  // else a JSON line to stderr for each request
};

// A connection. Its times are those of SteadySeconds.
struct ServedConnection {
  int fd = -1;
  std::atomic<double> deadline = 0;  // when the client must have done its part
};

class Exchange;

// Threads of libmicrohttpd read requests and write answers; while a model works, their connections
// are suspended.
class Server {
 public:
  // Answers on `sockets` until Drain. `context` and what it names, and `metrics`, must outlive the
  // server. kLimit or kIo if the threads do not start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(std::vector<ListeningSocket> sockets,
      const ServerOptions& options, const ServeContext& context, ServeMetrics* metrics);
  // Requires that no request waits for a model: call Drain and ServedModels::Finish first.
  ~Server();

  // Closes connections that are past their deadline. To be called about each second.
  void CloseLate();
  // Accepts no more connections, refuses new requests, and returns when all others are answered or
  // their clients are late.
  void Drain();

 private:
  friend class Exchange;
  Server(const ServerOptions& options, const ServeContext& context, ServeMetrics* metrics)
      : options_(options), context_(context), metrics_(metrics) {}
  absl::Status StartDaemon(const ListeningSocket& socket);
  void OnConnection(MHD_Connection* connection, void** state, bool begins);

  const ServerOptions options_;
  const ServeContext context_;
  ServeMetrics* const metrics_;
  std::vector<ListeningSocket> sockets_;
  std::vector<MHD_Daemon*> daemons_;
  std::mutex mutex_;  // of connections_
  std::set<ServedConnection*> connections_;
  std::atomic<int64_t> open_requests_ = 0;
  std::atomic<bool> draining_ = false;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_SERVER_H_
