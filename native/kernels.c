/* The kernels, compiled once for each kind of processor with another ISA_NAME. */
#include "kernels.h"
#include "kernels_int8.h"
#include "lanes.h"
#include "transduce.h"

#ifndef ISA_NAME
#define ISA_NAME portable
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

/* Panels of a tile with so many rows: enough sums at once to hide the latency of an addition. */
#if defined(__AVX512F__)
#define PANELS_OF(rows) ((rows) <= 6 ? 4 : 2)
#define MAX_FP32_ROWS 12 /* more rows read the weights less often; of int8 and bf16, the sums alone take the registers */
#else
#define PANELS_OF(rows) ((rows) == 1 ? 4 : (rows) <= 3 ? 2 : 1)
#define MAX_FP32_ROWS MAX_ROWS
#endif

static __attribute__((noinline)) lanes activate(enum activation activation, lanes x) {
    switch (activation) {
    case GELU: return multiply(multiply(all(0.5f), x), add(all(1), error_function(multiply(x, all(0.70710678f)))));
    case GELU_TANH: { /* 0.5 x (1 + tanh(u)) = x sigmoid(2 u) */
        const lanes cubed = multiply(multiply(x, x), x);
        return multiply(x, sigmoid(multiply(all(1.5957691216f), multiply_add(all(0.044715f), cubed, x))));
    }
    case SWISH: return multiply(x, sigmoid(x));
    case RELU: return maximum(all(0), x);
    default: return x;
    }
}

/* ---- tiles: the sums of a few rows with a few panels ---- */

enum { PREFETCHED = 12 }; /* inputs ahead */

/* Each sum is one chain over the inputs in order. */
INLINE void sums_fp32(const int rows, const int panels, const struct input *x, int row, const struct matrix *m, int panel, lanes *sum) {
    const float *inputs = x->fp32 + (size_t)row * x->stride, *w = (const float *)m->weights + (size_t)panel * m->panel_stride;
    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = all(0);
    for (int i = 0; i < m->padded_inputs; i++) {
        lanes weight[MAX_TILE_PANELS];
        UNROLL for (int c = 0; c < panels; c++) {
            const float *from = w + (size_t)c * m->panel_stride + (size_t)i * m->input_stride;
            weight[c] = load(from);
            if (rows > 1) __builtin_prefetch(from + PREFETCHED * m->input_stride);
        }
        UNROLL for (int r = 0; r < rows; r++) {
            const lanes one = all(inputs[(size_t)r * x->stride + (size_t)i]);
            UNROLL for (int c = 0; c < panels; c++) sum[r * panels + c] = multiply_add(one, weight[c], sum[r * panels + c]);
        }
    }
}

INLINE void sums_bf16(const int rows, const int panels, const struct input *x, int row, const struct matrix *m, int panel, lanes *sum) {
    const float *inputs = x->fp32 + (size_t)row * x->stride;
    const uint16_t *w = (const uint16_t *)m->weights + (size_t)panel * m->panel_stride;
    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = all(0);
    for (int i = 0; i < m->padded_inputs; i += 2) {
        lanes even[MAX_TILE_PANELS], odd[MAX_TILE_PANELS];
        UNROLL for (int c = 0; c < panels; c++) {
            const lanes pair = load((const float *)(const void *)(w + (size_t)c * m->panel_stride + (size_t)i * m->input_stride));
            EACH_PART {
                even[c].v[p] = (part)((bits)pair.v[p] << 16);
                odd[c].v[p] = (part)((bits)pair.v[p] & (int32_t)0xffff0000);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            const lanes first = all(inputs[(size_t)r * x->stride + (size_t)i]), second = all(inputs[(size_t)r * x->stride + (size_t)i + 1]);
            UNROLL for (int c = 0; c < panels; c++)
                sum[r * panels + c] = multiply_add(second, odd[c], multiply_add(first, even[c], sum[r * panels + c]));
        }
    }
}

/* The number that an exact sum of a row stands for; `offset`, or 0, is taken from it. */
INLINE lanes scaled(const int32_t *integers, const int32_t *offset, const struct matrix *m, int panel, float step) {
    lanes out;
    EACH_PART {
        bits of_part, of_offset = {0};
        memcpy(&of_part, integers + p * WIDTH, sizeof of_part);
        if (offset) memcpy(&of_offset, offset + p * WIDTH, sizeof of_offset);
        out.v[p] = __builtin_convertvector(of_part - of_offset, part);
    }
    return multiply(multiply(out, load(m->step + panel * PANEL)), all(step));
}

/* Write a sum of a row with a panel, with bias and activation. It is not changed in place: then gcc would keep no sums in
   registers. */
INLINE void write(lanes sum, const struct matrix *m, int panel, enum activation activation, float *to) {
    lanes out = add(sum, m->bias ? load(m->bias + panel * PANEL) : all(0));
    if (activation == RELU) out = maximum(all(0), out);
    else if (activation != LINEAR) out = activate(activation, out);
    store(to, out);
}

/* `y` is that of the first row and the first panel. */
INLINE void tile(const enum precision precision, const int rows, const int panels, const struct matrix *m, const struct input *x,
                 int row, int panel, enum activation activation, float *y, size_t y_stride) {
    lanes sum[MAX_ROWS * MAX_TILE_PANELS];
    if (precision == FP32) sums_fp32(rows, panels, x, row, m, panel, sum);
    if (precision == BF16) sums_bf16(rows, panels, x, row, m, panel, sum);
    if (precision == INT8) {
        panel_sums integers[MAX_ROWS * MAX_TILE_PANELS];
        sums_int8(rows, panels, x, row, m, panel, integers);
        for (int i = 0; i < rows * panels; i++) sum[i] = scaled(integers[i], NULL, m, panel + i % panels, x->step[row + i / panels]);
    }
    UNROLL for (int c = 0; c < panels; c++)
        UNROLL for (int r = 0; r < rows; r++) write(sum[r * panels + c], m, panel + c, activation, y + (size_t)r * y_stride + (size_t)c * PANEL);
}

#define TILES(precision, rows)                                                                                       \
    static void tiles_##precision##_##rows(const struct matrix *m, const struct input *x, int row, int begin, int end, \
                                           enum activation activation, float *y, size_t y_stride) {                  \
        int panel = begin;                                                                                           \
        for (; panel + PANELS_OF(rows) <= end; panel += PANELS_OF(rows), y += PANELS_OF(rows) * PANEL)               \
            tile(precision, rows, PANELS_OF(rows), m, x, row, panel, activation, y, y_stride);                       \
        for (; (rows) <= 3 && PANELS_OF(rows) > 2 && panel + 2 <= end; panel += 2, y += 2 * PANEL)                    \
            tile(precision, rows, 2, m, x, row, panel, activation, y, y_stride);                                     \
        for (; panel < end; panel++, y += PANEL) tile(precision, rows, 1, m, x, row, panel, activation, y, y_stride); \
    }
#define EACH_ROW_COUNT(precision) \
    TILES(precision, 1) TILES(precision, 2) TILES(precision, 3) TILES(precision, 4) TILES(precision, 5) TILES(precision, 6)
EACH_ROW_COUNT(FP32) EACH_ROW_COUNT(BF16) EACH_ROW_COUNT(INT8)
#if defined(__AVX512F__)
TILES(FP32, 7) TILES(FP32, 8) TILES(FP32, 9) TILES(FP32, 10) TILES(FP32, 11) TILES(FP32, 12)
#define MORE_FP32_TILES , tiles_FP32_7, tiles_FP32_8, tiles_FP32_9, tiles_FP32_10, tiles_FP32_11, tiles_FP32_12
#else
#define MORE_FP32_TILES
#endif

typedef void (*tiles)(const struct matrix *, const struct input *, int, int, int, enum activation, float *, size_t);
#define TILES_OF(name) NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6
static const tiles TILES_BY[][MAX_FP32_ROWS + 1] = {{TILES_OF(tiles_FP32) MORE_FP32_TILES}, {TILES_OF(tiles_BF16)}, {TILES_OF(tiles_INT8)}};

#if defined(__AMX_INT8__)
#include "kernels_amx.h"
#endif

enum { MIN_TILE_ROWS = 8 }; /* with fewer, tiles of int8 are slower; the sums are the same */

static void product_by_rows(const struct matrix *m, const struct input *x, int begin, int end, enum activation activation,
                            float *y, size_t y_stride) {
    const int most_rows = m->precision == FP32 ? MAX_FP32_ROWS : m->precision == INT8 ? MAX_ROWS : PARTS > 1 ? 4 : 5; /* bf16 has two registers of weights */
    for (int first = begin; first < end; first += GROUP) {
        const int last = first + GROUP < end ? first + GROUP : end;
        float *to = y + (size_t)(first - begin) * PANEL;
        for (int row = 0; row < x->n_rows;) {
            const int left = x->n_rows - row, n_tiles = (left + most_rows - 1) / most_rows;
            const int rows = (left + n_tiles - 1) / n_tiles; /* tiles of about the same size */
            TILES_BY[m->precision][rows](m, x, row, first, last, activation, to + (size_t)row * y_stride, y_stride);
            row += rows;
        }
    }
}

static void product(const struct matrix *m, const struct input *x, int begin, int end, enum activation activation,
                    float *y, size_t y_stride) {
#if defined(__AMX_INT8__)
    if (m->precision == BF16 || (m->precision == INT8 && x->n_rows >= MIN_TILE_ROWS)) {
        product_in_tiles(m, x, begin, end, activation, y, y_stride);
        return;
    }
#endif
    product_by_rows(m, x, begin, end, activation, y, y_stride);
}

/* ---- inputs ---- */

/* The integers of 16 floats: x / step, ties to even; of both signs up to 127. */
INLINE void write_integers(const lanes x, float step, float reciprocal, struct input *input, size_t at) {
    const lanes levels = quotient(x, step, reciprocal);
    int32_t integers[PANEL];
    EACH_PART {
        const part shifter = part_all(12582912.0f); /* 1.5 2^23: its last bits become the integer */
        const bits integer = (bits)(levels.v[p] + shifter) - (bits)shifter;
        memcpy(integers + p * WIDTH, &integer, sizeof integer);
    }
#if defined(__AVX512VNNI__)
    for (int i = 0; i < PANEL; i++) input->int8[at + (size_t)i] = (int8_t)(integers[i] ^ -128);
#elif defined(__AVX2__) || defined(__wasm_simd128__)
    for (int i = 0; i < PANEL; i++) input->int16[at + (size_t)i] = (int16_t)integers[i];
#else
    for (int i = 0; i < PANEL; i++) input->int8[at + (size_t)i] = (int8_t)integers[i];
#endif
}

/* int8 inputs have a step for each row: the largest size over 127. NaN and infinity make a step of NaN. */
static struct input prepare(const struct matrix *m, const float *x, size_t stride, int n_rows, void *room) {
    struct input input = {.n_rows = n_rows, .stride = stride, .fp32 = x};
#if defined(__AMX_BF16__)
    if (m->precision == BF16) {
        input.bf16 = room;
        for (int r = 0; r < n_rows; r++)
            for (int i = 0; i < m->padded_inputs; i += PANEL) {
                const lanes v = i + PANEL <= m->n_inputs ? load(x + (size_t)r * stride + i)
                                : i < m->n_inputs        ? load_first(x + (size_t)r * stride + i, m->n_inputs - i, 0)
                                                         : all(0);
                const __m256i rounded = (__m256i)_mm512_cvtneps_pbh((__m512)v.v[0]);
                _mm256_storeu_si256((__m256i *)(void *)(input.bf16 + (size_t)r * (size_t)m->padded_inputs + i), rounded);
            }
        return input;
    }
#endif
    if (m->precision != INT8) return input;
    input.step = room;
    input.stride = (size_t)m->padded_inputs;
    input.int8 = (int8_t *)room + ((size_t)n_rows * sizeof(float) + 63) / 64 * 64;
    input.int16 = (int16_t *)(void *)input.int8;
    const int whole = m->n_inputs / PANEL * PANEL, rest = m->n_inputs - whole;
    for (int r = 0; r < n_rows; r++) {
        const float *row = x + (size_t)r * stride;
        const lanes last = load_first(row + whole, rest, 0);
        lanes size = all(0), zero = all(0);
        for (int i = 0; i < whole; i += PANEL) {
            const lanes v = load(row + i);
            size = maximum(size, maximum(v, subtract(all(0), v)));
            zero = multiply_add(v, all(0), zero);
        }
        size = maximum(size, maximum(last, subtract(all(0), last)));
        zero = multiply_add(last, all(0), zero);
        const float step = largest_of(size) * (1.0f / 127) + 1e-32f + sum_of(zero);
        input.step[r] = step;
        const size_t at = (size_t)r * input.stride;
        const int is_nan = step != step, n_loaded = is_nan ? 0 : whole;
        const float divisor = is_nan ? 1 : step, reciprocal = 1 / divisor;
        for (int i = 0; i < n_loaded; i += PANEL) write_integers(load(row + i), divisor, reciprocal, &input, at + (size_t)i);
        for (int i = n_loaded; i < m->padded_inputs; i += PANEL)
            write_integers(i == whole && rest && !is_nan ? last : all(0), divisor, reciprocal, &input, at + (size_t)i);
    }
    return input;
}

/* ---- norms ---- */

INLINE void norm_row(float *out, const float *x, const float *weight, const float *bias, float eps, int width) {
    lanes total = all(0);
    int i = 0;
    for (; i + PANEL <= width; i += PANEL) total = add(total, load(x + i));
    if (i < width) total = add(total, load_first(x + i, width - i, 0));
    const float mean = sum_of(total) / (float)width;
    lanes squares = all(0);
    for (i = 0; i + PANEL <= width; i += PANEL) {
        const lanes d = subtract(load(x + i), all(mean));
        squares = multiply_add(d, d, squares);
    }
    if (i < width) {
        const lanes d = subtract(load_first(x + i, width - i, mean), all(mean));
        squares = multiply_add(d, d, squares);
    }
    const lanes scale = all(1.0f / sqrtf(sum_of(squares) / (float)width + eps));
    for (i = 0; i < width; i += PANEL) { /* weight and bias are padded with 0 */
        const lanes d = multiply(subtract(load(x + i), all(mean)), scale);
        store(out + i, multiply_add(d, load(weight + i), load(bias + i)));
    }
}

static void norm(float *out, const float *x, const float *y, const float *weight, const float *bias, float eps, int n_rows, int width,
                 size_t stride) {
    for (int r = 0; r < n_rows; r++, out += stride, x += stride, y = y ? y + stride : NULL) {
        for (int i = 0; y && i < width; i += PANEL) store(out + i, add(load(x + i), load(y + i)));
        if (weight) norm_row(out, y ? out : x, weight, bias, eps, width);
    }
}

/* ---- attention ---- */

/* Softmax of n scores times `scale` in place; what follows them up to a multiple of 16 becomes 0. */
INLINE void softmax(float *scores, int n, lanes scale) {
    const int whole = (n + PANEL - 1) / PANEL * PANEL;
    for (int i = n; i < whole; i++) scores[i] = -INFINITY;
    lanes highest = load(scores);
    for (int i = PANEL; i < whole; i += PANEL) highest = maximum(highest, load(scores + i));
    const lanes shift = multiply(all(largest_of(highest)), scale);
    lanes total = all(0);
    for (int i = 0; i < whole; i += PANEL) {
        const lanes e = exponential(subtract(multiply(load(scores + i), scale), shift));
        store(scores + i, e);
        total = add(total, e);
    }
    const lanes share = all(1.0f / sum_of(total));
    for (int i = 0; i < whole; i += PANEL) store(scores + i, multiply(load(scores + i), share));
}

static void attend(const struct head *h, const float *q, size_t q_stride, int n_queries, int n_first,
                   const uint8_t *seen, size_t seen_stride, float *out, size_t out_stride, float *room) {
    const int n_panels = (h->n_positions + PANEL - 1) / PANEL, v_panels = (h->d_v + PANEL - 1) / PANEL;
    const int group = h->precision == BF16 ? 2 : 1, d_k = (h->d_k + group - 1) / group * group;
    const size_t stride = (size_t)n_panels * PANEL, v_stride = (size_t)v_panels * PANEL;
    const struct matrix keys = {.n_panels = n_panels, .padded_inputs = d_k, .precision = h->precision,
                                .panel_stride = (size_t)d_k * PANEL, .input_stride = PANEL, .weights = h->keys};
    const struct matrix values = {.n_panels = v_panels, .padded_inputs = (h->n_positions + group - 1) / group * group,
                                  .precision = h->precision, .panel_stride = (size_t)group * PANEL,
                                  .input_stride = h->value_stride, .weights = h->values};
    const int is_whole = h->d_v % PANEL == 0;
    float *sums = room + MAX_ROWS * stride; /* where outputs are not whole panels */
    for (int row = 0; row < n_queries; row += MAX_ROWS) {
        const int rows = n_queries - row < MAX_ROWS ? n_queries - row : MAX_ROWS;
        const struct input queries = {.n_rows = rows, .stride = q_stride, .fp32 = q + (size_t)row * q_stride};
        product_by_rows(&keys, &queries, 0, n_panels, LINEAR, room, stride);
        for (int r = 0; r < rows; r++) {
            float *scores = room + (size_t)r * stride;
            int n = h->n_positions;
            if (seen) {
                const uint8_t *mask = seen + (size_t)(row + r) * seen_stride;
                for (int i = 0; i < n; i++) scores[i] = mask[i] ? scores[i] : -INFINITY;
            } else if (n_first + row + r < n) {
                n = n_first + row + r;
                memset(scores + n, 0, (stride - (size_t)n) * sizeof(float));
            }
            softmax(scores, n, all(1.0f / sqrtf((float)h->d_k)));
            float *recorded = h->recorded ? h->recorded + (size_t)(row + r) * (size_t)h->n_positions : NULL;
            for (int i = 0; recorded && i < n; i++) recorded[i] += scores[i];
        }
        const struct input weights = {.n_rows = rows, .stride = stride, .fp32 = room};
        product_by_rows(&values, &weights, 0, v_panels, LINEAR, is_whole ? out : sums, is_whole ? out_stride : v_stride);
        for (int r = 0; r < rows; r++, out += out_stride)
            if (!is_whole) memcpy(out, sums + (size_t)r * v_stride, (size_t)h->d_v * sizeof(float));
    }
}

static void keep(const struct head *h, int first, int n, const float *k, const float *v, size_t stride) {
    const int is_half = h->precision == BF16;
    const size_t d_k = (size_t)(is_half ? (h->d_k + 1) / 2 : h->d_k); /* numbers of 4 bytes */
    for (int position = first; position < first + n; position++, k += stride, v = v ? v + stride : NULL) {
        const size_t key = (size_t)(position / PANEL) * d_k * PANEL + (size_t)(position % PANEL);
        if (is_half) {
            uint32_t *to = (uint32_t *)h->keys + key;
            for (int i = 0; i < h->d_k; i += 2, to += PANEL) *to = to_bf16(k[i]) | (i + 1 < h->d_k ? (uint32_t)to_bf16(k[i + 1]) << 16 : 0);
            uint16_t *values = (uint16_t *)h->values + (size_t)(position / 2 * 2) * h->value_stride + position % 2;
            for (int i = 0; v && i < h->d_v; i++) values[2 * i] = to_bf16(v[i]);
        } else {
            float *to = (float *)h->keys + key;
            for (int i = 0; i < h->d_k; i++, to += PANEL) *to = k[i];
            if (v) memcpy((float *)h->values + (size_t)position * h->value_stride, v, (size_t)h->d_v * sizeof(float));
        }
    }
}

/* ---- the softmax over the vocabulary ---- */

/* NaN if one of them is. */
static float largest(const float *x, int n) {
    lanes highest = load(x);
    bits is_nan[PARTS];
    memset(is_nan, 0, sizeof is_nan);
    for (int i = 0; i < n; i += PANEL) {
        const lanes next = load(x + i);
        highest = maximum(highest, next);
        EACH_PART is_nan[p] |= (bits)(next.v[p] != next.v[p]);
    }
    lanes nan;
    EACH_PART nan.v[p] = (part)(is_nan[p] & 0x3f800000);
    return sum_of(nan) > 0 ? NAN : largest_of(highest);
}

static void add_to_softmax(const float *logits, int n, float highest, float *maximum_so_far, float *sum_so_far) {
    if (!(highest > -INFINITY)) {
        if (highest != highest) *sum_so_far = highest;
        return;
    }
    lanes total = all(0);
    for (int i = 0; i < n; i += PANEL) total = add(total, exponential(subtract(load(logits + i), all(highest))));
    const float sum = sum_of(total);
    if (highest > *maximum_so_far) {
        *sum_so_far = *sum_so_far * expf(*maximum_so_far - highest) + sum;
        *maximum_so_far = highest;
    } else {
        *sum_so_far += sum * expf(highest - *maximum_so_far);
    }
}

#if defined(__wasm__)
#define attend_in_training NULL
#define cross_entropy NULL
#else
#include "kernels_training.h"
#endif

const struct kernels JOIN(kernels_, ISA_NAME) = {
    TEXT(ISA_NAME), prepare, product, norm, attend, largest, add_to_softmax, keep, attend_in_training, cross_entropy,
};
