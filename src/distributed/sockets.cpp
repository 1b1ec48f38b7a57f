// Exchanges over pairs of sockets. Two per pair of processes: what goes over one of them goes in
// the order in which all ranks begin it, so that no message needs a name.
#include "distributed/sockets.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>

#include "core/error.hpp"

namespace onnxtrain {

SocketEnds make_sockets(int n) {
  SocketEnds all;
  all.of_rank.assign(size_t(n), std::vector<std::array<int, 2>>(size_t(n), {-1, -1}));
  for (size_t a = 0; a < size_t(n); ++a)
    for (size_t b = a + 1; b < size_t(n); ++b)
      for (size_t k = 0; k < 2; ++k) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
          throw Error(ErrorKind::kFailed, "OT5053",
                      cat("no sockets between ", n, " processes: ", std::strerror(errno)),
                      "start fewer processes, or allow more open files:  ulimit -n");
        all.of_rank[a][b][k] = pair[0];
        all.of_rank[b][a][k] = pair[1];
      }
  return all;
}

std::string socket_text(const SocketEnds& ends, int rank) {
  std::string text = std::to_string(rank);
  for (const auto& [first, second] : ends.of_rank[size_t(rank)])
    text += cat(" ", first, " ", second);
  return text;
}

const GivenSockets& given_sockets() {
  static const GivenSockets given = [] {
    GivenSockets g;
    const char* text = std::getenv(kSocketsVariable);
    if (!text || !*text) return g;
    std::istringstream in(text);
    in >> g.rank;
    for (std::array<int, 2> e{}; in >> e[0] >> e[1];) g.ends.push_back(e);
    unsetenv(kSocketsVariable);
    if (g.rank < 0 || g.rank >= int(g.ends.size())) return GivenSockets();
    for (const auto& pair : g.ends)
      for (int fd : pair)
        if (fd >= 0 && (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0))
          return GivenSockets();  // somebody else's environment
    return g;
  }();
  return given;
}

namespace {

constexpr size_t kExchanges = 0, kCollections = 1;

class Sockets final : public Group {
 public:
  explicit Sockets(const GivenSockets& given) : ends_(given.ends) {
    rank_ = given.rank;
    size_ = int(given.ends.size());
    queues_.resize(ends_.size());
    left_.assign(kPending, -1);
  }

  void all_gather(const void* mine, size_t bytes, void* all) override {
    const Handle h = take();
    auto* to = static_cast<char*>(all);
    for (size_t r = 0; r < ends_.size(); ++r) {
      send(h, r, kExchanges, mine, bytes);
      receive(h, r, kExchanges, to + r * bytes, bytes);
    }
    std::memcpy(to + size_t(rank_) * bytes, mine, bytes);
    wait(h);
    count(bytes * size_t(size_ - 1), size_ - 1);
  }
  void broadcast(void* data, size_t bytes, int root) override {
    const Handle h = take();
    if (rank_ != root) receive(h, size_t(root), kExchanges, data, bytes);
    for (size_t r = 0; r < ends_.size() && rank_ == root; ++r) send(h, r, kExchanges, data, bytes);
    wait(h);
    if (rank_ == root) count(bytes * size_t(size_ - 1), size_ - 1);
  }
  Handle start_exchange(const void* from, const size_t* offsets, void* to,
                        const size_t* at) override {
    const Handle h = take();
    const auto* out = static_cast<const char*>(from);
    auto* in = static_cast<char*>(to);
    for (size_t r = 0; r < ends_.size(); ++r) {
      send(h, r, kExchanges, out + offsets[r], offsets[r + 1] - offsets[r]);
      receive(h, r, kExchanges, in + at[r], at[r + 1] - at[r]);
    }
    const auto me = size_t(rank_);
    std::memcpy(in + at[me], out + offsets[me], offsets[me + 1] - offsets[me]);
    count(offsets[size_] - (offsets[me + 1] - offsets[me]), size_ - 1);
    return h;
  }
  Handle start_collect(void* data, const size_t* offsets) override {
    const Handle h = take();
    auto* all = static_cast<char*>(data);
    const auto me = size_t(rank_);
    for (size_t r = 0; r < ends_.size(); ++r) {
      send(h, r, kCollections, all + offsets[me], offsets[me + 1] - offsets[me]);
      receive(h, r, kCollections, all + offsets[r], offsets[r + 1] - offsets[r]);
    }
    count((offsets[me + 1] - offsets[me]) * size_t(size_ - 1), size_ - 1);
    return h;
  }
  bool test(Handle h) override {
    if (left_[size_t(h)] > 0) pump();
    if (left_[size_t(h)] > 0) return false;
    left_[size_t(h)] = -1;
    return true;
  }

 private:
  struct Piece {
    char* data;
    size_t left;
    Handle of;
  };
  struct Queue {
    std::array<std::deque<Piece>, 2> out, in;
  };

  Handle take() {
    for (size_t k = 0; k < left_.size(); ++k)
      if (left_[k] < 0) {
        left_[k] = 0;
        return Handle(k);
      }
    OT_ASSERT(false);
  }
  void send(Handle h, size_t to, size_t which, const void* data, size_t bytes) {
    if (int(to) != rank_) add(queues_[to].out[which], h, const_cast<void*>(data), bytes);
  }
  void receive(Handle h, size_t from, size_t which, void* data, size_t bytes) {
    if (int(from) != rank_) add(queues_[from].in[which], h, data, bytes);
  }
  void add(std::deque<Piece>& queue, Handle h, void* data, size_t bytes) {
    if (bytes == 0) return;
    queue.push_back({static_cast<char*>(data), bytes, h});
    ++left_[size_t(h)];
  }

  // Moves what can be moved. A connection that is lost moves nothing any more: the heartbeat, or
  // the launcher, ends this process.
  void pump() {
    for (size_t r = 0; r < ends_.size(); ++r)
      for (size_t which = 0; which < 2; ++which) {
        const int fd = ends_[r][which];
        if (fd < 0) continue;
        move(queues_[r].out[which],
             [&](char* p, size_t n) { return ::send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT); });
        move(queues_[r].in[which],
             [&](char* p, size_t n) { return ::recv(fd, p, n, MSG_DONTWAIT); });
      }
  }
  template <class F>
  void move(std::deque<Piece>& queue, const F& some) {
    while (!queue.empty()) {
      Piece& p = queue.front();
      const ssize_t n = some(p.data, p.left);
      if (n <= 0) return;
      p.data += n;
      p.left -= size_t(n);
      if (p.left > 0) continue;
      --left_[size_t(p.of)];
      queue.pop_front();
    }
  }

  void close() override {
    for (const auto& pair : ends_)
      for (int fd : pair)
        if (fd >= 0) ::close(fd);
  }
  void end_others(int) override {}  // the launcher sees this process fail

  std::vector<std::array<int, 2>> ends_;
  std::vector<Queue> queues_;  // by rank
  std::vector<int> left_;      // by handle: pieces under way; -1: free
};

}  // namespace

std::unique_ptr<Group> socket_group(const GivenSockets& given) {
  return std::make_unique<Sockets>(given);
}

}  // namespace onnxtrain
