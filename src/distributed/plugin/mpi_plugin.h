/* The table by which onnxtrain uses MPI: plain C, so that one build of onnxtrain works with every
 * MPI library. The plug-in (mpi_plugin.c) is built once per ABI. */
#ifndef ONNXTRAIN_MPI_PLUGIN_H
#define ONNXTRAIN_MPI_PLUGIN_H
#include <stddef.h>

#define OT_MPI_PLUGIN_VERSION 2
#define OT_MPI_PLUGIN_SYMBOL "onnxtrain_mpi_plugin"
#define OT_MPI_PENDING 64

/* Functions return 0, or an error number of MPI. Handles are 0..OT_MPI_PENDING-1. */
struct ot_mpi_plugin {
  int version;
  /* communicator: a Fortran handle (MPI_Comm_c2f), or -1 for all processes. MPI is initialised
   * unless somebody has done so; *owns says who. library: text, up to n bytes. */
  int (*start)(long long communicator, int* rank, int* size, int* owns, char* library, size_t n);
  int (*all_gather)(const void* mine, size_t bytes, void* all, int* handle);
  int (*broadcast)(void* data, size_t bytes, int root, int* handle);
  int (*exchange)(const void* send, const size_t* offsets, void* receive, const size_t* at,
                  int* handle);
  int (*collect)(void* data, const size_t* offsets, int* handle);
  int (*test)(int handle, int* done);
  void (*abort)(int code);
  int (*finish)(void); /* finalises MPI where start() initialised it */
};
#endif
