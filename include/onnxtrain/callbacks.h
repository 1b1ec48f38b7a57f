/* C API of onnxtrain, part of onnxtrain.h: what the library calls. Tables of functions for text,
 * for operators that this library does not know, and for runtimes that make the steps. */
#ifndef ONNXTRAIN_CALLBACKS_H_
#define ONNXTRAIN_CALLBACKS_H_

#include "onnxtrain/onnxtrain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- text: who makes token ids of it --------------------------------------------------------- */
/* Callbacks return a failure as said; `error` then points to its text (the caller's, read at once).
 */
typedef struct ot_tokenizer {
  size_t size;
  void* context;
  /* The tokenizer of this tokenizer.json (its content, and the file it came from) is the one that
   * encode uses from now on. Returns how many tokens it knows; -1: failure. */
  int64_t (*open)(void* context, const char* content, const char* name, const char** error);
  /* n texts in UTF-8 as token ids [n, length], cut or padded, and a mask with 1 for every token
   * that is there. 0: done. */
  int (*encode)(void* context, size_t n, const char* const* texts, int64_t length, int64_t* ids,
                int64_t* mask, const char** error);
} ot_tokenizer;
/* Of the whole process; *t is copied. NULL: text is an error, as it is without a call. */
OT_API ot_status ot_set_tokenizer(const ot_tokenizer* t);

/* ---- other runtimes for operators that this library does not know --------------------------- */
/* Neighbouring nodes come as one ONNX model. Callbacks return 0, or non-zero for a failure, whose
 * text `error` then points to (the caller's, read at once). They may be called from any thread. */
typedef struct ot_fallback {
  size_t size;
  void* context;
  const char* name; /* for messages */
  /* about: JSON list of the model's nodes (domain, type, name, inputs, outputs, attributes,
   * gradient). Where `gradient` is true, the operator X_grad stands for a registered gradient:
   * inputs, outputs and dY of X -> dX. outputs: room for n_outputs handles, the library's
   * afterwards. */
  int (*run)(void* context, const void* model, size_t model_size, const char* about,
             size_t n_inputs, ot_value* const* inputs, size_t n_outputs, ot_value** outputs,
             const char** error);
  /* 1: `run` computes X_grad of this operator, 0: it does not, negative: a failure. May be NULL. */
  int (*has_gradient)(void* context, const char* domain, const char* op);
} ot_fallback;
/* Of the whole process, for models that are read from now on; *f is copied, its context must
 * outlive them. NULL: unknown operators are an error, as they are without a call. */
OT_API ot_status ot_set_fallback(const ot_fallback* f);

/* ---- engines of a trainer -------------------------------------------------------------------- */
/* Another runtime that makes the steps (docs/engines.md). The functions are called on the thread of
 * the step or the fit; each returns 0, or non-zero for a failure, whose text `error` then points to
 * (the caller's, read at once). */
typedef struct ot_engine {
  size_t size;
  void* context;
  /* The training as it stands, before the first step and when the state was changed elsewhere. The
   * model is the callee's to free. */
  int (*begin)(void* context, ot_model* training, uint64_t step, const char** error);
  /* One step of every section; values are the library's, read during the call. */
  int (*step)(void* context, size_t n, const char* const* names, ot_value* const* values,
              double* loss, const char** error);
  /* State variables: calls take(sink, name, value) for each; the value is copied. */
  int (*state)(void* context, void (*take)(void* sink, const char* name, const ot_value* value),
               void* sink, const char** error);
  /* Takes the last step back; non-zero: it cannot. May be NULL. */
  int (*undo)(void* context);
  /* What validation computes (ot_make_step with OT_EVALUATION) on these rows, with the state as it
   * is now: calls take(sink, "loss" or "scores", value) for what there is. OT_NOT_EVALUATED: it
   * cannot, `error` says why, and the library evaluates. May be NULL. */
  int (*evaluate)(void* context, size_t n, const char* const* names, ot_value* const* values,
                  void (*take)(void* sink, const char* name, const ot_value* value), void* sink,
                  const char** error);
} ot_engine;
#define OT_NOT_EVALUATED (-1)
/* *engine is copied; its context must outlive the trainer. NULL: this library makes the steps. */
OT_API ot_status ot_trainer_set_engine(ot_trainer* t, const ot_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
