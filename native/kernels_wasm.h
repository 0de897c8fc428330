/* The sums of int8 products in a browser: weights become 16 bits, and pairs of products are added without saturation. */
#ifndef KERNELS_WASM_H
#define KERNELS_WASM_H

#include <wasm_simd128.h>

/* Some quarters of a panel at a time, four outputs each, so that all sums stay in 16 registers. */
INLINE void sums_int8_quarters(const int rows, const int quarters, const int16_t *x, size_t x_stride, const int8_t *w, int n_inputs,
                               int32_t *sum, size_t sum_stride) {
    v128_t low[MAX_ROWS * 4], high[MAX_ROWS * 4];
    UNROLL for (int i = 0; i < rows * quarters; i++) low[i] = high[i] = wasm_i32x4_const_splat(0);
    for (int i = 0; i < n_inputs; i += 4) {
        UNROLL for (int q = 0; q < quarters; q++) {
            const v128_t first = wasm_i16x8_load8x8(w + (size_t)i * PANEL + (size_t)q * 16);
            const v128_t second = wasm_i16x8_load8x8(w + (size_t)i * PANEL + (size_t)q * 16 + 8);
            UNROLL for (int r = 0; r < rows; r++) {
                const v128_t inputs = wasm_v128_load64_splat(x + (size_t)r * x_stride + (size_t)i);
                low[r * quarters + q] = wasm_i32x4_add(low[r * quarters + q], wasm_i32x4_dot_i16x8(inputs, first));
                high[r * quarters + q] = wasm_i32x4_add(high[r * quarters + q], wasm_i32x4_dot_i16x8(inputs, second));
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int q = 0; q < quarters; q++) {
            const v128_t a = low[r * quarters + q], b = high[r * quarters + q];
            wasm_v128_store(sum + (size_t)r * sum_stride + 4 * q,
                            wasm_i32x4_add(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7)));
        }
}

INLINE void sums_int8(const int rows, const int panels, const struct input *x, int row, const struct matrix *m,
                      int panel, panel_sums *sum) {
    const int quarters = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
    const int16_t *from = x->int16 + (size_t)row * x->stride;
    for (int c = 0; c < panels; c++) {
        const int8_t *w = (const int8_t *)m->weights + (size_t)(panel + c) * m->panel_stride;
        for (int q = 0; q < 4; q += quarters)
            sums_int8_quarters(rows, quarters, from, x->stride, w + (size_t)q * 16, m->padded_inputs, sum[c] + 4 * q, (size_t)panels * PANEL);
    }
}
#endif
