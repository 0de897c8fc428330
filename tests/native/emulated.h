/* AVX-512 and AMX in plain C, by Intel's documentation of each instruction: gcc -include emulated.h runs the kernels of
   such processors on any machine, slowly. */
#define _IMMINTRIN_H_INCLUDED /* of gcc */
#define __IMMINTRIN_H         /* of clang */
#define __AVX512F__ 1
#define __AVX512VNNI__ 1
#if defined(EMULATED_AMX)
#define __AMX_INT8__ 1
#define __AMX_BF16__ 1
#endif

#define KEEP_IN_REGISTER(sum) /* which these machines do not have */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef float __m512 __attribute__((vector_size(64)));
typedef int64_t __m512i __attribute__((vector_size(64)));
typedef int64_t __m256i __attribute__((vector_size(32)));
typedef uint16_t __m256bh __attribute__((vector_size(32)));
typedef union { __m512 f; __m512i i; float f32[16]; int32_t i32[16]; uint8_t u8[64]; int8_t i8[64]; } emulated;
#define EMULATED static inline __attribute__((unused))
#define EACH for (int i = 0; i < 16; i++)

EMULATED __m512 _mm512_set1_ps(float x) { emulated out; EACH out.f32[i] = x; return out.f; }
EMULATED __m512i _mm512_set1_epi32(int32_t x) { emulated out; EACH out.i32[i] = x; return out.i; }
EMULATED __m512i _mm512_setzero_si512(void) { return _mm512_set1_epi32(0); }
EMULATED __m512i _mm512_loadu_si512(const void *from) { __m512i out; memcpy(&out, from, 64); return out; }
EMULATED void _mm512_storeu_si512(void *to, __m512i x) { memcpy(to, &x, 64); }
EMULATED __m512i _mm512_load_si512(const void *from) {
    if ((uintptr_t)from % 64) abort();
    return _mm512_loadu_si512(from);
}
EMULATED void _mm256_storeu_si256(__m256i *to, __m256i x) { memcpy(to, &x, 32); }

EMULATED __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
    emulated x = {a}, y = {b}, z = {c};
    EACH z.f32[i] = fmaf(x.f32[i], y.f32[i], z.f32[i]);
    return z.f;
}
EMULATED __m512 _mm512_max_ps(__m512 a, __m512 b) {
    emulated x = {a}, y = {b};
    EACH x.f32[i] = x.f32[i] > y.f32[i] ? x.f32[i] : y.f32[i];
    return x.f;
}
EMULATED __m512i _mm512_sub_epi32(__m512i a, __m512i b) {
    emulated x = {.i = a}, y = {.i = b};
    EACH x.i32[i] = (int32_t)((uint32_t)x.i32[i] - (uint32_t)y.i32[i]);
    return x.i;
}
EMULATED __m512 _mm512_cvtepi32_ps(__m512i a) {
    emulated x = {.i = a};
    EACH x.f32[i] = (float)x.i32[i];
    return x.f;
}
EMULATED __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
    emulated total = {.i = sum}, x = {.i = a}, y = {.i = b};
    for (int i = 0; i < 64; i++) total.i32[i / 4] += x.u8[i] * y.i8[i];
    return total.i;
}

/* Ties to even; subnormal numbers are 0. */
EMULATED uint16_t emulated_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return (uint16_t)(bits >> 16 | 0x40);
    if (!(bits & 0x7f800000)) return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
EMULATED __m256bh _mm512_cvtneps_pbh(__m512 a) {
    emulated x = {a};
    uint16_t rounded[16];
    __m256bh out;
    EACH rounded[i] = emulated_bf16(x.f32[i]);
    memcpy(&out, rounded, sizeof out);
    return out;
}

#if defined(EMULATED_AMX)
static _Thread_local struct { uint8_t rows[8], palette; uint16_t bytes[8]; union { uint8_t bytes[16][64]; int8_t i8[16][64]; int32_t i32[16][16]; float f32[16][16]; uint16_t bf16[16][32]; } tile[8]; } amx;

EMULATED void _tile_release(void) { memset(&amx, 0, sizeof amx); }
EMULATED void _tile_loadconfig(const void *from) {
    const uint8_t *bytes = from;
    _tile_release();
    amx.palette = bytes[0];
    for (int t = 0; t < 8; t++) {
        amx.rows[t] = bytes[48 + t];
        amx.bytes[t] = (uint16_t)(bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8);
        if (amx.palette != 1 || amx.rows[t] > 16 || amx.bytes[t] > 64) abort();
    }
    for (int i = 1; i < 16; i++) if (bytes[i]) abort();
}
static inline int emulated_tile(int t) {
    if (amx.palette != 1 || t > 7 || !amx.rows[t]) abort();
    return t;
}
EMULATED void _tile_zero(int t) { memset(&amx.tile[emulated_tile(t)], 0, 1024); }
EMULATED void _tile_loadd(int t, const void *from, long stride) {
    _tile_zero(t);
    for (int r = 0; r < amx.rows[t]; r++) memcpy(amx.tile[t].bytes[r], (const char *)from + r * stride, amx.bytes[t]);
}
EMULATED void _tile_stored(int t, void *to, long stride) {
    for (int r = 0; r < amx.rows[emulated_tile(t)]; r++) memcpy((char *)to + r * stride, amx.tile[t].bytes[r], amx.bytes[t]);
}
EMULATED void _tile_dpbusd(int c, int a, int b) {
    for (int m = 0; m < amx.rows[emulated_tile(c)]; m++)
        for (int k = 0; k < amx.bytes[a] / 4; k++)
            for (int n = 0; n < amx.bytes[c] / 4; n++)
                for (int j = 0; j < 4; j++) amx.tile[c].i32[m][n] += amx.tile[a].bytes[m][4 * k + j] * amx.tile[b].i8[k][4 * n + j];
}
EMULATED float emulated_float(uint16_t x) {
    uint32_t bits = x & 0x7f80 ? (uint32_t)x << 16 : (uint32_t)(x & 0x8000) << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}
EMULATED void _tile_dpbf16ps(int c, int a, int b) {
    for (int m = 0; m < amx.rows[emulated_tile(c)]; m++) {
        float sum[2][16] = {{0}};
        for (int k = 0; k < amx.bytes[a] / 4; k++)
            for (int n = 0; n < amx.bytes[c] / 4; n++)
                for (int j = 0; j < 2; j++) sum[j][n] = fmaf(emulated_float(amx.tile[a].bf16[m][2 * k + j]), emulated_float(amx.tile[b].bf16[k][2 * n + j]), sum[j][n]);
        for (int n = 0; n < 16; n++) amx.tile[c].f32[m][n] += sum[0][n] + sum[1][n];
    }
}
#endif
#undef EACH
#undef EMULATED
