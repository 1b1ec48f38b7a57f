// A star of TCP connections around rank 0, which watches all; everybody watches rank 0.
#include "distributed/heartbeat.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace onnxtrain {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kAlive = 'h', kGoodbye = 'e', kFailed = 'q', kLost = 'F', kClose = 'c', kLeave = 'l';
constexpr int kAddresses = 8;

struct Card {  // what every process tells of itself
  std::array<char, 128> host{};
  std::array<uint32_t, kAddresses> addresses{};
  int32_t port = 0, pid = 0;
};

// Those of this host that others may reach, the loopback last.
void own_addresses(Card& card) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  size_t n = 0;
  for (const bool loopback : {false, true})
    for (const ifaddrs* a = all; a && n < kAddresses; a = a->ifa_next) {
      if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET) continue;
      const auto* in = reinterpret_cast<const sockaddr_in*>(a->ifa_addr);
      if ((ntohl(in->sin_addr.s_addr) >> 24 == 127) != loopback) continue;
      card.addresses[n++] = in->sin_addr.s_addr;
    }
  freeifaddrs(all);
}

int connect_to(const Card& card, bool same_host) {
  for (uint32_t address : card.addresses) {
    if (address == 0 || (ntohl(address) >> 24 == 127 && !same_host)) continue;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = address;
    to.sin_port = htons(uint16_t(card.port));
    const timeval patience{3, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
    close(fd);
  }
  return -1;
}

}  // namespace

struct Heartbeat::Impl {
  struct Peer {
    int rank = 0, fd = -1;
    Clock::time_point heard = Clock::now(), goodbye;
    std::atomic<bool> over = false;  // said goodbye; it is watched until it has left
    std::atomic<bool> gone = false;  // its process has ended
  };

  Impl(Communicator& c, double timeout) : rank(c.rank()), timeout_s(timeout) {
    Card mine;
    gethostname(mine.host.data(), mine.host.size() - 1);
    mine.pid = int32_t(getpid());
    own_addresses(mine);
    int listener = -1;
    if (rank == 0) listener = listen_here(mine);
    cards.resize(size_t(c.size()));
    c.all_gather(&mine, sizeof mine, cards.data());
    if (rank == 0)
      accept_all(listener, c.size() - 1);
    else
      join(c);
    watching = this;
    static std::once_flag told;
    std::call_once(told, [] { pthread_atfork(nullptr, nullptr, close_in_child); });
  }

  // The others know this process by now, and learn how it ends.
  void start() {
    if (peers.empty()) return;
    thread = std::thread([this] {
      sigset_t all;  // signals are for the threads that train
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      watch();
    });
  }

  ~Impl() {
    watching = nullptr;
    stop = true;
    if (thread.joinable()) thread.join();
    for (Peer& p : peers)
      if (p.fd >= 0) close(p.fd);
  }

  // The end of a connection says that its process has ended: a child must not keep it open.
  static void close_in_child() {
    if (!watching) return;
    for (const Peer& p : watching->peers)
      if (p.fd >= 0) close(p.fd);
  }

  static int listen_here(Card& mine) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t n = sizeof any;
    if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&any), n) == 0 && listen(fd, 512) == 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&any), &n) == 0)
      mine.port = ntohs(any.sin_port);
    return fd;
  }

  void accept_all(int listener, int count) {
    const auto end = Clock::now() + std::chrono::duration<double>(10 + timeout_s);
    while (int(peers.size()) < count && Clock::now() < end && listener >= 0) {
      pollfd p{listener, POLLIN, 0};
      if (poll(&p, 1, 500) <= 0) continue;
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      int32_t who = 0;
      if (fd < 0) continue;
      const timeval patience{5, 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      if (recv(fd, &who, sizeof who, MSG_WAITALL) != sizeof who || who < 1 || who > count) {
        close(fd);
        continue;
      }
      add(who, fd);
    }
    if (listener >= 0) close(listener);
    for (int r = 1; r <= count; ++r)
      if (std::none_of(peers.begin(), peers.end(), [&](const Peer& p) { return p.rank == r; }))
        say_unwatched(r);
  }

  // MPI may reach a host that TCP does not.
  void say_unwatched(int r) const {
    const std::string text =
        cat("warning[OT5032]: rank ", r, " on host ", cards[size_t(r)].host.data(),
            " made no TCP connection to rank 0 on host ", cards[0].host.data(), ", port ",
            cards[0].port,
            ": if one of the two stops, the other waits for ever\n  help: let TCP "
            "through between the hosts (ip_local_port_range has the ports)\n");
    (void)!write(STDERR_FILENO, text.data(), text.size());
  }

  void join(const Communicator& c) {
    const bool same = std::strcmp(cards[0].host.data(), cards[size_t(c.rank())].host.data()) == 0;
    const int fd = connect_to(cards[0], same);
    if (fd < 0) return;
    const int32_t who = rank;
    if (::send(fd, &who, sizeof who, MSG_NOSIGNAL) == sizeof who) add(0, fd);
  }

  void add(int who, int fd) {
    Peer& p = peers.emplace_back();
    p.rank = who;
    p.fd = fd;
  }

  void tell(char what) {
    const std::lock_guard lock(sending);
    for (const Peer& p : peers)
      if (p.fd >= 0)  // who has said goodbye still watches till the end
        (void)::send(p.fd, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Silence is counted from what was heard to the moment that poll returned. Where this process
  // itself stood still (SIGSTOP, a suspended machine) the silence is its own, and what waits in the
  // sockets is read first.
  void watch() {
    auto next = Clock::now();
    std::vector<pollfd> polled;
    auto before = Clock::now();
    while (!stop) {
      if (Clock::now() >= next) {
        tell(kAlive);
        next = Clock::now() + std::chrono::milliseconds(500);
      }
      polled.clear();
      for (const Peer& p : peers) polled.push_back({p.gone ? -1 : p.fd, POLLIN, 0});
      const bool polled_all = poll(polled.data(), polled.size(), 100) >= 0;
      const auto now = Clock::now();
      const bool stood_still = now - before > std::chrono::seconds(2);
      before = now;
      for (size_t k = 0; k < peers.size(); ++k) {
        Peer& p = peers[k];
        const std::chrono::duration<double> ended = now - p.goodbye;
        if (p.over && ended.count() > timeout_s && Communicator::waiting_seconds() > timeout_s)
          lost(p, cat("has ended its training, but rank ", rank, " still waits for it"));
        if (p.gone) continue;
        if (stood_still) p.heard = now;
        if (polled_all && polled[k].revents != 0) listen_to(p);
        const std::chrono::duration<double> silent = now - p.heard;
        if (!p.gone && silent.count() > timeout_s)
          lost(p, cat("gave no sign of life for ", timeout_s.load(), " s (stopped?)"));
      }
    }
  }

  void listen_to(Peer& p) {
    char text[64];
    const ssize_t n = recv(p.fd, text, sizeof text, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0 && p.over) {
      p.gone = true;
      return;
    }
    if (n <= 0) return lost(p, "ended without a word (killed, or out of memory)");
    p.heard = Clock::now();
    for (ssize_t k = 0; k < n; ++k) {
      if (text[k] == kClose) may_close = true;
      if (text[k] == kLeave) may_leave = true;
      if (text[k] == kGoodbye) {
        p.goodbye = p.heard;
        p.over = true;
      }
      if (text[k] == kFailed || text[k] == kLost) {  // it was told by somebody
        tell(kLost);
        leave();
      }
    }
  }

  // A launcher that loses a process while another one is already closing its MPI may never end
  // (Open MPI 4 with PMIx 4): nobody closes before all have said goodbye.
  void close_together() {
    auto busy = [&] {
      return std::any_of(peers.begin(), peers.end(), [](const Peer& p) { return !p.over; });
    };
    while (rank == 0 ? busy() : !peers.empty() && !may_close) usleep(1000);
    if (rank == 0) tell(kClose);
  }

  // Rank 0 leaves last: it tells the others to, and waits until their processes are no more. All
  // are watched till then; behind the last of them nobody but the launcher is left to watch.
  void leave_in_order() {
    auto others = [&] {
      return std::any_of(peers.begin(), peers.end(), [](const Peer& p) { return !p.gone; });
    };
    if (rank == 0) tell(kLeave);
    while (others() && (rank == 0 || !may_leave)) usleep(1000);
  }

  void lost(const Peer& p, const std::string& how) {
    if (stop) return;
    tell(kLost);
    const Card& card = cards[size_t(p.rank)];
    const bool speaks = rank == 0 || rank == 1;  // of those that see rank 0 die, the first
    if (speaks) {
      const std::string text = cat(
          "error[OT5030]: rank ", p.rank, " on host ", card.host.data(), " (process ", card.pid,
          ") ", how,
          "\n  help: a training goes on from its last checkpoint, if it has saved one:  onnxtrain "
          "train --resume RUN\n");
      std::fflush(stderr);
      (void)!write(STDERR_FILENO, text.data(), text.size());
    }
    leave();
  }

  [[noreturn]] static void leave() {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    _exit(1);
  }

  int rank;
  std::atomic<double> timeout_s;
  std::vector<Card> cards;
  std::deque<Peer> peers;
  std::mutex sending;
  std::atomic<bool> stop = false, may_close = false, may_leave = false;
  std::thread thread;
  static inline Impl* watching = nullptr;
};

Heartbeat::Heartbeat(Communicator& c, double timeout) : impl_(std::make_unique<Impl>(c, timeout)) {}
Heartbeat::~Heartbeat() = default;

void Heartbeat::start() { impl_->start(); }
void Heartbeat::set_timeout(double seconds) { impl_->timeout_s = seconds; }
void Heartbeat::end_together() {
  impl_->tell(kGoodbye);
  impl_->close_together();
}
void Heartbeat::leave_in_order() {
  impl_->leave_in_order();
  (void)impl_.release();  // it goes on till the process is no more
}
void Heartbeat::say_failed() { impl_->tell(kFailed); }

}  // namespace onnxtrain
