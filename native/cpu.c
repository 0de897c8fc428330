/* Which kernels this processor runs. */
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
#include <windows.h>
#endif

#include "kernels.h"
#include "transduce.h"

extern const struct kernels kernels_portable, kernels_avx2, kernels_avx512, kernels_amx, kernels_neon;

static int always(void) { return 1; }

#if defined(WITH_AVX2)
static int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

#if defined(WITH_AVX512)
static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

#if defined(WITH_AMX)
/* Linux lends tiles to a process that asks for them, unless a sandbox forbids it. */
static int has_amx(void) {
#if defined(__linux__)
    unsigned a, b, c, d;
    enum { BF16_BIT = 1 << 22, TILE_BIT = 1 << 24, INT8_BIT = 1 << 25, ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    if (!has_avx512() || !__builtin_cpu_supports("avx512bf16") || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
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

const struct kernels *kernels_named(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if ((!name || !*name || !strcmp(name, KERNELS[i].kernels->name)) && KERNELS[i].is_usable()) return KERNELS[i].kernels;
    return NULL;
}

int32_t td_abi(void) { return TD_ABI; }

const char *td_isa(void) {
    const struct kernels *usable = kernels_named(getenv("TRANSDUCE_ISA"));
    return usable ? usable->name : "";
}
