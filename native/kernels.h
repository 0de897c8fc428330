/* What is computed by the instructions of a processor: products with packed weights, norms, attention. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stddef.h>
#include <stdint.h>

struct td_attention;
struct td_cross_entropy;

enum precision { FP32, BF16, INT8 };
enum activation { LINEAR, RELU, GELU, GELU_TANH, SWISH };

enum {
    PANEL = 16,         /* outputs that are computed together: the width of `lanes` */
    MAX_INPUT_PAD = 64, /* inputs of int8 weights are padded to a multiple of this, those of bf16 to half of it */
};

/* The weights of a linear layer, x W^T + b, in panels of 16 outputs:

       fp32 [panel][input][16]     bf16 [panel][input / 2][16][2]     int8 [panel][input / 4][16][4]

   Missing outputs and inputs are 0. int8 weights have a step for each output: the weight is step times the integer. */
struct matrix {
    int n_outputs, n_inputs, n_panels, padded_inputs;
    enum precision precision;
    size_t panel_stride;       /* from panel to panel, in elements */
    size_t input_stride;       /* from input to input: 16, or more where panels are side by side; for bf16, half of that
                                  from pair to pair */
    const void *weights;
    const float *bias;         /* or NULL; as `step` and `offset` it has 16 n_panels numbers */
    const float *step;         /* of int8 */
    const int32_t *offset;     /* of int8: 128 times the sum of an output's integers */
};

/* The inputs of a product, as its precision reads them. */
struct input {
    int n_rows;
    size_t stride;             /* from row to row, in elements */
    const float *fp32;
    uint16_t *bf16;
    int8_t *int8;
    int16_t *int16;
    float *step;               /* of each row, for int8 */
};

/* Keys and values of one head:

       fp32 keys [position / 16][d_k][16],        values [position][value_stride]
       bf16 keys [position / 16][d_k / 2][16][2], values [position / 2][value_stride][2] */
struct head {
    enum precision precision;  /* not int8 */
    void *keys, *values;
    int n_positions, d_k, d_v;
    size_t value_stride;       /* a multiple of 16 */
    float *recorded;           /* the weights are added to it, (queries, n_positions); or NULL */
};

struct kernels {
    const char *name;
    /* Make the input of products with a matrix; `room` has input_bytes(matrix, n_rows) bytes. */
    struct input (*prepare)(const struct matrix *, const float *x, size_t stride, int n_rows, void *room);
    /* The outputs of panels from `begin` to `end`, from column 0 of y on. y is written in whole panels. */
    void (*product)(const struct matrix *, const struct input *, int begin, int end, enum activation, float *y,
                    size_t y_stride);
    /* out = norm(x + y), norm(x) without y, or x + y without weight. What is behind a row's width becomes 0. */
    void (*norm)(float *out, const float *x, const float *y, const float *weight, const float *bias, float eps, int n_rows, int width,
                 size_t stride);
    /* softmax(q k^T / sqrt(d_k)) v of some queries. Without `seen`, query i sees the first `n_first + i` positions, or
       all if n_first is n_positions; else those whose byte is not 0. `room` has attention_floats(n_positions, d_v). */
    void (*attend)(const struct head *, const float *q, size_t q_stride, int n_queries, int n_first,
                   const uint8_t *seen, size_t seen_stride, float *out, size_t out_stride, float *room);
    /* The largest of n numbers, a multiple of 16; NaN if one is. */
    float (*largest)(const float *x, int n);
    /* Add logits, of which `highest` is the largest, to a row's maximum and sum of exponentials. */
    void (*add_to_softmax)(const float *logits, int n, float highest, float *maximum, float *sum);
    /* Write keys and values of n positions from `first` on. Without `v`, keys only. */
    void (*keep)(const struct head *, int first, int n, const float *k, const float *v, size_t stride);
    /* td_attend; `room` has training_floats(d_k, d_v, the most keys of a sentence). */
    void (*attend_in_training)(const struct td_attention *, int first, int end, float *room);
    /* td_cross_entropy; `room` has loss_floats(n_passes, vocab_size). */
    void (*cross_entropy)(const struct td_cross_entropy *, int first, int end, float *room);
};

/* Rounded to the nearest, ties to even. */
static inline uint16_t to_bf16(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? 0x7fc0 : rounded);
}

static inline size_t input_bytes(const struct matrix *m, int n_rows) {
    return m->precision == FP32 ? 0 : (size_t)(n_rows + 32) * ((size_t)m->padded_inputs * 2 + sizeof(float)) + 128; /* rows of whole tiles */
}

static inline size_t attention_floats(int n_positions, int d_v) { return 8 * ((size_t)n_positions + (size_t)d_v + 32); }

static inline size_t training_floats(int d_k, int d_v, int n_keys) {
    const size_t k = (size_t)d_k + PANEL, v = (size_t)d_v + PANEL, s = (size_t)n_keys + PANEL;
    return 3 * s * (k + v) + PANEL * (2 * k + v + 2 * s);
}

static inline size_t loss_floats(int n_passes, int vocab_size) { return 2 * (size_t)n_passes * ((size_t)vocab_size + PANEL); }

/* The best kernels that this processor runs, or those of a name; NULL if there are none of that name here. */
const struct kernels *kernels_named(const char *name);

#endif
