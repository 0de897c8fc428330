/* Packing: where each weight of a model is in a block of memory. It follows from the configuration, the precision and
   which tensors there are. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "model.h"

enum {
    LINE = 64,    /* bytes; what is packed begins at a multiple of it */
    ABSENT = 255, /* in place of a tensor's type */
};

/* A pass over all weights: one counts bytes, one fills a block, one finds the weights in a block that was filled. */
struct packer {
    enum { COUNT, FILL, FIND } pass;
    char *block;
    size_t used;
    uint8_t *kinds; /* the type of each tensor that was asked for, in order, or ABSENT */
    int n_kinds, max_kinds;
    const struct td_tensor *tensors; /* NULL: `kinds` says which there are */
    int n_tensors;
    float *row;      /* room for the weights of an output */
    char fault[100]; /* the first tensor that is missing or has another shape */
};

static inline size_t lines(size_t n_bytes) { return (n_bytes + LINE - 1) / LINE * LINE; }

void pack_model(struct packer *, td_model *);
#endif
