// What all ways to connect processes share: signs of life, an orderly end, counting what is sent.
#pragma once
#include <unistd.h>

#include <memory>

#include "distributed/communicator.hpp"
#include "distributed/heartbeat.hpp"

namespace onnxtrain {

class Group : public Communicator {
 public:
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Traffic traffic() const override { return traffic_; }

  // Processes that are silent for `timeout` seconds count as lost from now on.
  void watch(double timeout) {
    if (heartbeat_) return heartbeat_->set_timeout(timeout);
    heartbeat_ = std::make_unique<Heartbeat>(*this, timeout);
    heartbeat_->start();
  }
  // An orderly end of the connection. The processes watch each other until leave().
  void end() {
    if (heartbeat_) heartbeat_->end_together();
    close();
  }
  // This process ends.
  void leave() {
    if (heartbeat_) heartbeat_->leave_in_order();
    heartbeat_ = nullptr;
  }
  [[noreturn]] void abort(int code) override {
    if (heartbeat_) heartbeat_->say_failed();
    usleep(100000);
    end_others(code);
    _exit(code);
  }

 protected:
  virtual void close() = 0;
  virtual void end_others(int code) = 0;
  void count(size_t bytes, int messages) {
    traffic_.bytes += bytes;
    traffic_.messages += uint64_t(messages);
  }
  int rank_ = 0, size_ = 1;

 private:
  Traffic traffic_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace onnxtrain
