/* MPI behind the table of mpi_plugin.h:  mpicc -shared -fPIC -O2 mpi_plugin.c -o
 * libonnxtrain_mpi_x.so */
#include "mpi_plugin.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* collections have a communicator of their own: their order among exchanges is not that of all
 * ranks */
static MPI_Comm comm = MPI_COMM_NULL, collections = MPI_COMM_NULL;
static int ranks = 0, initialised_here = 0;
static MPI_Request requests[OT_MPI_PENDING];
static int used[OT_MPI_PENDING];
static int* counts[OT_MPI_PENDING]; /* four lists of one number per rank */

static int start(long long given, int* rank, int* size, int* owns, char* library, size_t n) {
  int there = 0, e = MPI_Initialized(&there);
  if (e != MPI_SUCCESS) return e;
  if (!there) {
    int level = 0;
    e = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (e != MPI_SUCCESS) return e;
    initialised_here = 1;
  }
  e = MPI_Comm_dup(given < 0 ? MPI_COMM_WORLD : MPI_Comm_f2c((MPI_Fint)given), &comm);
  if (e == MPI_SUCCESS) e = MPI_Comm_dup(comm, &collections);
  if (e != MPI_SUCCESS) return e;
  MPI_Comm_rank(comm, rank);
  MPI_Comm_size(comm, size);
  ranks = *size;
  *owns = initialised_here;
  for (int k = 0; k < OT_MPI_PENDING; ++k) {
    counts[k] = malloc(sizeof(int) * 4 * (size_t)ranks);
    if (counts[k] == NULL) return MPI_ERR_NO_MEM;
  }
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  strncpy(library, text, n - 1);
  library[n - 1] = 0;
  return 0;
}

static int take(int* handle) {
  for (int k = 0; k < OT_MPI_PENDING; ++k)
    if (!used[k]) {
      used[k] = 1;
      *handle = k;
      return 0;
    }
  return MPI_ERR_OTHER;
}

static int to_counts(const size_t* offsets, int* sizes, int* places) {
  if (offsets[ranks] > INT_MAX) return MPI_ERR_COUNT;
  for (int r = 0; r < ranks; ++r) {
    sizes[r] = (int)(offsets[r + 1] - offsets[r]);
    places[r] = (int)offsets[r];
  }
  return MPI_SUCCESS;
}

static int all_gather(const void* mine, size_t bytes, void* all, int* handle) {
  int e = bytes > INT_MAX ? MPI_ERR_COUNT : take(handle);
  if (e) return e;
  return MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm,
                        &requests[*handle]);
}

static int broadcast(void* data, size_t bytes, int root, int* handle) {
  int e = bytes > INT_MAX ? MPI_ERR_COUNT : take(handle);
  if (e) return e;
  return MPI_Ibcast(data, (int)bytes, MPI_BYTE, root, comm, &requests[*handle]);
}

static int exchange(const void* send, const size_t* offsets, void* receive, const size_t* at,
                    int* handle) {
  int e = take(handle);
  if (e) return e;
  int* c = counts[*handle];
  e = to_counts(offsets, c, c + ranks);
  if (e == MPI_SUCCESS) e = to_counts(at, c + 2 * ranks, c + 3 * ranks);
  if (e) return e;
  return MPI_Ialltoallv(send, c, c + ranks, MPI_BYTE, receive, c + 2 * ranks, c + 3 * ranks,
                        MPI_BYTE, comm, &requests[*handle]);
}

static int collect(void* data, const size_t* offsets, int* handle) {
  int e = take(handle);
  if (e) return e;
  int* c = counts[*handle];
  e = to_counts(offsets, c, c + ranks);
  if (e) return e;
  return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, c, c + ranks, MPI_BYTE,
                         collections, &requests[*handle]);
}

static int test(int handle, int* done) {
  int e = MPI_Test(&requests[handle], done, MPI_STATUS_IGNORE);
  if (*done) used[handle] = 0;
  return e;
}

static void stop_all(int code) { MPI_Abort(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, code); }

static int finish(void) {
  int over = 0;
  MPI_Finalized(&over);
  if (over) return 0;
  if (collections != MPI_COMM_NULL) MPI_Comm_free(&collections);
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  return initialised_here ? MPI_Finalize() : 0;
}

__attribute__((visibility("default"))) const struct ot_mpi_plugin onnxtrain_mpi_plugin = {
    OT_MPI_PLUGIN_VERSION, start, all_gather, broadcast, exchange, collect, test, stop_all, finish};
