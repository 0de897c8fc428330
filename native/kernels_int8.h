/* The exact sums of int8 products, by what each processor has: `rows` rows from `row` on, `panels` panels from `panel` on. */
#ifndef KERNELS_INT8_H
#define KERNELS_INT8_H

#include "kernels.h"
#include "lanes.h"

enum {
    MAX_ROWS = 6, /* of a tile, whose sums stay in registers: at most 12 of 16, or 24 of 32 */
    MAX_TILE_PANELS = 4,
    GROUP = 4 * MAX_TILE_PANELS, /* panels of weights that all rows are multiplied with before the next ones */
};
#define UNROLL _Pragma("GCC unroll 24")

typedef int32_t panel_sums[PANEL];

#if defined(__AVX512VNNI__)
#ifndef KEEP_IN_REGISTER
#define KEEP_IN_REGISTER(sum) __asm__ volatile("" : "+v"(sum)) /* gcc would copy all of them in each turn */
#endif
INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    const size_t panel_bytes = m->panel_stride;
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
            UNROLL for (int c = 0; c < panels; c++) {
                total[r * panels + c] = _mm512_dpbusd_epi32(total[r * panels + c], inputs, weight[c]);
                KEEP_IN_REGISTER(total[r * panels + c]);
            }
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
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * m->panel_stride;
        const int16_t *from = x->int16 + (size_t)row * x->stride;
        sums_int8_half(rows, from, x->stride, w, m->padded_inputs, sum + c, panels, 0);
        sums_int8_half(rows, from, x->stride, w + 32, m->padded_inputs, sum + c, panels, 1);
    }
}
#elif defined(__ARM_FEATURE_DOTPROD)
INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * m->panel_stride;
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
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * m->panel_stride;
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
#endif
