/* C API of onnxtrain: the stable boundary. All symbols begin with ot_. */
#ifndef ONNXTRAIN_ONNXTRAIN_H_
#define ONNXTRAIN_ONNXTRAIN_H_

#ifdef ONNXTRAIN_BUILDING
#define OT_API __attribute__((visibility("default")))
#else
#define OT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, for example "0.1.0"; static storage. */
OT_API const char* ot_version(void);

#ifdef __cplusplus
}
#endif

#endif
