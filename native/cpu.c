/* Which kernels this processor runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(_WIN32)
__declspec(dllimport) int __stdcall IsProcessorFeaturePresent(unsigned long); /* windows.h has an INT8 of its own */
#endif

#include "kernels.h"
#include "transduce.h"

extern const struct kernels kernels_portable, kernels_avx2, kernels_avx512, kernels_amx, kernels_neon;

static int always(void) { return 1; }

#if defined(__x86_64__)
/* By cpuid itself: what zig's compiler makes of __builtin_cpu_supports says no to everything. */
enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX2 = 1 << 5, AVX512 = (int)(1u << 16 | 1u << 17 | 1u << 30 | 1u << 31), VNNI = 1 << 11,
       AVX512_BF16 = 1 << 5, YMM_STATE = 0x6, ZMM_STATE = 0xe6 }; /* AVX512: F, DQ, BW, VL */

static int has_all(unsigned flags, int wanted) { return (flags & (unsigned)wanted) == (unsigned)wanted; }

/* Whether the system keeps these registers for each process (XCR0). */
static int keeps(int state) {
    unsigned a, b, c, d, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(high) : "c"(0));
    return has_all(a, state);
}
#endif

#if defined(WITH_AVX2)
static int has_avx2(void) {
    unsigned a, b, c, d;
    if (!keeps(YMM_STATE) || !__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, FMA)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && has_all(b, AVX2);
}
#endif

#if defined(WITH_AVX512)
static int has_avx512(void) {
    unsigned a, b, c, d;
    return has_avx2() && keeps(ZMM_STATE) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && has_all(b, AVX512) && has_all(c, VNNI);
}
#endif

#if defined(WITH_AMX)
/* Linux lends tiles to a process that asks for them, unless a sandbox forbids it. */
static int has_amx(void) {
#if defined(__linux__)
    unsigned a, b, c, d;
    enum { BF16_BIT = 1 << 22, TILE_BIT = 1 << 24, INT8_BIT = 1 << 25, ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    if (!has_avx512() || !__get_cpuid_count(7, 1, &a, &b, &c, &d) || !has_all(a, AVX512_BF16)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (~d & (BF16_BIT | TILE_BIT | INT8_BIT)) return 0;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
#else
    return 0;
#endif
}
#endif

#if defined(WITH_NEON)
static int has_dot_products(void) {
#if defined(__linux__)
    enum { ASIMDDP = 1 << 20 };
    return (getauxval(AT_HWCAP) & ASIMDDP) != 0;
#elif defined(_WIN32)
    return IsProcessorFeaturePresent(43 /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */);
#else
    return 1; /* Apple's processors for computers */
#endif
}
#endif

static const struct { const struct kernels *kernels; int (*is_usable)(void); } KERNELS[] = { /* the best first */
#if defined(WITH_AMX)
    {&kernels_amx, has_amx},
#endif
#if defined(WITH_AVX512)
    {&kernels_avx512, has_avx512},
#endif
#if defined(WITH_AVX2)
    {&kernels_avx2, has_avx2},
#endif
#if defined(WITH_NEON)
    {&kernels_neon, has_dot_products},
#endif
    {&kernels_portable, always},
};

/* Whether kernels compute a product as the portable ones do, within the rounding of sums in another order: those that
   only ran in an emulation are believed where they are right. */
static int computes(const struct kernels *kernels, enum precision precision) {
    enum { ROWS = 19, INPUTS = 128, WIDEST = 4 };
    static const double tolerance[] = {[FP32] = 1e-5, [BF16] = 0.02, [INT8] = 1e-5};
    const int group = precision == FP32 ? 1 : precision == BF16 ? 2 : 4, n_weights = INPUTS * PANEL;
    float x[ROWS * INPUTS], step[PANEL], y[2][ROWS * PANEL];
    int32_t offset[PANEL] = {0};
    _Alignas(64) char weights[INPUTS * PANEL * WIDEST];
    for (int i = 0; i < n_weights; i++) {
        const int integer = i * 37 % 255 - 127; /* exact in all precisions */
        const float number = (float)integer / 128;
        if (precision == FP32) memcpy(weights + i * 4, &number, 4);
        if (precision == BF16) memcpy(weights + i * 2, (const char *)&number + 2, 2); /* its upper half */
        if (precision == INT8) weights[i] = (char)integer, offset[i / group % PANEL] += 128 * integer;
    }
    for (int i = 0; i < ROWS * INPUTS; i++) x[i] = i % INPUTS ? (float)(i * 61 % 195 - 97) / 64 : 97.0f / 64; /* no ties in int8 */
    for (int o = 0; o < PANEL; o++) step[o] = 0.01f + (float)o / 512;
    const struct matrix m = {.n_outputs = PANEL, .n_inputs = INPUTS, .n_panels = 1, .padded_inputs = INPUTS, .precision = precision,
                             .panel_stride = INPUTS * PANEL, .input_stride = PANEL, .weights = weights, .step = step, .offset = offset};
    _Alignas(64) char room[(ROWS + 32) * (INPUTS * 2 + sizeof(float)) + 128];
    for (int which = 0; which < 2; which++) {
        const struct kernels *tried = which ? kernels : &kernels_portable;
        const struct input input = tried->prepare(&m, x, INPUTS, ROWS, room);
        tried->product(&m, &input, 0, 1, LINEAR, y[which], PANEL);
    }
    for (int i = 0; i < ROWS * PANEL; i++)
        if (!(fabs((double)y[0][i] - y[1][i]) <= tolerance[precision] * (1 + fabs((double)y[0][i])))) return 0;
    return 1;
}

static int is_right(const struct kernels *kernels) {
    return kernels == &kernels_portable || (computes(kernels, FP32) && computes(kernels, BF16) && computes(kernels, INT8));
}

const struct kernels *kernels_named(const char *name) {
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if ((!name || !*name || !strcmp(name, KERNELS[i].kernels->name)) && KERNELS[i].is_usable() && is_right(KERNELS[i].kernels))
            return KERNELS[i].kernels;
    return NULL;
}

int32_t td_abi(void) { return TD_ABI; }

const char *td_isa(void) {
    const struct kernels *usable = kernels_named(getenv("TRANSDUCE_ISA"));
    return usable ? usable->name : "";
}
