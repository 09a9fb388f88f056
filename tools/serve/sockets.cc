#include "tools/serve/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace cloze {
namespace {

constexpr int kBacklog = 4096;  // the kernel has a limit of its own

// An address of any family.
union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un local;
};

bool IsLoopback(const Address& address) {
  if (address.any.sa_family == AF_INET)
    return (ntohl(address.v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  return address.any.sa_family == AF_UNIX || IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
}

// Sets the name of a socket and if it is local.
void Describe(ListeningSocket* out) {
  Address address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(out->fd.get(), &address.any, &size) != 0) return;
  out->local = IsLoopback(address);
  char text[INET6_ADDRSTRLEN] = "";
  if (address.any.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text));
    out->name = absl::StrCat(text, ":", ntohs(address.v4.sin_port));
  } else if (address.any.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text));
    out->name = absl::StrCat("[", text, "]:", ntohs(address.v6.sin6_port));
  } else {
    out->name = absl::StrCat("unix:", address.local.sun_path);
  }
}

absl::StatusOr<ListeningSocket> Bind(
    const std::string& where, const Address& address, socklen_t size) {
  ListeningSocket out;
  const int family = address.any.sa_family, on = 1;
  out.fd = Fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out.fd.ok()) return Errno(Exit::kCannotCreate, "cannot make a socket", where);
  if (family != AF_UNIX) ::setsockopt(out.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(out.fd.get(), &address.any, size) != 0 || ::listen(out.fd.get(), kBacklog) != 0)
    return Errno(Exit::kCannotCreate, "cannot listen", where);
  Describe(&out);
  return out;
}

absl::StatusOr<ListeningSocket> ListenOnPath(const std::string& where, const std::string& path) {
  Address address = {};
  address.local.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.local.sun_path))
    return Error(Exit::kUsage, "--listen ", QuotePath(where), ": expected a path of 1 to ",
        sizeof(address.local.sun_path) - 1, " bytes");
  std::memcpy(address.local.sun_path, path.data(), path.size());
  // A socket that nobody answers is of a dead process.
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool dead =
      ::connect(probe.get(), &address.any, sizeof(address.local)) != 0 && errno == ECONNREFUSED;
  if (dead) ::unlink(path.c_str());
  absl::StatusOr<ListeningSocket> out = Bind(where, address, sizeof(address.local));
  if (out.ok()) out->path = path;
  return out;
}

}  // namespace

absl::StatusOr<ListeningSocket> ListenOn(const std::string& where) {
  absl::string_view path = where;
  if (absl::ConsumePrefix(&path, "unix:")) return ListenOnPath(where, std::string(path));
  const size_t colon = where.rfind(':');
  std::string host = where.substr(0, colon);
  Address address = {};
  uint32_t port = 0;
  const bool has_port =
      colon != where.npos && absl::SimpleAtoi(where.substr(colon + 1), &port) && port < 65536;
  if (host == "localhost") host = "127.0.0.1";
  if (has_port && ::inet_pton(AF_INET, host.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
    return Bind(where, address, sizeof(address.v4));
  }
  if (has_port && host.size() > 2 && host.front() == '[' && host.back() == ']' &&
      ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address.v6.sin6_addr) == 1) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
    return Bind(where, address, sizeof(address.v6));
  }
  return Error(Exit::kUsage, "--listen ", QuotePath(where),
      ": expected ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080, or unix:PATH");
}

absl::StatusOr<std::vector<ListeningSocket>> InheritedSockets() {
  constexpr int kFirst = 3;
  std::vector<ListeningSocket> out;
  const char *pid = std::getenv("LISTEN_PID"), *fds = std::getenv("LISTEN_FDS");
  int64_t process = 0, count = 0;
  if (pid == nullptr || fds == nullptr || !absl::SimpleAtoi(pid, &process) ||
      process != ::getpid() || !absl::SimpleAtoi(fds, &count))
    return out;
  for (int fd = kFirst; fd < kFirst + count; ++fd) {
    ListeningSocket& socket = out.emplace_back();
    socket.fd = Fd(fd);
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
      return Error(Exit::kUsage, "LISTEN_FDS: descriptor ", fd, ": expected a listening socket");
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    Describe(&socket);
  }
  return out;
}

}  // namespace cloze
