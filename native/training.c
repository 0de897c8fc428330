/* What training computes in C: attention and the loss. */
#include <stdlib.h>

#include "kernels.h"
#include "transduce.h"

static const struct kernels *usable(void) {
    static const struct kernels *_Atomic found; /* the same by every thread */
    const struct kernels *kernels = found;
    if (!kernels) found = kernels = kernels_named(getenv("TRANSDUCE_ISA"));
    return kernels;
}

int32_t td_attend(const struct td_attention *t, int32_t first, int32_t end) {
    const struct kernels *kernels = usable();
    if (!kernels) return 4;
    int n_keys = 0;
    for (int32_t sentence = first; sentence < end; sentence++) {
        const int n = t->key_offsets[sentence + 1] - t->key_offsets[sentence];
        n_keys = n > n_keys ? n : n_keys;
    }
    float *room = malloc(training_floats(t->d_k, t->d_v, n_keys) * sizeof *room);
    if (!room) return 3;
    kernels->attend_in_training(t, first, end, room);
    free(room);
    return 0;
}

int32_t td_cross_entropy(const struct td_cross_entropy *t, int32_t first, int32_t end) {
    const struct kernels *kernels = usable();
    if (!kernels) return 4;
    for (int32_t row = first; row < end; row++)
        if (t->targets[row] < 0 || t->targets[row] >= t->vocab_size) return 2;
    float *room = malloc(loss_floats(t->n_passes, t->vocab_size) * sizeof *room);
    if (!room) return 3;
    kernels->cross_entropy(t, first, end, room);
    free(room);
    return 0;
}

void td_share(struct td_shared *shared) {
    for (;;) {
        const int32_t part = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
        if (part >= shared->n_parts) return;
        const int64_t n = shared->n;
        const int32_t status = shared->function(shared->call, (int32_t)(n * part / shared->n_parts), (int32_t)(n * (part + 1) / shared->n_parts));
        if (status) __atomic_store_n(&shared->status, status, __ATOMIC_RELAXED);
    }
}
