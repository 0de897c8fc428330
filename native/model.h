/* The Transformer: packed weights, the encoder, and decoding steps. */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>

#include "kernels.h"
#include "transduce.h"

struct norm { const float *weight, *bias; };

struct layer {
    struct matrix w_qkv, w_o;                     /* self-attention */
    struct matrix w_q, w_kv, w_cross_o;           /* cross-attention, of decoders with a source */
    struct matrix w_1, w_2;                       /* feed-forward */
    struct norm self_norm, cross_norm, feed_forward_norm;
};

struct stack {
    int n_layers;
    struct layer *layers;
    struct norm norm;                             /* with pre-norm */
};

struct embedding {
    struct td_tensor table;
    struct td_tensor positions;                   /* learned, or without data */
    uint8_t *begins_word;                         /* or NULL */
};

struct td_model {
    struct td_config config;
    enum precision precision;
    const struct kernels *kernels;
    struct stack encoder, decoder;
    struct embedding src, tgt;
    struct matrix output;
    const float *sinusoids;                       /* (n_sinusoids, sinusoid_width) */
    int n_sinusoids, sinusoid_width;
    void *block;                                  /* the memory of all weights */
    size_t n_bytes;
};

/* A sentence in the decoder: keys and values of its source and of what its beams have written, in bf16 unless the weights
   are fp32. A token's keys and values are in a slot; the beams of a sentence share slots. */
struct sentence {
    int n_source;
    void *source;                                 /* NULL without a source */
    int capacity, n_slots;                        /* slots in use are below n_slots */
    void *slots;
};

/* New rows of a sentence: tokens of its beams, or several tokens of one. */
struct group {
    struct sentence *sentence;
    int n_rows;
    const int *slots;                             /* of each row */
    const uint8_t *seen;                          /* (n_rows, seen_stride): slots that a row sees; NULL: rows are in order,
                                                     and each sees all slots up to its own */
    size_t seen_stride;
};

/* Room for the rows of a step, reused from step to step. */
struct room {
    size_t n_rows, n_bytes;
    float *x, *normed, *wide, *heads, *y, *hidden; /* rows of the widths that `reserve` gives them */
    float *scores;                                 /* of attention */
    size_t n_scores;
    void *inputs;                                  /* of products */
    void *memory;
    const volatile int32_t *stop;                  /* of a search */
    int attention_layer;                           /* whose cross-attention is recorded */
    float *attention;                              /* where to, or NULL */
};

size_t row_stride(int width);
/* A row of a tensor as floats. */
void read_row(const struct td_tensor *, int64_t row, float *to);
void sinusoid(float *to, int position, int d_model);
/* False without memory. */
int reserve(const td_model *, struct room *, size_t n_rows, size_t n_positions);
void free_room(struct room *);

/* Encode sentences, and keep the keys and values of cross-attention in each; not of all if the search is stopped. */
int encode(const td_model *, struct room *, const int32_t *ids, const float *states, const int32_t *offsets,
           int n_sentences, struct sentence *);
/* The decoder's states of new tokens, in room->x. Positions count from 0; n_words of each token includes it. */
int decode(const td_model *, struct room *, const struct group *, int n_groups, const int32_t *ids,
           const int32_t *positions, const int32_t *n_words);
/* Make room for at least so many slots. */
int grow(const td_model *, struct sentence *, int n_slots);
void free_sentence(struct sentence *);
/* The softmax over the vocabulary is computed for so many rows and tokens at a time. */
enum { BLOCK_ROWS = 96, BLOCK_PANELS = 16, BLOCK = BLOCK_PANELS * PANEL };
#endif
