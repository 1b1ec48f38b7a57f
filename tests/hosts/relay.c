/* A network with latency, for kernels without netem: one tun device in each network namespace, and
 * this process between them.
 *
 *   relay DELAY_US RATE_BITS NAMESPACE...
 *
 * Namespace k (from 1) has the address 10.99.0.k on its device `net0`. A packet leaves its host at
 * RATE_BITS (0: at once) behind those before it, and arrives DELAY_US later. Prints "ready" when
 * all devices are there; ends with its standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 16, kPacket = 65536, kQueue = 1024 };

struct packet {
  uint64_t due;
  int to, size;
  unsigned char* data;
};

struct host {
  int device;
  uint64_t free_at; /* when its link has sent what it was given */
  struct packet queue[kQueue];
  unsigned head, tail;
};

static struct host hosts[kMost];

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char* what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int open_device(const char* namespace_name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", namespace_name);
  int ns = open(path, O_RDONLY);
  if (ns < 0 || setns(ns, CLONE_NEWNET) < 0) fail(path);
  close(ns);
  int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (device < 0) fail("/dev/net/tun");
  struct ifreq request;
  memset(&request, 0, sizeof request);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  strcpy(request.ifr_name, "net0");
  if (ioctl(device, TUNSETIFF, &request) < 0) fail("TUNSETIFF");
  return device;
}

/* Takes what a host sends, as long as there is room. */
static void take(struct host* h, int count, uint64_t delay, uint64_t rate) {
  unsigned char buffer[kPacket];
  while (h->tail - h->head < kQueue) {
    ssize_t size = read(h->device, buffer, sizeof buffer);
    if (size <= 0) return;
    if (size < 20 || buffer[0] >> 4 != 4) continue; /* IPv4 only */
    int to = buffer[19] - 1;
    if (buffer[16] != 10 || buffer[17] != 99 || to < 0 || to >= count) continue;
    uint64_t start = now();
    if (h->free_at > start) start = h->free_at;
    h->free_at = start + (rate ? (uint64_t)size * 8u * 1000000000u / rate : 0);
    struct packet* p = &h->queue[h->tail++ % kQueue];
    p->due = h->free_at + delay;
    p->to = to;
    p->size = (int)size;
    p->data = malloc((size_t)size);
    if (!p->data) fail("memory");
    memcpy(p->data, buffer, (size_t)size);
  }
}

/* Hands out what is due; nanoseconds until the next is, or -1. */
static int64_t give(int count) {
  int64_t wait = -1;
  for (int k = 0; k < count; ++k) {
    struct host* h = &hosts[k];
    while (h->head != h->tail) {
      struct packet* p = &h->queue[h->head % kQueue];
      uint64_t t = now();
      if (p->due > t) {
        if (wait < 0 || (int64_t)(p->due - t) < wait) wait = (int64_t)(p->due - t);
        break;
      }
      if (write(hosts[p->to].device, p->data, (size_t)p->size) < 0 && errno != EINVAL &&
          errno != EIO && errno != EAGAIN)
        fail("write");
      free(p->data);
      ++h->head;
    }
  }
  return wait;
}

int main(int argc, char** argv) {
  int count = argc - 3;
  if (count < 1 || count > kMost) {
    fprintf(stderr, "usage: relay DELAY_US RATE_BITS NAMESPACE...\n");
    return 2;
  }
  uint64_t delay = strtoull(argv[1], NULL, 10) * 1000u, rate = strtoull(argv[2], NULL, 10);
  for (int k = 0; k < count; ++k) hosts[k].device = open_device(argv[3 + k]);
  prctl(PR_SET_TIMERSLACK, 1);
  puts("ready");
  fflush(stdout);
  for (;;) {
    int64_t wait = give(count);
    struct pollfd watched[kMost + 1];
    watched[count] = (struct pollfd){.fd = 0, .events = POLLIN};
    for (int k = 0; k < count; ++k) {
      int room = hosts[k].tail - hosts[k].head < kQueue;
      watched[k] = (struct pollfd){.fd = hosts[k].device, .events = room ? POLLIN : 0};
    }
    struct timespec until = {wait / 1000000000, wait % 1000000000};
    if (ppoll(watched, (nfds_t)count + 1, wait < 0 ? NULL : &until, NULL) < 0 && errno != EINTR)
      fail("poll");
    char c;
    if (watched[count].revents && read(0, &c, 1) <= 0) return 0;
    for (int k = 0; k < count; ++k)
      if (watched[k].revents & POLLIN) take(&hosts[k], count, delay, rate);
  }
}
