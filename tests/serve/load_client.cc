// load_client PORT CONNECTIONS REQUESTS PATH BODIES [ANSWERS]: sends the lines of the file BODIES,
// over and over, to cloze-serve, each connection one after the other, and prints a line: requests
// per second, milliseconds of the median and of the 99th percentile, failures. ANSWERS: a file for
// the first answer of each line.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Connection {
  int fd = -1;
  size_t line = 0;  // of BODIES
  Clock::time_point sent;
  std::string received;
};

struct Load {
  std::string path;
  std::vector<std::string> bodies, answers;
  std::vector<double> milliseconds;
  size_t requests = 0, started = 0, failures = 0;
};

int Connect(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    std::perror("load_client: connect");
    std::exit(1);
  }
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

void Send(Load& load, Connection& connection) {
  connection.line = load.started++ % load.bodies.size();
  const std::string& body = load.bodies[connection.line];
  const std::string request = "POST " + load.path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
  connection.sent = Clock::now();
  connection.received.clear();
  if (::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    ++load.failures;
}

// True if `received` is a whole answer, whose body begins at *body.
bool IsWhole(const std::string& received, size_t* body) {
  const size_t end = received.find("\r\n\r\n");
  const char* length = ::strcasestr(received.c_str(), "\r\nContent-Length: ");
  if (end == received.npos || length == nullptr) return false;
  *body = end + 4;
  return received.size() >= *body + std::strtoull(length + 18, nullptr, 10);
}

// Reads what has come, and sends the next request after a whole answer. False at the end.
bool Receive(Load& load, Connection& connection) {
  char buffer[65536];
  const ssize_t n = ::recv(connection.fd, buffer, sizeof(buffer), 0);
  if (n <= 0) {
    ++load.failures;
    return false;
  }
  connection.received.append(buffer, n);
  size_t body;
  if (!IsWhole(connection.received, &body)) return true;
  const std::chrono::duration<double, std::milli> took = Clock::now() - connection.sent;
  load.milliseconds.push_back(took.count());
  const bool good = connection.received.compare(0, 12, "HTTP/1.1 200") == 0;
  load.failures += !good;
  const std::string answer = connection.received.substr(body);
  std::string& first = load.answers[connection.line];
  if (first.empty()) first = answer;
  load.failures += good && answer != first;  // answers do not depend on their company
  if (load.started >= load.requests) return false;
  Send(load, connection);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  Load load;
  load.requests = std::strtoull(argv[3], nullptr, 10);
  load.path = argv[4];
  std::ifstream in(argv[5]);
  for (std::string line; std::getline(in, line);) load.bodies.push_back(line);
  load.answers.resize(load.bodies.size());
  std::vector<Connection> connections(std::strtoull(argv[2], nullptr, 10));
  const int epoll = ::epoll_create1(0);
  const auto begin = Clock::now();
  for (size_t i = 0; i < connections.size(); ++i) {
    connections[i].fd = Connect(std::atoi(argv[1]));
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event);
    Send(load, connections[i]);
  }
  for (size_t open = connections.size(); open > 0;) {
    epoll_event events[256];
    const int n = ::epoll_wait(epoll, events, 256, 30'000);
    if (n <= 0) break;
    for (int i = 0; i < n; ++i) {
      Connection& connection = connections[events[i].data.u64];
      if (Receive(load, connection)) continue;
      ::close(connection.fd);
      --open;
    }
  }
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  std::vector<double>& all = load.milliseconds;
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) { return all.empty() ? 0 : all[share * (all.size() - 1)]; };
  std::printf("%.0f requests/s, median %.2f ms, p99 %.2f ms, failures %zu\n",
      all.size() / seconds.count(), at(0.5), at(0.99),
      load.failures + (load.requests - std::min(load.requests, all.size())));
  if (argc > 6) {
    std::ofstream out(argv[6]);
    for (const std::string& answer : load.answers) out << answer << "\n";
  }
  return load.failures > 0;
}
