/* Counts what steps allocate once they have run: step_allocations FILE BLOCKS SYNC SHARD ROWS... of
 * all ranks' batches, one after the other. Compiled by tests/test_steps_allocate_nothing.py. What
 * oneDNN and, with -DWITH_MPI, MPI allocate for themselves does not count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static __thread int counts = 0; /* in the thread that makes the steps */
static size_t allocations = 0;

void* malloc(size_t n) {
  allocations += (size_t)counts;
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  allocations += (size_t)counts;
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  allocations += (size_t)counts;
  return __libc_realloc(p, n);
}
void* memalign(size_t align, size_t n) {
  allocations += (size_t)counts;
  return __libc_memalign(align, n);
}
void* aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void** p, size_t align, size_t n) {
  return (*p = memalign(align, n)) ? 0 : ENOMEM;
}
void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) {
  allocations += (size_t)counts;
  return (void*)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

#ifdef WITH_MPI
#include <mpi.h>
#define APART(call)          \
  const int before = counts; \
  counts = 0;                \
  const int result = call;   \
  counts = before;           \
  return result
int MPI_Iallgather(const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c,
                   MPI_Request* r) {
  APART(PMPI_Iallgather(a, n, t, b, m, u, c, r));
}
int MPI_Ialltoallv(const void* a, const int* n, const int* at, MPI_Datatype t, void* b,
                   const int* m, const int* to, MPI_Datatype u, MPI_Comm c, MPI_Request* r) {
  APART(PMPI_Ialltoallv(a, n, at, t, b, m, to, u, c, r));
}
int MPI_Iallgatherv(const void* a, int n, MPI_Datatype t, void* b, const int* m, const int* to,
                    MPI_Datatype u, MPI_Comm c, MPI_Request* r) {
  APART(PMPI_Iallgatherv(a, n, t, b, m, to, u, c, r));
}
int MPI_Test(MPI_Request* r, int* done, MPI_Status* s) { APART(PMPI_Test(r, done, s)); }
#endif

/* oneDNN's own convolutions */
int dnnl_primitive_execute(const void* primitive, void* stream, int n, const void* arguments) {
  static int (*real)(const void*, void*, int, const void*);
  const int before = counts;
  counts = 0;
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
  const int result = real(primitive, stream, n, arguments);
  counts = before;
  return result;
}

static void check(ot_status s) {
  if (s == OT_OK) return;
  fprintf(stderr, "%s: %s\n", ot_last_error().code, ot_last_error().message);
  ot_abort_processes(1);
  exit(1);
}

int main(int argc, char** argv) {
  enum { kMost = 64, kFeatures = 64 };
  static float x[kMost * kFeatures];
  static int64_t label[kMost];
  for (int k = 0; k < kMost * kFeatures; ++k) x[k] = (float)(k % 13) / 7 - 1;
  for (int k = 0; k < kMost; ++k) label[k] = k % 4;
  ot_model* model = NULL;
  ot_trainer* t = NULL;
  ot_options options = {.size = sizeof options, .threads = 1};
  ot_distributed d = {.size = sizeof d, .mode = "auto", .communicator = -1};
  d.micro_blocks = atoi(argv[2]);
  d.batch_norm = strcmp(argv[3], "sync") == 0 ? "sync" : "local";
  d.shard_optimizer = strcmp(argv[4], "shard") == 0;
  check(ot_model_load(argv[1], &model));
  check(ot_trainer_create(model, &options, &t));
  check(ot_trainer_distribute(t, &d));
  const int image = strstr(argv[1], "cnn") != NULL;
  size_t steps = 0;
  double loss = 0;
  for (int turn = 0; turn < 6; ++turn)
    for (int k = 5; k < argc; ++k) {
      const int64_t all = atoi(argv[k]), rank = ot_trainer_rank(t), ranks = ot_trainer_ranks(t);
      const int64_t rows = all * (rank + 1) / ranks - all * rank / ranks;
      const int64_t flat[] = {rows, 6}, cube[] = {rows, 2, 6, 5};
      ot_array in[2];
      for (size_t i = 0; i < 2; ++i) {
        const int is_x = strcmp(ot_trainer_input_name(t, i), "x") == 0;
        in[i] = is_x ? (ot_array){1, image ? 4 : 2, image ? cube : flat, x}
                     : (ot_array){7, 1, flat, label};
      }
      counts = turn > 2;
      const ot_status s = ot_trainer_step_arrays(t, in, -1, 1, &loss);
      counts = 0;
      check(s);
      steps += turn > 2;
    }
  char line[80];
  const int n = snprintf(line, sizeof line, "%zu allocations in %zu steps\n", allocations, steps);
  if (write(1, line, (size_t)n) != n) return 1;
  ot_trainer_free(t);
  ot_model_free(model);
  return 0;
}
