/* The kernels, compiled once for each kind of processor with another ISA_NAME. */
#include "kernels.h"
#include "lanes.h"

#ifndef ISA_NAME
#define ISA_NAME portable
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

enum {
    MAX_ROWS = 6, /* of a tile, whose sums stay in registers: at most 12 of 16, or 24 of 32 */
    MAX_TILE_PANELS = 4,
    GROUP = 4 * MAX_TILE_PANELS, /* panels of weights that all rows are multiplied with before the next ones */
};
#define UNROLL _Pragma("GCC unroll 8")

/* Panels of a tile with so many rows: enough sums at once to hide the latency of an addition. */
#if defined(__AVX512F__)
#define PANELS_OF(rows) 4
#else
#define PANELS_OF(rows) ((rows) == 1 ? 4 : (rows) <= 3 ? 2 : 1)
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

/* `input_stride`: from an input's 16 weights to those of the next. Each sum is one chain over the inputs in order. */
INLINE void sums_fp32(const int rows, const int panels, const float *x, size_t x_stride, const float *w,
                      size_t panel_stride, size_t input_stride, int n_inputs, lanes *sum) {
    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = all(0);
    for (int i = 0; i < n_inputs; i++) {
        lanes weight[MAX_TILE_PANELS];
        UNROLL for (int c = 0; c < panels; c++) weight[c] = load(w + (size_t)c * panel_stride + (size_t)i * input_stride);
        UNROLL for (int r = 0; r < rows; r++) {
            const lanes one = all(x[(size_t)r * x_stride + (size_t)i]);
            UNROLL for (int c = 0; c < panels; c++)
                sum[r * panels + c] = multiply_add(one, weight[c], sum[r * panels + c]);
        }
    }
}

INLINE void sums_bf16(const int rows, const int panels, const float *x, size_t x_stride, const uint16_t *w,
                      size_t panel_stride, int n_inputs, lanes *sum) {
    UNROLL for (int i = 0; i < rows * panels; i++) sum[i] = all(0);
    for (int i = 0; i < n_inputs; i += 2) {
        lanes even[MAX_TILE_PANELS], odd[MAX_TILE_PANELS];
        UNROLL for (int c = 0; c < panels; c++) {
            const lanes pair = load((const float *)(const void *)(w + (size_t)c * panel_stride + (size_t)i * PANEL));
            EACH_PART {
                even[c].v[p] = (part)((bits)pair.v[p] << 16);
                odd[c].v[p] = (part)((bits)pair.v[p] & (int32_t)0xffff0000);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            const float *row = x + (size_t)r * x_stride + (size_t)i;
            const lanes first = all(row[0]), second = all(row[1]);
            UNROLL for (int c = 0; c < panels; c++) {
                lanes *total = &sum[r * panels + c];
                *total = multiply_add(second, odd[c], multiply_add(first, even[c], *total));
            }
        }
    }
}

typedef int32_t panel_sums[PANEL];

#if defined(__AVX512VNNI__)
INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    const size_t panel_bytes = (size_t)m->padded_inputs * PANEL;
    const int8_t *w = (const int8_t *)m->weights + (size_t)panel * panel_bytes;
    const uint8_t *shifted = (const uint8_t *)x->int8 + (size_t)row * x->stride; /* by 128 */
    __m512i total[MAX_ROWS * MAX_TILE_PANELS];
    UNROLL for (int c = 0; c < panels; c++)
        UNROLL for (int r = 0; r < rows; r++)
            total[r * panels + c] = _mm512_sub_epi32(_mm512_setzero_si512(),
                                                     _mm512_loadu_si512(m->offset + (panel + c) * PANEL));
    for (int i = 0; i < m->padded_inputs; i += 4) {
        __m512i weight[MAX_TILE_PANELS];
        UNROLL for (int c = 0; c < panels; c++)
            weight[c] = _mm512_loadu_si512(w + (size_t)c * panel_bytes + (size_t)i * PANEL);
        UNROLL for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, shifted + (size_t)r * x->stride + (size_t)i, 4);
            const __m512i inputs = _mm512_set1_epi32(four);
            UNROLL for (int c = 0; c < panels; c++)
                total[r * panels + c] = _mm512_dpbusd_epi32(total[r * panels + c], inputs, weight[c]);
        }
    }
    UNROLL for (int i = 0; i < rows * panels; i++) _mm512_storeu_si512(sum[i], total[i]);
}
#elif defined(__AVX2__)
/* Half a panel at a time: weights become 16 bits, and pairs of products are added without saturation. */
INLINE void sums_int8_half(const int rows, const int16_t *x, size_t x_stride, const int8_t *w, int n_inputs,
                           panel_sums *sum, const int panels, const int half) {
    __m256i low[MAX_ROWS], high[MAX_ROWS];
    UNROLL for (int r = 0; r < rows; r++) low[r] = high[r] = _mm256_setzero_si256();
    for (int i = 0; i < n_inputs; i += 4) {
        const __m128i *weights = (const __m128i *)(const void *)(w + (size_t)i * PANEL);
        const __m256i first = _mm256_cvtepi8_epi16(_mm_loadu_si128(weights));
        const __m256i second = _mm256_cvtepi8_epi16(_mm_loadu_si128(weights + 1));
        UNROLL for (int r = 0; r < rows; r++) {
            int64_t four;
            memcpy(&four, x + (size_t)r * x_stride + (size_t)i, 8);
            const __m256i inputs = _mm256_set1_epi64x(four);
            low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(inputs, first));
            high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(inputs, second));
            __asm__ volatile("" : "+x"(low[r]), "+x"(high[r])); /* row by row, so that all sums stay in registers */
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        const __m256i pairs = _mm256_hadd_epi32(low[r], high[r]); /* outputs 0 1 4 5 2 3 6 7 */
        _mm256_storeu_si256((__m256i *)(void *)(sum[r * panels] + 8 * half), _mm256_permute4x64_epi64(pairs, 0xd8));
    }
}

INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    const size_t panel_bytes = (size_t)m->padded_inputs * PANEL;
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * panel_bytes;
        const int16_t *from = x->int16 + (size_t)row * x->stride;
        sums_int8_half(rows, from, x->stride, w, m->padded_inputs, sum + c, panels, 0);
        sums_int8_half(rows, from, x->stride, w + 32, m->padded_inputs, sum + c, panels, 1);
    }
}
#elif defined(__ARM_FEATURE_DOTPROD)
INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    const size_t panel_bytes = (size_t)m->padded_inputs * PANEL;
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * panel_bytes;
        int32x4_t total[MAX_ROWS * 4];
        UNROLL for (int i = 0; i < rows * 4; i++) total[i] = vdupq_n_s32(0);
        for (int i = 0; i < m->padded_inputs; i += 4) {
            int8x16_t weight[4];
            UNROLL for (int q = 0; q < 4; q++) weight[q] = vld1q_s8(w + (size_t)i * PANEL + 16 * q);
            UNROLL for (int r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, x->int8 + (size_t)(row + r) * x->stride + (size_t)i, 4);
                const int8x16_t inputs = vreinterpretq_s8_s32(vdupq_n_s32(four));
                UNROLL for (int q = 0; q < 4; q++) total[r * 4 + q] = vdotq_s32(total[r * 4 + q], weight[q], inputs);
            }
        }
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < 4; q++) vst1q_s32(sum[r * panels + c] + 4 * q, total[r * 4 + q]);
    }
}
#else
INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    const size_t panel_bytes = (size_t)m->padded_inputs * PANEL;
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * panel_bytes;
        for (int r = 0; r < rows; r++) {
            const int8_t *inputs = x->int8 + (size_t)(row + r) * x->stride;
            int32_t *total = sum[r * panels + c];
            memset(total, 0, sizeof(panel_sums));
            for (int i = 0; i < m->padded_inputs; i += 4)
                for (int o = 0; o < PANEL; o++)
                    for (int j = 0; j < 4; j++)
                        total[o] += inputs[i + j] * w[(size_t)i * PANEL + (size_t)(o * 4 + j)];
        }
    }
}
#endif

INLINE lanes from_integers(const int32_t *from) {
    lanes out;
    for (int p = 0; p < PARTS; p++) {
        bits integers;
        memcpy(&integers, from + p * WIDTH, sizeof integers);
        out.v[p] = __builtin_convertvector(integers, part);
    }
    return out;
}

/* Write the sums of a tile, with biases and activation. */
INLINE void write_tile(const int rows, const int panels, const struct matrix *m, int panel, enum activation activation,
                       const lanes *sum, float *y, size_t y_stride) {
    UNROLL for (int c = 0; c < panels; c++) {
        const lanes bias = m->bias ? load(m->bias + (panel + c) * PANEL) : all(0);
        UNROLL for (int r = 0; r < rows; r++) {
            lanes out = add(sum[r * panels + c], bias);
            if (activation == RELU) out = maximum(all(0), out);
            else if (activation != LINEAR) out = activate(activation, out);
            store(y + (size_t)r * y_stride + (size_t)c * PANEL, out);
        }
    }
}

/* Tiles of each precision: `rows` rows from `row` on, `panels` panels from `panel` on, written to y. */
INLINE void tile_fp32(const int rows, const int panels, const struct matrix *m, const struct input *x, int row,
                      int panel, enum activation activation, float *y, size_t y_stride) {
    lanes sum[MAX_ROWS * MAX_TILE_PANELS];
    const size_t panel_weights = (size_t)m->padded_inputs * PANEL;
    sums_fp32(rows, panels, x->fp32 + (size_t)row * x->stride, x->stride,
              (const float *)m->weights + (size_t)panel * panel_weights, panel_weights, PANEL, m->padded_inputs, sum);
    write_tile(rows, panels, m, panel, activation, sum, y, y_stride);
}

INLINE void tile_bf16(const int rows, const int panels, const struct matrix *m, const struct input *x, int row,
                      int panel, enum activation activation, float *y, size_t y_stride) {
    lanes sum[MAX_ROWS * MAX_TILE_PANELS];
    const size_t panel_weights = (size_t)m->padded_inputs * PANEL;
    sums_bf16(rows, panels, x->fp32 + (size_t)row * x->stride, x->stride,
              (const uint16_t *)m->weights + (size_t)panel * panel_weights, panel_weights, m->padded_inputs, sum);
    write_tile(rows, panels, m, panel, activation, sum, y, y_stride);
}

INLINE void tile_int8(const int rows, const int panels, const struct matrix *m, const struct input *x, int row,
                      int panel, enum activation activation, float *y, size_t y_stride) {
    lanes sum[MAX_ROWS * MAX_TILE_PANELS];
    panel_sums integers[MAX_ROWS * MAX_TILE_PANELS];
    sums_int8(rows, panels, x, row, m, panel, integers);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < panels; c++)
            sum[r * panels + c] = multiply(multiply(from_integers(integers[r * panels + c]),
                                                    load(m->step + (panel + c) * PANEL)), all(x->step[row + r]));
    write_tile(rows, panels, m, panel, activation, sum, y, y_stride);
}

#define TILES(rows, precision)                                                                                     \
    static void tiles_##precision##_##rows(const struct matrix *m, const struct input *x, int row, int begin,      \
                                           int end, enum activation activation, float *y, size_t y_stride) {       \
        int panel = begin;                                                                                         \
        for (; panel + PANELS_OF(rows) <= end; panel += PANELS_OF(rows), y += PANELS_OF(rows) * PANEL)             \
            tile_##precision(rows, PANELS_OF(rows), m, x, row, panel, activation, y + (size_t)row * y_stride, y_stride); \
        for (; panel < end; panel++, y += PANEL)                                                                   \
            tile_##precision(rows, 1, m, x, row, panel, activation, y + (size_t)row * y_stride, y_stride);         \
    }
#define TILES_OF(precision)                                                                                        \
    TILES(1, precision) TILES(2, precision) TILES(3, precision) TILES(4, precision) TILES(5, precision)           \
    TILES(6, precision)
TILES_OF(fp32)
TILES_OF(bf16)
TILES_OF(int8)

typedef void (*tiles)(const struct matrix *, const struct input *, int, int, int, enum activation, float *, size_t);
#define ROW_COUNTS(name) {NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6}
static const tiles TILES_BY[3][MAX_ROWS + 1] = {
    [FP32] = ROW_COUNTS(tiles_fp32), [BF16] = ROW_COUNTS(tiles_bf16), [INT8] = ROW_COUNTS(tiles_int8),
};

#if defined(__AMX_INT8__)
/* ---- tiles of 16 rows in the processor's tile registers ---- */

struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_of_row[16];
    uint8_t n_rows[16];
};

/* C += A B for 32 rows and 32 outputs: tiles 0 to 3 are C, 4 and 5 rows of A, 6 and 7 panels of B. A step of 64 bytes has
   64 inputs of int8 (A unsigned, B signed), or 32 of bf16. */
#define TILE_STEPS(multiply)                                                                                        \
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);                                                     \
    for (size_t k = 0; k < row_bytes; k += 64) {                                                                    \
        _tile_loadd(4, a + k, (long)row_bytes);                                                                     \
        _tile_loadd(6, b + 16 * k, 64);                                                                             \
        multiply(0, 4, 6);                                                                                          \
        if (has_second_panel) { _tile_loadd(7, b + panel_bytes + 16 * k, 64); multiply(1, 4, 7); }                  \
        if (has_second_rows) {                                                                                      \
            _tile_loadd(5, a + 16 * row_bytes + k, (long)row_bytes);                                                \
            multiply(2, 5, 6);                                                                                      \
            if (has_second_panel) multiply(3, 5, 7);                                                                \
        }                                                                                                           \
    }

static void product_in_tiles(const struct matrix *m, const struct input *x, int begin, int end,
                             enum activation activation, float *y, size_t y_stride) {
    struct tile_configuration configuration = {.palette = 1};
    for (int i = 0; i < 8; i++) configuration.bytes_of_row[i] = 64, configuration.n_rows[i] = 16;
    _tile_loadconfig(&configuration);
    const int is_int8 = m->precision == INT8;
    const size_t row_bytes = (size_t)m->padded_inputs * (is_int8 ? 1 : 2), panel_bytes = row_bytes * PANEL;
    _Alignas(64) int32_t sums[4][16][PANEL];
    for (int first = begin; first < end; first += GROUP) {
        const int last = first + GROUP < end ? first + GROUP : end;
        for (int row = 0; row < x->n_rows; row += 32)
            for (int panel = first; panel < last; panel += 2) {
                const int has_second_panel = panel + 1 < last, has_second_rows = row + 16 < x->n_rows;
                const char *a = (is_int8 ? (const char *)x->int8 : (const char *)x->bf16) + (size_t)row * row_bytes;
                const char *b = (const char *)m->weights + (size_t)panel * panel_bytes;
                if (is_int8) { TILE_STEPS(_tile_dpbusd) } else { TILE_STEPS(_tile_dpbf16ps) }
                _tile_stored(0, sums[0], 64);
                _tile_stored(1, sums[1], 64);
                _tile_stored(2, sums[2], 64);
                _tile_stored(3, sums[3], 64);
                for (int c = 0; c <= has_second_panel; c++)
                    for (int r = 0; r < 32 && row + r < x->n_rows; r++) {
                        const int32_t *from = sums[2 * (r / 16) + c][r % 16];
                        lanes sum = load((const float *)(const void *)from);
                        if (is_int8) {
                            const __m512i exact = _mm512_sub_epi32(_mm512_load_si512(from), _mm512_loadu_si512(m->offset + (panel + c) * PANEL));
                            sum.v[0] = (part)_mm512_cvtepi32_ps(exact);
                            sum = multiply(multiply(sum, load(m->step + (panel + c) * PANEL)), all(x->step[row + r]));
                        }
                        write_tile(1, 1, m, panel + c, activation, &sum,
                                   y + (size_t)(row + r) * y_stride + (size_t)(panel + c - begin) * PANEL, y_stride);
                    }
            }
    }
    _tile_release();
}
#endif

enum { MIN_TILE_ROWS = 8 }; /* with fewer, tiles of int8 are slower; the sums are the same */

static void product(const struct matrix *m, const struct input *x, int begin, int end, enum activation activation,
                    float *y, size_t y_stride) {
#if defined(__AMX_INT8__)
    if (m->precision == BF16 || (m->precision == INT8 && x->n_rows >= MIN_TILE_ROWS)) {
        product_in_tiles(m, x, begin, end, activation, y, y_stride);
        return;
    }
#endif
    const int most_rows = m->precision == BF16 && PARTS > 1 ? 4 : MAX_ROWS; /* it has two registers of weights */
    for (int first = begin; first < end; first += GROUP) {
        const int last = first + GROUP < end ? first + GROUP : end;
        float *to = y + (size_t)(first - begin) * PANEL;
        for (int row = 0; row < x->n_rows;) {
            const int left = x->n_rows - row, n_tiles = (left + most_rows - 1) / most_rows;
            const int rows = (left + n_tiles - 1) / n_tiles; /* tiles of about the same size */
            TILES_BY[m->precision][rows](m, x, row, first, last, activation, to, y_stride);
            row += rows;
        }
    }
}

/* ---- inputs ---- */

/* The integers of 16 floats: x / step, ties to even; of both signs up to 127. */
INLINE void write_integers(const lanes x, float step, struct input *input, size_t at) {
    const lanes levels = divide(x, all(step));
    int32_t integers[PANEL];
    EACH_PART {
        const part shifter = part_all(12582912.0f); /* 1.5 2^23: its last bits become the integer */
        const bits integer = (bits)(levels.v[p] + shifter) - (bits)shifter;
        memcpy(integers + p * WIDTH, &integer, sizeof integer);
    }
#if defined(__AVX512VNNI__)
    for (int i = 0; i < PANEL; i++) input->int8[at + (size_t)i] = (int8_t)(integers[i] ^ -128);
#elif defined(__AVX2__)
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
        for (int i = 0; i < m->padded_inputs; i += PANEL)
            write_integers(step != step ? all(0) : i < whole ? load(row + i) : i == whole && rest ? last : all(0),
                           step != step ? 1 : step, &input, at + (size_t)i);
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

static void norm(float *out, const float *x, const float *weight, const float *bias, float eps, int n_rows, int width,
                 size_t stride) {
    for (int r = 0; r < n_rows; r++) norm_row(out + (size_t)r * stride, x + (size_t)r * stride, weight, bias, eps, width);
}

static void add_and_norm(float *x, const float *y, const float *weight, const float *bias, float eps, int n_rows,
                         int width, size_t stride) {
    for (int r = 0; r < n_rows; r++) {
        float *row = x + (size_t)r * stride;
        for (int i = 0; i < width; i += PANEL) store(row + i, add(load(row + i), load(y + (size_t)r * stride + i)));
        if (weight) norm_row(row, row, weight, bias, eps, width);
    }
}

/* ---- attention ---- */

INLINE void score_panels(const int rows, const int panels, const struct head *h, const float *q, size_t q_stride,
                         int panel, float *scores, size_t stride) {
    const size_t panel_floats = (size_t)h->d_k * PANEL;
    const lanes scale = all(1.0f / sqrtf((float)h->d_k));
    lanes sum[MAX_ROWS * MAX_TILE_PANELS];
    sums_fp32(rows, panels, q, q_stride, h->keys + (size_t)panel * panel_floats, panel_floats, PANEL, h->d_k, sum);
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < panels; c++)
            store(scores + (size_t)r * stride + (size_t)(panel + c) * PANEL, multiply(sum[r * panels + c], scale));
}

INLINE void sum_values(const int rows, const int panels, const struct head *h, const float *weights, size_t stride,
                       int panel, float *out, size_t out_stride) {
    lanes sum[MAX_ROWS * MAX_TILE_PANELS];
    sums_fp32(rows, panels, weights, stride, h->values + panel * PANEL, PANEL, h->value_stride, h->n_positions, sum);
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < panels; c++) {
            const int n = h->d_v - (panel + c) * PANEL;
            float *to = out + (size_t)r * out_stride + (size_t)(panel + c) * PANEL;
            if (n >= PANEL) store(to, sum[r * panels + c]);
            else store_first(to, sum[r * panels + c], n);
        }
}

#define ATTENTION(rows)                                                                                              \
    static void scores_##rows(const struct head *h, const float *q, size_t q_stride, float *scores, size_t stride) { \
        const int n_panels = (h->n_positions + PANEL - 1) / PANEL;                                                   \
        int panel = 0;                                                                                               \
        for (; panel + PANELS_OF(rows) <= n_panels; panel += PANELS_OF(rows))                                        \
            score_panels(rows, PANELS_OF(rows), h, q, q_stride, panel, scores, stride);                              \
        for (; panel < n_panels; panel++) score_panels(rows, 1, h, q, q_stride, panel, scores, stride);              \
    }                                                                                                                \
    static void values_##rows(const struct head *h, const float *weights, size_t stride, float *out,                 \
                              size_t out_stride) {                                                                   \
        const int n_panels = (h->d_v + PANEL - 1) / PANEL;                                                           \
        int panel = 0;                                                                                               \
        for (; panel + PANELS_OF(rows) <= n_panels; panel += PANELS_OF(rows))                                        \
            sum_values(rows, PANELS_OF(rows), h, weights, stride, panel, out, out_stride);                           \
        for (; panel < n_panels; panel++) sum_values(rows, 1, h, weights, stride, panel, out, out_stride);           \
    }
ATTENTION(1) ATTENTION(2) ATTENTION(3) ATTENTION(4) ATTENTION(5) ATTENTION(6)

typedef void (*scores_tile)(const struct head *, const float *, size_t, float *, size_t);
static const scores_tile SCORES_OF[] = ROW_COUNTS(scores), VALUES_OF[] = ROW_COUNTS(values);

/* Softmax of n scores in place; what follows them up to a multiple of 16 becomes 0. */
INLINE void softmax(float *scores, int n) {
    const int whole = (n + PANEL - 1) / PANEL * PANEL;
    for (int i = n; i < whole; i++) scores[i] = -INFINITY;
    lanes highest = load(scores);
    for (int i = PANEL; i < whole; i += PANEL) highest = maximum(highest, load(scores + i));
    const lanes shift = all(largest_of(highest));
    lanes total = all(0);
    for (int i = 0; i < whole; i += PANEL) {
        const lanes e = exponential(subtract(load(scores + i), shift));
        store(scores + i, e);
        total = add(total, e);
    }
    const lanes scale = all(1.0f / sum_of(total));
    for (int i = 0; i < whole; i += PANEL) store(scores + i, multiply(load(scores + i), scale));
}

static void attend(const struct head *h, const float *q, size_t q_stride, int n_queries, int n_first,
                   const uint8_t *seen, size_t seen_stride, float *out, size_t out_stride, float *room) {
    const size_t stride = ((size_t)h->n_positions + PANEL - 1) / PANEL * PANEL;
    for (int row = 0; row < n_queries; row += MAX_ROWS) {
        const int rows = n_queries - row < MAX_ROWS ? n_queries - row : MAX_ROWS;
        SCORES_OF[rows](h, q + (size_t)row * q_stride, q_stride, room, stride);
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
            softmax(scores, n);
            float *recorded = h->recorded ? h->recorded + (size_t)(row + r) * (size_t)h->n_positions : NULL;
            for (int i = 0; recorded && i < n; i++) recorded[i] += scores[i];
        }
        VALUES_OF[rows](h, room, stride, out + (size_t)row * out_stride, out_stride);
    }
}

static void pack_keys(const float *x, size_t stride, int n_positions, int width, float *keys) {
    for (int position = 0; position < n_positions; position++) {
        float *to = keys + (size_t)(position / PANEL) * (size_t)width * PANEL + position % PANEL;
        const float *from = x + (size_t)position * stride;
        for (int i = 0; i < width; i++) to[(size_t)i * PANEL] = from[i];
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

const struct kernels JOIN(kernels_, ISA_NAME) = {
    TEXT(ISA_NAME), prepare, product, add_and_norm, norm, attend, largest, add_to_softmax, pack_keys,
};
