/* Attention in training. */
#include <stdlib.h>

#include "kernels.h"
#include "transduce.h"

int32_t td_attend(const struct td_attention *t, int32_t first, int32_t end) {
    static const struct kernels *_Atomic found; /* the same by every thread */
    const struct kernels *usable = found;
    if (!usable) found = usable = kernels_named(getenv("TRANSDUCE_ISA"));
    if (!usable) return 4;
    int n_keys = 0;
    for (int32_t sentence = first; sentence < end; sentence++) {
        const int n = t->key_offsets[sentence + 1] - t->key_offsets[sentence];
        n_keys = n > n_keys ? n : n_keys;
    }
    float *room = malloc(training_floats(t->d_k, t->d_v, n_keys) * sizeof *room);
    if (!room) return 3;
    usable->attend_in_training(t, first, end, room);
    free(room);
    return 0;
}
