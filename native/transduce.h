/* The engine's interface: what Python calls through ctypes. All functions may be called by several threads at once, each
   with its own search; a model is only read. Functions that can fail return 0, or write a line to `error`. */
#ifndef TRANSDUCE_H
#define TRANSDUCE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { TD_ABI = 6 }; /* changes with every change of this file */

/* The architecture, as `config.json` has it. */
struct td_config {
    int32_t d_model, d_ff, n_heads, d_k, d_v;
    int32_t n_encoder_layers; /* 0: a language model */
    int32_t n_decoder_layers;
    int32_t src_vocab_size, tgt_vocab_size;
    int32_t is_pre_norm, activation; /* enum activation */
    int32_t n_positions;             /* of a learned table; 0: sinusoids */
    float norm_eps, embedding_factor;
    /* Word positions: which ids begin a word, 1 or 0 of each; NULL: positions of tokens only. */
    const uint8_t *src_begins_word, *tgt_begins_word;
};

/* A tensor of a weights file, which td_load copies. */
struct td_tensor {
    const char *name;
    const void *data;
    int64_t n_rows, n_columns; /* a vector has one column */
    int32_t type;              /* 0 fp32, 1 bf16, 2 fp16 */
};

/* Phrases of each sentence: those from first[i] to before first[i + 1] of sentence i, of which phrase p is ids[offsets[p]]
   to before ids[offsets[p + 1]]. */
struct td_phrases {
    const int32_t *ids, *offsets, *first; /* NULL: none */
};

/* What Python decides while a search runs. `data` is the search's own. */
/* The ids that may come next in a hypothesis, written to `allowed`, which has room for the vocabulary; how many, or -1. */
typedef int32_t (*td_allowed)(int32_t sentence, const int32_t *ids, int32_t n_ids, int32_t *allowed);
/* Those that follow return 0, or something else: give up. */
/* A random number from 0 to below 1 for each of the sentences. */
typedef int32_t (*td_draw)(int32_t n_sentences, const int32_t *sentences, double *numbers);
/* Gets the output of a sentence so far, EOS included, after each token of greedy search or sampling. */
typedef int32_t (*td_on_ids)(int32_t sentence, const int32_t *ids, int32_t n_ids);
/* Called before each step. */
typedef int32_t (*td_on_step)(void);

struct td_search {
    int32_t n_sentences;
    const int32_t *src_ids, *src_offsets;       /* n_sentences + 1 offsets; NULL for a language model */
    const float *src_states;                    /* in place of src_ids: what the encoder reads, (positions, d_model) */
    const int32_t *prompt_ids, *prompt_offsets; /* what outputs begin after: BOS, or a prompt */
    int32_t window;                             /* ids of a text that are read at most: a longer one without a beam is read
                                                   again from its last window / 2 on; 0: any number */
    const int32_t *max_lengths;                 /* of each output, EOS included */
    int32_t eos_id, n_suppressed;
    const int32_t *suppressed_ids;
    int32_t beam_size, n_best;                  /* beam_size 0: one output, by greedy search or sampling */
    float alpha;
    int32_t is_scored;                          /* greedy search without it does not normalise */
    /* Sampling. */
    int32_t is_sampled, top_k;                  /* top_k 0: all */
    double temperature, top_p;                  /* temperature 0: greedy; top_p 1: all */
    const uint32_t *seeds;                      /* of each sentence */
    td_draw draw;                               /* in place of seeds, or NULL */
    /* Constraints, each NULL or 0 without. */
    const int32_t *prefix_ids, *prefix_offsets; /* how outputs begin */
    const uint8_t *starts_word, *word_starts;   /* of each sentence: the prefix is followed by one of the ids (V) */
    int32_t min_length, no_repeat_ngram;
    const int32_t *max_repeats;                 /* (n_sentences, n_units): how often units of 1, 2, ... ids follow each other */
    int32_t n_units;
    struct td_phrases avoided, wanted;          /* an output has none of these, and all of those: beam search, without `allowed` */
    const uint8_t *goes_on;                     /* (V): ids that go on with a word; a wanted phrase before one does not count */
    td_allowed allowed;
    const int32_t *pooled;                      /* among these, the allowed ones get the probability of all */
    int32_t n_pooled;
    const int32_t *listed_ids, *listed_offsets; /* of each sentence: the only ids that are scored */
    /* Drafts for greedy search and sampling: a smaller model of the same vocabularies. counts: passes, tokens, drafted, accepted. */
    const struct td_model *draft;
    int32_t n_drafted;
    double min_draft_probability;               /* a draft ends after a token with less */
    int64_t *counts;                            /* added to, or NULL */
    td_on_ids on_ids;                           /* or NULL */
    td_on_step on_step;                         /* or NULL */
    const volatile int32_t *stop;               /* give up when it is not 0: another thread sets it; or NULL */
    /* Results: sentence b has results b n_best to (b + 1) n_best - 1, the best first. */
    int32_t max_length;                         /* the largest of max_lengths: the room of a result */
    int32_t *ids, *lengths;                     /* length -1: no more hypotheses */
    float *log_probs, *scores;
    uint8_t *is_finished;
};

EXPORT int32_t td_abi(void);
/* The kernels in use; TRANSDUCE_ISA may name others that this processor has. */
EXPORT const char *td_isa(void);

typedef struct td_model td_model;
EXPORT td_model *td_load(const struct td_config *, const struct td_tensor *, int32_t n_tensors, int32_t precision,
                         char *error, int32_t error_size);
EXPORT void td_free(td_model *);
/* Write a loaded model to a file, so that it need not be packed again. `key`: up to 255 bytes that say what it was made
   of. 0, or 1 if it cannot be written. */
EXPORT int32_t td_save(const td_model *, const char *path, const char *key, char *error, int32_t error_size);
/* A model from such a file, which stays as it is while the model is used. NULL if it cannot be read, is damaged, or has
   another key, configuration, precision or TD_ABI. */
EXPORT td_model *td_map(const struct td_config *, int32_t precision, const char *path, const char *key, char *error,
                        int32_t error_size);
#if defined(__wasm__)
/* A model from the bytes of such a file, in memory of malloc, which is freed with it or if they are damaged. */
td_model *td_read(void *bytes, size_t n_bytes, char *error, int32_t error_size);
#endif
/* 0; 1 if stopped, with results as far as they are; 2 if a logit is NaN or all tokens have probability 0 (error says
   where); 3 without memory; 4 if an id that `allowed` gave, or how many, is outside the vocabulary (error says where). */
EXPORT int32_t td_run(const td_model *, struct td_search *, char *error, int32_t error_size);
/* The next two read the sources and prompts of a search, and search for nothing. 0, or 3 without memory. */
/* The log-probability of a target after each id of the prompts. `attention`, if not NULL, gets how much each place attends
   to the source in a layer, the sum of its heads: rows of the sentence's source length, one after the other. */
EXPORT int32_t td_score(const td_model *, struct td_search *, const int32_t *targets, float *log_probs,
                        int32_t attention_layer, float *attention);
/* The logits (V) after each prompt. */
EXPORT int32_t td_logits(const td_model *, struct td_search *, float *logits);

#if !defined(__wasm__)
/* softmax(q k^T / sqrt(d_k)) v of each sentence and head, for training: rows of fp32 or bf16 without padding. The
   numbers of a head are side by side, head after head. */
struct td_attention {
    int32_t n_heads, d_k, d_v;
    int32_t is_causal;            /* query i sees the keys up to i */
    int32_t is_bf16;              /* all rows but log_sums */
    const int32_t *query_offsets, *key_offsets; /* the first row of each sentence; the last is where they end */
    const void *q, *k, *v;
    int64_t q_stride, k_stride, v_stride; /* from row to row, in numbers; those of the gradients are the same */
    void *out;                    /* (queries, n_heads d_v) */
    float *log_sums;              /* (queries, n_heads), for the gradient: logarithms of the sums of exponentials */
    const void *out_grad;         /* as out; NULL: compute out and log_sums, else the gradients */
    void *q_grad, *k_grad, *v_grad;
};
/* Of the sentences from `first` to `end`; others may be computed at the same time. 0, or 3 without memory, 4 if
   TRANSDUCE_ISA names no kernels of this processor. */
EXPORT int32_t td_attend(const struct td_attention *, int32_t first, int32_t end);

/* The loss of training and its gradient in the logits z of one or two passes, the mean of lse(z) - a z_y - ..., whose
   constant part the caller subtracts. With two passes, plus alpha / 4 times KL(p_1 || p_2) + KL(p_2 || p_1). */
struct td_cross_entropy {
    int32_t n_passes, vocab_size, is_bf16;
    int64_t pass_stride, row_stride; /* in numbers */
    void *logits;                 /* (passes, rows, V); replaced by the gradient */
    const int64_t *targets;       /* y of each row */
    double a, alpha;
    double *sums;                 /* (rows, 3): lse(z) - z_y and z_y, means over the passes, and the two divergences */
};
/* Of the rows from `first` to `end`, as td_attend; 2 if a target is not in the vocabulary. */
EXPORT int32_t td_cross_entropy(const struct td_cross_entropy *, int32_t first, int32_t end);

/* One of these functions on 0 to n, in parts: each thread that runs td_share takes the next part until all are taken. */
struct td_shared {
    int32_t (*function)(const void *call, int32_t first, int32_t end);
    const void *call;
    int32_t n, n_parts, next, status; /* the last two begin as 0 */
};
EXPORT void td_share(struct td_shared *);
#endif
#endif
