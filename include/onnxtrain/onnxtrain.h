/* C API of onnxtrain: the stable boundary. All symbols begin with ot_.
 *
 * Every call that can fail returns ot_status; ot_last_error() describes the last failure on the
 * calling thread. Handles are opaque and freed with their own ot_*_free; freeing NULL is allowed.
 * Strings are UTF-8. Option structs begin with their own size (set it to sizeof), so that they can
 * grow; zero means "default" everywhere. */
#ifndef ONNXTRAIN_ONNXTRAIN_H_
#define ONNXTRAIN_ONNXTRAIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef ONNXTRAIN_BUILDING
#define OT_API __attribute__((visibility("default")))
#else
#define OT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are the command line's exit codes. */
typedef enum ot_status {
  OT_OK = 0,
  OT_FAILED = 1,
  OT_USAGE = 2,
  OT_MODEL = 3,
  OT_DATA = 4,
  OT_DIVERGED = 5,
  OT_CHECKPOINT = 7
} ot_status;

/* Details of the last failure on this thread; valid until the next failing call on it. */
typedef struct ot_error_info {
  const char* code;    /* "OT1203" */
  const char* message; /* one or more lines */
  const char* hint;    /* may be empty */
} ot_error_info;
OT_API ot_error_info ot_last_error(void);

/* The library's version, for example "0.1.0"; static storage. */
OT_API const char* ot_version(void);

/* The optimizers of recipes as a JSON list: kind, class_name, help, settings with their defaults;
 * static storage. */
OT_API const char* ot_optimizers(void);

/* The functions of the domain ai.onnxtrain as a JSON object: operator to ONNX text in standard
 * operators; static storage. For programs that write training files themselves. */
OT_API const char* ot_functions(void);
/* Texts that stand for a missing number in tables, as a JSON list. */
OT_API const char* ot_missing_words(void);

/* Text made by the library (JSON, bytes of a model); free with ot_text_free. */
typedef struct ot_text ot_text;
OT_API const char* ot_text_data(const ot_text* t);
OT_API size_t ot_text_size(const ot_text* t);
OT_API void ot_text_free(ot_text* t);

/* ---- values ---------------------------------------------------------------------------------- */
typedef struct ot_value ot_value;
typedef enum ot_kind {
  OT_NONE = 0,
  OT_TENSOR = 1,
  OT_SEQUENCE = 2,
  OT_MAP = 3,
  OT_SPARSE = 4
} ot_kind;

/* A tensor over the caller's memory (not copied; element types are numbered as in ONNX; the 4- and
 * 2-bit types have one byte per element). release(context) is called when the library lets go. */
OT_API ot_status ot_value_tensor(int dtype, int rank, const int64_t* dims, void* data,
                                 void (*release)(void* context), void* context, ot_value** out);
/* The same, copied. */
OT_API ot_status ot_value_tensor_copy(int dtype, int rank, const int64_t* dims, const void* data,
                                      ot_value** out);
OT_API ot_status ot_value_strings(int rank, const int64_t* dims, const char* const* strings,
                                  const size_t* sizes, ot_value** out);
OT_API ot_status ot_value_sequence(size_t count, ot_value* const* items, int elem_dtype,
                                   ot_value** out);
OT_API ot_status ot_value_none(ot_value** out);
/* keys: int64 when int_keys is not NULL, strings otherwise. */
OT_API ot_status ot_value_map(size_t count, const int64_t* int_keys, const char* const* string_keys,
                              ot_value* const* items, ot_value** out);
OT_API void ot_value_free(ot_value* v);

OT_API ot_kind ot_value_kind(const ot_value* v);
OT_API int ot_value_dtype(const ot_value* v);
OT_API int ot_value_rank(const ot_value* v);
OT_API const int64_t* ot_value_dims(const ot_value* v);
OT_API void* ot_value_data(const ot_value* v); /* not for strings */
OT_API size_t ot_value_bytes(const ot_value* v);
OT_API const char* ot_value_string(const ot_value* v, size_t index, size_t* size);
/* Number of elements of a tensor, items of a sequence or a map. */
OT_API size_t ot_value_count(const ot_value* v);
OT_API ot_status ot_value_item(const ot_value* v, size_t index, ot_value** out);
/* Keys of a map: returns 1 and sets *i for integer keys, 0 and sets *s for strings. */
OT_API int ot_value_key(const ot_value* v, size_t index, int64_t* i, const char** s);
/* Parts of a sparse tensor. */
OT_API ot_status ot_value_sparse_parts(const ot_value* v, ot_value** values, ot_value** indices);

/* ---- models ---------------------------------------------------------------------------------- */
typedef struct ot_model ot_model;
OT_API ot_status ot_model_load(const char* path, ot_model** out);
/* The same for files that nobody changes while the model lives (deleting them is fine): all
   external data stays in its file and takes no memory until it is used. */
OT_API ot_status ot_model_load_mapped(const char* path, ot_model** out);
/* External data is looked up beneath base_dir; NULL refuses it. */
OT_API ot_status ot_model_load_bytes(const void* data, size_t size, const char* base_dir,
                                     ot_model** out);
OT_API ot_status ot_model_parse(const char* onnx_text, ot_model** out);
/* A new network for data: kind "mlp", "cnn", ...; options (JSON): data (a path; or arrays, not
 * both), target, drop, encoding, separator, task, layout, image_size, impute, scale, one_hot,
 * embed, hidden, dropout, seed, text, tokenizer, max_length, as `onnxtrain new` has them (text
 * needs ot_set_tokenizer). notes: what was decided, a JSON list of [label, text]; may be NULL. */
typedef struct ot_dataset ot_dataset;
OT_API ot_status ot_model_new(const char* kind, const ot_dataset* arrays, const char* options,
                              ot_model** out, ot_text** notes);
OT_API void ot_model_free(ot_model* m);
OT_API ot_status ot_model_save(const ot_model* m, const char* path);
/* Inference only: without any training part. */
OT_API ot_status ot_model_export(const ot_model* m, const char* path);
OT_API ot_status ot_model_bytes(const ot_model* m, int inference_only, ot_text** out);
/* Inputs, outputs, initializers, opsets, training sections as JSON. */
OT_API ot_status ot_model_info(const ot_model* m, ot_text** json);
/* What every initializer is to a training by this recipe (NULL: the defaults), as JSON: "weights"
   with name, dtype, shape, elements, role and reason; "left_out" with the weights that do not train
   although nothing freezes them. */
OT_API ot_status ot_model_weights(const ot_model* m, const char* recipe, ot_text** json);
OT_API ot_status ot_model_initializer(const ot_model* m, const char* name, ot_value** out);
OT_API ot_status ot_model_set_initializer(ot_model* m, const char* name, const ot_value* value);
/* The model's graphs, node by node, for programs that turn a model into something else: nodes with
 * their attributes, tensors, types, bindings of training steps. docs/adding-a-converter.md has the
 * form of the JSON. kept: operators that stand as they are, "Conv" or "ai.onnxtrain::Adam"; every
 * other one that has a body (a function of the file, of this library or of the standard) is
 * replaced by it. kept NULL: operators that this library computes stand. */
typedef struct ot_graphs ot_graphs;
OT_API ot_status ot_model_graphs(const ot_model* m, size_t n_kept, const char* const* kept,
                                 ot_graphs** out);
OT_API void ot_graphs_free(ot_graphs* g);
OT_API const char* ot_graphs_json(const ot_graphs* g, size_t* size); /* lives as long as g */
/* What {"tensor": index} in the JSON stands for; it shares the model's memory: do not write. */
OT_API size_t ot_graphs_tensor_count(const ot_graphs* g);
OT_API ot_status ot_graphs_tensor(const ot_graphs* g, size_t index, ot_value** out);
/* Every violation of the standard and of rules C1-C20, as a JSON list. */
OT_API ot_status ot_check_file(const char* path, ot_text** json);
OT_API ot_status ot_check_bytes(const void* data, size_t size, const char* base_dir,
                                ot_text** json);
/* Inference model -> training model. recipe: JSON, see docs/recipe.md; NULL: all defaults. */
OT_API ot_status ot_prepare(const ot_model* m, const char* recipe, ot_model** out);
/* The same when the values of the target are known, for the loss that `auto` chooses: one number
 * per row that is 0 or 1 makes two classes. */
OT_API ot_status ot_prepare_for(const ot_model* m, const char* recipe, const ot_value* target,
                                ot_model** out);

/* A training section as a plain model for other runtimes (docs/engines.md). options: JSON with
 * form, for, opset, dims, indices, recurrent, random, embed_state; NULL: all defaults. manifest:
 * JSON, docs/step-manifest.schema.json. which: a section, or OT_EVALUATION: what validation
 * computes, loss and scores (output "onnxtrain_scores") of the inference form; nothing is fed back.
 */
#define OT_EVALUATION (-1)
OT_API ot_status ot_make_step(const ot_model* m, int which, const char* options, ot_model** step,
                              ot_text** manifest);
/* The same into files: PATH, and beside it the manifest and the initial state. which < 0: every
 * section. report: JSON with files, warnings and nodes per section. */
OT_API ot_status ot_export_step(const ot_model* m, int which, const char* options, const char* path,
                                ot_text** report);
/* The entire training as one plain model (docs/engines.md). options: JSON with epochs, batch, rows,
 * loop, drop_last, valid, valid_rows, best, patience, and those of a step; NULL: all defaults.
 * manifest and report: JSON with the inputs and outputs and what they are. */
OT_API ot_status ot_make_whole(const ot_model* m, const char* options, ot_model** whole,
                               ot_text** manifest);
OT_API ot_status ot_export_whole(const ot_model* m, const char* options, const char* path,
                                 ot_text** report);

/* ---- sessions: inference --------------------------------------------------------------------- */
typedef struct ot_options {
  size_t size;
  int threads; /* 0: all cores this process may use */
  uint64_t seed;
  /* Bytes that state variables, plans and what is made while running may take together; trainers
   * compute values again instead of keeping them where needed. 0: docs/safety.md, 5. */
  uint64_t memory;
  /* Of one run or step: iterations of all its loops together, and seconds. 0: docs/safety.md, 5. */
  uint64_t loop_trips;
  double seconds;
} ot_options;
typedef struct ot_session ot_session;
OT_API ot_status ot_session_create(const ot_model* m, const ot_options* o, ot_session** out);
OT_API void ot_session_free(ot_session* s);
/* Output names: NULL for all of the model's outputs, in its order (then *n_outputs is set).
 * values: room for n_outputs handles, or for the model's number of outputs; each freed by the
 * caller. */
OT_API ot_status ot_session_run(ot_session* s, size_t n_inputs, const char* const* input_names,
                                ot_value* const* inputs, size_t n_outputs,
                                const char* const* output_names, ot_value** values);
OT_API size_t ot_session_output_count(const ot_session* s);
OT_API const char* ot_session_output_name(const ot_session* s, size_t index);

/* Gradients of outputs with respect to tensors. of: output names (NULL: all floating-point ones);
 * cotangents: one per `of`, or NULL for ones. results: one per wrt. */
OT_API ot_status ot_gradients(const ot_model* m, size_t n_inputs, const char* const* input_names,
                              ot_value* const* inputs, size_t n_of, const char* const* of,
                              ot_value* const* cotangents, size_t n_wrt, const char* const* wrt,
                              const ot_options* o, ot_value** results);

/* ---- datasets -------------------------------------------------------------------------------- */
/* A file (npy, npz, idx, csv, tsv), a folder with such files, or "synthetic:...". options: JSON
 * with part ("train" or "test"), target (a csv column) and drop, or NULL. Data without parts:
 * "test" is an error (OT2194), "train" takes all rows, and the notes of ot_dataset_info say so. */
OT_API ot_status ot_dataset_open(const char* spec, const char* options, ot_dataset** out);
/* Texts of a table's column as the numbers that a model takes there, by the word that the model's
 * metadata "onnxtrain.columns" has for it ("number", "number, $#", "date", ...); NaN for what is
 * missing. out: n numbers. */
OT_API ot_status ot_column_numbers(const char* name, const char* word, size_t n,
                                   const char* const* texts, double* out);
/* Batches that the caller makes, one after the other: one more kind of dataset, to train on
 * (ot_trainer_fit_data). Set `size` to sizeof. The functions are called on the thread of the fit.
 */
typedef struct ot_batch {
  size_t size; /* set by the library */
  size_t count;
  const char* const* names; /* of the model's inputs and targets */
  ot_value* const* values;  /* the caller's; read until the next call */
} ot_batch;
typedef struct ot_batches {
  size_t size;
  void* context;
  /* A new epoch, counted from 0; may be NULL. Non-zero: a failure, the fit ends (OT2154). */
  int (*begin)(void* context, int64_t epoch);
  /* 1: *out is the next batch; 0: the epoch is over; negative: a failure. Batches without rows are
   * passed over. */
  int (*next)(void* context, ot_batch* out);
  int64_t per_epoch; /* so many batches make an epoch; 0: until next says that it is over */
} ot_batches;
/* *source is copied; its context must outlive the dataset. */
OT_API ot_status ot_dataset_batches(const ot_batches* source, ot_dataset** out);
/* Arrays of the caller; the first dimension counts the rows. */
OT_API ot_status ot_dataset_arrays(size_t n_columns, const char* const* names,
                                   ot_value* const* columns, ot_dataset** out);
OT_API void ot_dataset_free(ot_dataset* d);
OT_API int64_t ot_dataset_rows(const ot_dataset* d);
/* Names, types and row shapes of its columns, as JSON. */
OT_API ot_status ot_dataset_info(const ot_dataset* d, ot_text** json);

/* ---- trainers -------------------------------------------------------------------------------- */
typedef struct ot_trainer ot_trainer;
OT_API ot_status ot_trainer_create(const ot_model* m, const ot_options* o, ot_trainer** out);
/* The same for a model that is not needed any more: weights that were read for it alone are not
   copied. Afterwards m is an empty model, to be freed (unless it was refused because it carries no
   training, OT1210). */
OT_API ot_status ot_trainer_take(ot_model* m, const ot_options* o, ot_trainer** out);
OT_API void ot_trainer_free(ot_trainer* t);
OT_API ot_status ot_trainer_initialize(ot_trainer* t);

/* Several processes that mpirun or srun started, and batches in blocks of rows
 * (docs/distributed.md). From then on a step takes the rows of this process, in the order of ranks;
 * fit takes all rows. */
typedef struct ot_distributed {
  size_t size;
  const char* mode;       /* "auto", "off" or "mpi"; NULL: auto */
  int micro_blocks;       /* 0: one for each process, or as many as a checkpoint had */
  double fault_timeout;   /* seconds; 0: 20 */
  int64_t communicator;   /* a Fortran handle of MPI (MPI_Comm_c2f); -1: all processes */
  const char* batch_norm; /* "local": statistics of each block; "sync": of the whole batch; NULL: as
                             a checkpoint had it, or local */
  const char* reduce_dtype; /* "float32", or "bf16": gradients between processes; NULL: float32 */
  int shard_optimizer; /* not 0: each process keeps a part of the optimizer's state; then all of
                          them call ot_trainer_save, ot_trainer_model and ot_trainer_get together */
} ot_distributed;
OT_API ot_status ot_trainer_distribute(ot_trainer* t, const ot_distributed* o);
/* This process and how many there are: 0 and 1 when it trains alone. */
OT_API int ot_trainer_rank(const ot_trainer* t);
OT_API int ot_trainer_ranks(const ot_trainer* t);
/* Bytes and messages that this process has sent to others so far. */
OT_API ot_status ot_trainer_traffic(const ot_trainer* t, uint64_t* bytes, uint64_t* messages);
/* What the launcher says: the number of this process, 0 when it was started alone. */
OT_API int ot_launch_rank(void);
/* Ends all processes of the training at once: for a program that fails in one of them. */
OT_API void ot_abort_processes(int code);
/* Memory as JSON, in bytes: state_bytes, step_bytes (plans made so far), step_bytes_without_limit,
 * nodes_computed_twice, peak_process_bytes; with a sharded optimizer optimizer_state_bytes and
 * optimizer_state_bytes_of_rank, a list. */
OT_API ot_status ot_trainer_memory(const ot_trainer* t, ot_text** json);
/* One step on these feeds. which < 0: every algorithm in list order. loss may be NULL. */
OT_API ot_status ot_trainer_step(ot_trainer* t, size_t n_inputs, const char* const* input_names,
                                 ot_value* const* inputs, int which, double* loss);
/* n steps on the same feeds in one call; loss of the last. */
OT_API ot_status ot_trainer_steps(ot_trainer* t, size_t n_inputs, const char* const* input_names,
                                  ot_value* const* inputs, uint64_t n, double* loss);
/* The quickest way to step: arrays by position, in the order of the trainer's inputs. dims and data
 * are read during the call only; data NULL: not given. From the second call with the same types on
 * nothing is allocated. */
typedef struct ot_array {
  int dtype; /* numbered as in ONNX */
  int rank;
  const int64_t* dims;
  void* data;
} ot_array;
OT_API size_t ot_trainer_input_count(const ot_trainer* t);
OT_API const char* ot_trainer_input_name(const ot_trainer* t, size_t index);
OT_API ot_status ot_trainer_step_arrays(ot_trainer* t, const ot_array* inputs, int which,
                                        uint64_t n, double* loss);
/* Outputs of the last step, copied when asked for. is_state: a new value of a state variable. */
OT_API size_t ot_trainer_output_count(const ot_trainer* t);
OT_API const char* ot_trainer_output_name(const ot_trainer* t, size_t index);
OT_API int ot_trainer_output_is_state(const ot_trainer* t, size_t index);
OT_API ot_status ot_trainer_output(const ot_trainer* t, size_t index, ot_value** out);
/* Names of state variables, as a JSON list; read and write one. */
OT_API ot_status ot_trainer_state_names(const ot_trainer* t, ot_text** json);
OT_API ot_status ot_trainer_get(const ot_trainer* t, const char* name, ot_value** out);
OT_API ot_status ot_trainer_set(ot_trainer* t, const char* name, const ot_value* value);
OT_API ot_status ot_trainer_rate(const ot_trainer* t, double* rate);
OT_API ot_status ot_trainer_set_rate(ot_trainer* t, double rate);
OT_API uint64_t ot_trainer_step_count(const ot_trainer* t);
/* Steps that were made elsewhere, on this state: random numbers go with the number of the step. */
OT_API ot_status ot_trainer_set_step_count(ot_trainer* t, uint64_t steps);
/* Whole epochs over arrays (the first dimension counts the rows; names as the model's inputs and
 * targets, or x and y; none: the arrays that the resumed run has kept). valid: other arrays, or
 * none. options: JSON, see docs/fit.md. on_epoch gets one JSON object per epoch (and, with the
 * option "progress", {"progress": {...}} while one runs); returning non-zero stops after saving.
 * result: JSON. */
typedef int (*ot_epoch_callback)(void* context, const char* epoch_json);
OT_API ot_status ot_trainer_fit(ot_trainer* t, size_t n_columns, const char* const* names,
                                ot_value* const* columns, size_t n_valid,
                                const char* const* valid_names, ot_value* const* valid_columns,
                                const char* options, ot_epoch_callback on_epoch, void* context,
                                ot_text** result);
/* The same over datasets (below); valid may be NULL. Options besides those of ot_trainer_fit: map
 * ({input: column}), scale, layout, label_offset. */
OT_API ot_status ot_trainer_fit_data(ot_trainer* t, const ot_dataset* train,
                                     const ot_dataset* valid, const char* options,
                                     ot_epoch_callback on_epoch, void* context, ot_text** result);
OT_API ot_status ot_trainer_evaluate_data(ot_trainer* t, const ot_dataset* data, int64_t batch,
                                          ot_text** result);
/* Asks a running ot_trainer_fit of this trainer to finish its step, save and return "interrupted".
 * May be called from another thread or a signal handler. */
OT_API void ot_trainer_stop(ot_trainer* t);
/* An array as fit would feed it to this input or target: type, scale of images and shape. */
OT_API ot_status ot_trainer_adapt(const ot_trainer* t, const char* input, const ot_value* array,
                                  ot_value** out);
/* The same for an input of a model's inference graph. */
OT_API ot_status ot_model_adapt(const ot_model* m, const char* input, const ot_value* array,
                                ot_value** out);
/* What is unlike the rows that the model or trainer was trained on, in words: other units, another
 * scale. adapted: rows of one input, as the functions above give them. Empty: nothing. */
OT_API ot_status ot_model_unlike(const ot_model* m, const char* input, const ot_value* adapted,
                                 ot_text** said);
OT_API ot_status ot_trainer_unlike(const ot_trainer* t, const char* input, const ot_value* adapted,
                                   ot_text** said);
/* What the numbers of an output are, whose rows have this shape, as a JSON object: classes (a score
 * for each class), probabilities ("none": they are, "softmax" of a row, "sigmoid" of every one, or
 * "": no scores), threshold (above it a single score means class 1, or null), names (of the
 * classes). n_names: how many classes the caller has names for; 0: those of the file. */
OT_API ot_status ot_model_output_meaning(const ot_model* m, const char* output, size_t rank,
                                         const int64_t* dims, size_t n_names, ot_text** json);
/* Loss and metrics on the inference form of the model, as a JSON object; "warnings": a list of
 * texts, where there are any. */
OT_API ot_status ot_trainer_evaluate(ot_trainer* t, size_t n_columns, const char* const* names,
                                     ot_value* const* columns, int64_t batch, ot_text** result);
/* A trainer that resumes where a run folder or checkpoint stopped. */
OT_API ot_status ot_trainer_resume(const char* run_or_checkpoint, const ot_options* o,
                                   ot_trainer** out);
/* Makes the folder of a new run (with checkpoints/ in it). A run that is there already goes into
 * earlier-001, -002, ... inside it; *kept is that folder's path, empty when there was none. */
OT_API ot_status ot_run_folder(const char* path, ot_text** kept);
/* Saves a checkpoint: state, position, seeds and checksums. */
OT_API ot_status ot_trainer_save(const ot_trainer* t, const char* path);
/* The training model with the current state. */
OT_API ot_status ot_trainer_model(const ot_trainer* t, ot_model** out);

#ifdef __cplusplus
}
#endif

#include "onnxtrain/callbacks.h"

#endif
