#include "tools/serve/server.h"

#include <microhttpd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/system.h"
#include "tools/serve/exchange.h"

namespace cloze {
namespace {

constexpr unsigned kFlags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
constexpr size_t kConnectionMemory = 16 << 10;  // for headers, and a part of the body
constexpr unsigned kThreads = 2;                // that read requests

// Raises the limit of open files as far as allowed and returns it.
int64_t RaiseFiles() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<rlim_t>(limit.rlim_max, 1 << 20);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(std::vector<ListeningSocket> sockets,
    const ServerOptions& options, const ServeContext& context, ServeMetrics* metrics) {
  std::unique_ptr<Server> server(new Server(options, context, metrics));
  server->sockets_ = std::move(sockets);
  for (const ListeningSocket& socket : server->sockets_)
    RETURN_IF_ERROR(server->StartDaemon(socket));
  return server;
}

absl::Status Server::StartDaemon(const ListeningSocket& socket) {
  constexpr int64_t kOtherFiles = 64;
  const int64_t connections = std::min(options_.connections, RaiseFiles() - kOtherFiles);
  const auto notify = [](void* self, MHD_Connection* connection, void** state,
                          MHD_ConnectionNotificationCode code) {
    static_cast<Server*>(self)->OnConnection(
        connection, state, code == MHD_CONNECTION_NOTIFY_STARTED);
  };
  MHD_Daemon* const daemon = MHD_start_daemon(kFlags, 0, nullptr, nullptr, &Exchange::OnRequest,
      this, MHD_OPTION_LISTEN_SOCKET, socket.fd.get(), MHD_OPTION_THREAD_POOL_SIZE, kThreads,
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(std::max<int64_t>(connections, kThreads)),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionMemory, MHD_OPTION_NOTIFY_CONNECTION,
      static_cast<MHD_NotifyConnectionCallback>(notify), this, MHD_OPTION_NOTIFY_COMPLETED,
      &Exchange::OnCompleted, this, MHD_OPTION_END);
  if (daemon == nullptr)
    return Error(Exit::kLimit, socket.name, ": the threads of the server do not start");
  daemons_.push_back(daemon);
  return absl::OkStatus();
}

Server::~Server() {
  for (MHD_Daemon* daemon : daemons_) MHD_stop_daemon(daemon);
  for (const ListeningSocket& socket : sockets_)
    if (!socket.path.empty()) ::unlink(socket.path.c_str());
}

void Server::OnConnection(MHD_Connection* connection, void** state, bool begins) {
  const std::lock_guard lock(mutex_);
  if (begins) {
    auto* const served = new ServedConnection;
    served->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    served->deadline = SteadySeconds() + options_.timeout;
    connections_.insert(served);
    *state = served;
  } else {
    auto* const served = static_cast<ServedConnection*>(*state);
    connections_.erase(served);
    delete served;
  }
  metrics_->connections = std::ssize(connections_);
}

void Server::CloseLate() {
  const double now = SteadySeconds();
  const std::lock_guard lock(mutex_);
  // The descriptors are open: libmicrohttpd closes them after OnConnection.
  for (ServedConnection* connection : connections_)
    if (connection->deadline < now) ::shutdown(connection->fd, SHUT_RDWR);
}

void Server::Drain() {
  draining_ = true;
  for (MHD_Daemon* daemon : daemons_) MHD_quiesce_daemon(daemon);
  while (open_requests_ > 0) {
    CloseLate();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace cloze
