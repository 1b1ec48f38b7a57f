// Sockets and as much of HTTP as a browser needs to show a page.
#include "cli/processes/local_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

constexpr size_t kLargestRequest = 16384;
constexpr int kPatience = 2;  // seconds for a request or an answer

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes))
    throw Error(ErrorKind::kFailed, "OT4502", "the system gives no random numbers");
  std::string out;
  for (unsigned char b : bytes) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

bool same(const std::string& a, const std::string& b) {  // takes as long for any two texts
  if (a.size() != b.size()) return false;
  int differs = 0;
  for (size_t k = 0; k < a.size(); ++k) differs |= a[k] ^ b[k];
  return differs == 0;
}

std::string decoded(const std::string& s) {
  std::string out;
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (size_t k = 0; k < s.size(); ++k) {
    if (s[k] == '%' && k + 2 < s.size() && digit(s[k + 1]) >= 0 && digit(s[k + 2]) >= 0) {
      out += char(digit(s[k + 1]) * 16 + digit(s[k + 2]));
      k += 2;
    } else {
      out += s[k] == '+' ? ' ' : s[k];
    }
  }
  return out;
}

std::map<std::string, std::string> parameters(const std::string& query) {
  std::map<std::string, std::string> out;
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size()), equals = query.find('=', at);
    if (equals < end)
      out[decoded(query.substr(at, equals - at))] =
          decoded(query.substr(equals + 1, end - equals - 1));
    at = end + 1;
  }
  return out;
}

const char* words_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 500:
      return "Internal Server Error";
    default:
      return "Bad Request";
  }
}

std::string response(const Answer& a) {
  return cat("HTTP/1.1 ", a.status, " ", words_of(a.status), "\r\nContent-Type: ", a.type,
             "\r\nContent-Length: ", a.body.size(),
             "\r\nConnection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer"
             "\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; "
             "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
             "connect-src 'self'; frame-ancestors 'none'\r\n\r\n",
             a.body);
}

void wait_at_most(int connection) {
  const timeval patience{kPatience, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

}  // namespace

LocalServer::LocalServer(int port, Handler handler)
    : token_(random_token()), handler_(std::move(handler)) {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (socket_ >= 0) setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(uint16_t(port));
  socklen_t size = sizeof at;
  if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      listen(socket_, 16) != 0 || getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size)) {
    const int why = errno;
    if (socket_ >= 0) close(socket_);
    if (why == EADDRINUSE)
      throw Error(ErrorKind::kFailed, "OT4501", cat("port ", port, " is in use by another program"),
                  "onnxtrain board --port 0   takes any free port");
    throw Error(ErrorKind::kFailed, "OT4502",
                cat("cannot listen on port ", port, ": ", std::strerror(why)),
                "onnxtrain board --port 0   takes any free port");
  }
  port_ = ntohs(at.sin_port);
}

LocalServer::~LocalServer() { close(socket_); }

std::string LocalServer::address() const {
  return cat("http://127.0.0.1:", port_, "/?token=", token_);
}

void LocalServer::run(const volatile std::sig_atomic_t& stop) {
  while (!stop) {
    pollfd waiting{socket_, POLLIN, 0};
    if (poll(&waiting, 1, 500) <= 0) continue;  // time to look at `stop`
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    wait_at_most(connection);
    serve(connection);
    close(connection);
  }
}

void LocalServer::serve(int connection) const {
  std::string request;
  char part[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = recv(connection, part, sizeof part, 0);
    if (n <= 0 || request.size() + size_t(n) > kLargestRequest) return;
    request.append(part, size_t(n));
  }
  const std::string out = response(answer(request));
  for (size_t sent = 0; sent < out.size();) {
    const ssize_t n = send(connection, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += size_t(n);
  }
}

Answer LocalServer::answer(const std::string& request) const {
  auto refused = [](int status, const char* why) { return Answer{status, "text/plain", why}; };
  const std::string line = request.substr(0, request.find("\r\n"));
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return refused(400, "not a request\n");
  if (line.substr(0, first) != "GET") return refused(405, "only GET\n");
  const std::string target = line.substr(first + 1, second - first - 1);
  const size_t mark = std::min(target.find('?'), target.size());
  auto given = parameters(mark < target.size() ? target.substr(mark + 1) : std::string());
  if (!same(given["token"], token_))
    return refused(403, "the address needs the token that `onnxtrain board` printed\n");
  given.erase("token");
  try {
    return handler_(decoded(target.substr(0, mark)), given);
  } catch (const Error& e) {  // a run that is being written or removed
    return Answer{404, "text/plain", std::string(e.what()) + "\n"};
  } catch (const std::exception& e) {
    return Answer{500, "text/plain", cat("inside the server: ", e.what(), "\n")};
  }
}

}  // namespace onnxtrain::cli
