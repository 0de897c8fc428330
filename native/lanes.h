/* Sixteen floats as one value: the width of a panel of weights on every processor.

   A sum over lanes has the same order everywhere, and products are added by fused multiply-add where the processor has
   it, so a number does not depend on the rows that are computed beside it. */
#ifndef LANES_H
#define LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDTH 16
#elif defined(__AVX2__)
#include <immintrin.h>
#define WIDTH 8
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#define WIDTH 4
#else
#define WIDTH 4
#define ROUNDS_PRODUCTS /* of multiply_add */
#endif
#define PARTS (16 / WIDTH)
#define INLINE static inline __attribute__((always_inline))
#define EACH_PART _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++)

typedef float part __attribute__((vector_size(4 * WIDTH)));
typedef float part_unaligned __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * WIDTH)));
typedef struct { part v[PARTS]; } lanes;

INLINE part part_all(float x) {
#if defined(__AVX512F__)
    return (part)_mm512_set1_ps(x);
#elif defined(__AVX2__)
    return (part)_mm256_set1_ps(x);
#else
    return (part){x, x, x, x};
#endif
}

INLINE part part_multiply_add(part a, part b, part c) {
#if defined(__AVX512F__)
    return (part)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (part)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
    return (part)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

/* a where the mask is set, else b. */
INLINE part part_choose(bits mask, part a, part b) { return (part)((mask & (bits)a) | (~mask & (bits)b)); }

/* b if either is NaN, as the instructions of processors give it. */
INLINE part part_max(part a, part b) {
#if defined(__AVX512F__)
    return (part)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (part)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return part_choose((bits)(a > b), a, b);
#endif
}

INLINE lanes all(float x) {
    lanes out;
    EACH_PART out.v[p] = part_all(x);
    return out;
}

INLINE lanes load(const float *from) {
    lanes out;
    EACH_PART out.v[p] = ((const part_unaligned *)from)[p];
    return out;
}

INLINE void store(float *to, lanes x) {
    EACH_PART ((part_unaligned *)to)[p] = x.v[p];
}

/* The first n of 16 floats; the others are `rest`. */
INLINE lanes load_first(const float *from, int n, float rest) {
    float all_of_them[16];
    for (int i = 0; i < 16; i++) all_of_them[i] = i < n ? from[i] : rest;
    return load(all_of_them);
}

#define LANEWISE(name, expression)                         \
    INLINE lanes name(lanes a, lanes b) {                  \
        lanes out;                                         \
        EACH_PART {                                        \
            const part x = a.v[p], y = b.v[p];             \
            out.v[p] = (expression);                       \
        }                                                  \
        return out;                                        \
    }
LANEWISE(add, x + y)
LANEWISE(subtract, x - y)
LANEWISE(multiply, x *y)
LANEWISE(divide, x / y)
LANEWISE(maximum, part_max(x, y))

INLINE lanes multiply_add(lanes a, lanes b, lanes c) {
    lanes out;
    EACH_PART out.v[p] = part_multiply_add(a.v[p], b.v[p], c.v[p]);
    return out;
}

/* x / y, of 1 / y. Where additions are fused, from the remainder: as exact, and ten times as fast (Markstein, 1990). */
INLINE lanes quotient(lanes x, float y, float reciprocal) {
#if defined(ROUNDS_PRODUCTS)
    (void)reciprocal;
    return divide(x, all(y));
#else
    const lanes near = multiply(x, all(reciprocal)), remainder = multiply_add(near, all(-y), x);
    return multiply_add(remainder, all(reciprocal), near);
#endif
}

INLINE float sum_of(lanes x) {
    float v[16];
    store(v, x);
    for (int i = 0; i < 8; i++) v[i] += v[i + 8];
    for (int i = 0; i < 4; i++) v[i] += v[i + 4];
    return (v[0] + v[2]) + (v[1] + v[3]);
}

INLINE float largest_of(lanes x) {
    float v[16];
    store(v, x);
    for (int i = 0; i < 8; i++) v[i] = v[i] > v[i + 8] ? v[i] : v[i + 8];
    for (int i = 0; i < 4; i++) v[i] = v[i] > v[i + 4] ? v[i] : v[i + 4];
    for (int i = 0; i < 2; i++) v[i] = v[i] > v[i + 2] ? v[i] : v[i + 2];
    return v[0] > v[1] ? v[0] : v[1];
}

/* e^x to about one unit in the last place, for x up to 88; 0 below -87.3. After Cody and Waite (1980): x = n ln 2 + r,
   and a polynomial for e^r. */
INLINE lanes exponential(lanes x) {
    lanes out;
    EACH_PART {
        const part raw = x.v[p], clipped = part_max(part_all(-87.3f), raw);
        const part shifter = part_all(12582912.0f); /* 1.5 2^23: adding it rounds to an integer */
        const part z = part_multiply_add(clipped, part_all(1.44269504f), shifter), n = z - shifter;
        part r = part_multiply_add(n, part_all(-0.693359375f), clipped);
        r = part_multiply_add(n, part_all(2.12194440e-4f), r);
        part e = part_all(1.9875691500e-4f);
        e = part_multiply_add(e, r, part_all(1.3981999507e-3f));
        e = part_multiply_add(e, r, part_all(8.3334519073e-3f));
        e = part_multiply_add(e, r, part_all(4.1665795894e-2f));
        e = part_multiply_add(e, r, part_all(1.6666665459e-1f));
        e = part_multiply_add(e, r, part_all(5.0000001201e-1f));
        e = part_multiply_add(e, r * r, r) + part_all(1.0f);
        const part scaled = (part)((bits)e + ((bits)z << 23));
        out.v[p] = part_choose((bits)(raw < part_all(-87.3f)), part_all(0.0f), scaled);
    }
    return out;
}

/* 1 / (1 + e^-x) */
INLINE lanes sigmoid(lanes x) {
    const lanes negative = maximum(subtract(all(0), x), all(-87));
    lanes bounded = negative;
    EACH_PART bounded.v[p] = part_choose((bits)(negative.v[p] > part_all(87)), part_all(87), negative.v[p]);
    return divide(all(1), add(all(1), exponential(bounded)));
}

/* The error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
INLINE lanes error_function(lanes x) {
    const lanes size = maximum(x, subtract(all(0), x));
    const lanes t = divide(all(1), multiply_add(all(0.3275911f), size, all(1)));
    lanes sum = all(1.061405429f);
    sum = multiply_add(sum, t, all(-1.453152027f));
    sum = multiply_add(sum, t, all(1.421413741f));
    sum = multiply_add(sum, t, all(-0.284496736f));
    sum = multiply_add(sum, t, all(0.254829592f));
    const lanes tail = multiply(multiply(sum, t), exponential(subtract(all(0), multiply(size, size))));
    const lanes positive = subtract(all(1), tail);
    lanes out;
    EACH_PART out.v[p] = part_choose((bits)(x.v[p] < part_all(0)), -positive.v[p], positive.v[p]);
    return out;
}
#endif
