/* Preloaded by tests: the k-th call (FAIL_IO=k) of write, fsync, rename or link on a file fails as
 * on a full disk, and so do all later ones; a write that fails first puts half of its bytes there,
 * as the last room of a disk is used up. FAIL_ALLOC=k lets the k-th large allocation fail once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static atomic_long io_calls, alloc_calls;

static long limit_of(const char* name) {
  const char* v = getenv(name);
  return v ? atol(v) : 0;
}

static int io_fails(void) {
  static long limit = -1;
  if (limit < 0) limit = limit_of("FAIL_IO");
  if (limit == 0 || atomic_fetch_add(&io_calls, 1) + 1 < limit) return 0;
  errno = ENOSPC;
  return 1;
}

ssize_t write(int fd, const void* p, size_t n) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  static atomic_int used_up;
  if (fd <= 2 || !io_fails()) return real(fd, p, n);
  return n > 1 && !atomic_exchange(&used_up, 1) ? real(fd, p, n / 2) : -1;
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return io_fails() ? -1 : real(fd);
}

int rename(const char* a, const char* b) {
  static int (*real)(const char*, const char*);
  if (!real) real = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  return io_fails() ? -1 : real(a, b);
}

int link(const char* a, const char* b) {
  static int (*real)(const char*, const char*);
  if (!real) real = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "link");
  return io_fails() ? -1 : real(a, b);
}

/* Large ones only: the C++ runtime itself cannot live without its small ones. */
static int alloc_fails(size_t n) {
  static long limit = -1;
  static size_t least;
  if (limit < 0) {
    least = (size_t)limit_of("FAIL_ALLOC_BYTES");
    limit = limit_of("FAIL_ALLOC");
  }
  return limit > 0 && n >= least && atomic_fetch_add(&alloc_calls, 1) + 1 == limit;
}

int posix_memalign(void** p, size_t a, size_t n) {
  static int (*real)(void**, size_t, size_t);
  if (!real) real = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
  return alloc_fails(n) ? ENOMEM : real(p, a, n);
}

void* aligned_alloc(size_t a, size_t n) {
  static void* (*real)(size_t, size_t);
  if (!real) real = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
  if (alloc_fails(n)) {
    errno = ENOMEM;
    return NULL;
  }
  return real(a, n);
}

extern void* __libc_malloc(size_t);
void* malloc(size_t n) {
  if (alloc_fails(n)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(n);
}
