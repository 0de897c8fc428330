/* Which kernels this processor runs. */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

#include "kernels.h"
#include "transduce.h"

extern const struct kernels kernels_portable;
extern const struct kernels kernels_avx2, kernels_avx512, kernels_amx, kernels_neon; /* those that were compiled */
#if defined(__x86_64__)

static __attribute__((unused)) int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static __attribute__((unused)) int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

/* Linux lends tiles to a process that asks for them. */
static __attribute__((unused)) int has_amx(void) {
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

const struct kernels *kernels_named(const char *name) {
    const struct kernels *usable[5]; /* the best first */
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
#if defined(WITH_AVX2)
    if (has_avx2()) usable[n++] = &kernels_avx2;
#endif
#if defined(WITH_NEON)
    usable[n++] = &kernels_neon;
#endif
    usable[n++] = &kernels_portable;
    /* Compiled, but not yet tried on such a processor: by name only. */
#if defined(WITH_AMX)
    if (has_amx()) usable[n++] = &kernels_amx;
#endif
#if defined(WITH_AVX512)
    if (has_avx512()) usable[n++] = &kernels_avx512;
#endif
    for (int i = 0; i < n; i++)
        if (!name || !*name || !strcmp(name, usable[i]->name)) return usable[i];
    return NULL;
}

int32_t td_abi(void) { return TD_ABI; }

const char *td_isa(void) { return kernels_named(getenv("TRANSDUCE_ISA"))->name; }
