// A web server for one person on this machine: loopback only, GET only, every address needs the
// token that the URL carries. One request at a time.
#pragma once
#include <csignal>
#include <functional>
#include <map>
#include <string>

namespace onnxtrain::cli {

struct Answer {
  int status = 200;
  std::string type = "text/html; charset=utf-8", body;
};

class LocalServer {
 public:
  // path without the query, and the query's parameters but the token
  using Handler =
      std::function<Answer(const std::string& path, const std::map<std::string, std::string>&)>;
  // port 0: any free one. OT4501 when the port is taken, OT4502 when it cannot be had.
  LocalServer(int port, Handler handler);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;
  std::string address() const;  // http://127.0.0.1:PORT/?token=...
  void run(const volatile std::sig_atomic_t& stop);

 private:
  void serve(int connection) const;
  Answer answer(const std::string& request) const;
  int socket_ = -1, port_ = 0;
  std::string token_;
  Handler handler_;
};

}  // namespace onnxtrain::cli
