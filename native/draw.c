/* Sampling: tokens drawn from the model's distribution, reshaped by temperature, top-k and top-p. */
#include <math.h>
#include <stdlib.h>

#include "search.h"

enum { N_STATE = 624, N_SHIFT = 397 };

/* A Mersenne twister for each sentence, as torch.Generator is one: Matsumoto and Nishimura (1998). */
static uint32_t draw_bits(struct beams *b) {
    uint32_t *state = b->generator;
    if (b->n_drawn == N_STATE) {
        for (int i = 0; i < N_STATE; i++) {
            const uint32_t y = (state[i] & 0x80000000u) | (state[(i + 1) % N_STATE] & 0x7fffffffu);
            state[i] = state[(i + N_SHIFT) % N_STATE] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        b->n_drawn = 0;
    }
    uint32_t y = state[b->n_drawn++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* From 0 to below 1, of 53 bits. */
static double draw_uniform(struct beams *b) {
    const uint64_t high = draw_bits(b), low = draw_bits(b);
    return (double)((high << 32 | low) & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}

void seed_draws(struct search *s) {
    for (int i = 0; i < s->request->n_sentences; i++) {
        struct beams *b = &s->beams[i];
        b->generator[0] = s->request->seeds[i];
        for (uint32_t n = 1; n < N_STATE; n++)
            b->generator[n] = 1812433253u * (b->generator[n - 1] ^ (b->generator[n - 1] >> 30)) + n;
        b->n_drawn = N_STATE;
    }
}

struct token {
    double probability; /* not normalised */
    int32_t id;
};

static int by_probability(const void *a, const void *b) {
    const struct token *x = a, *y = b;
    return x->probability > y->probability ? -1 : x->probability < y->probability ? 1 : x->id - y->id;
}

static int by_id(const void *a, const void *b) { return ((const struct token *)a)->id - ((const struct token *)b)->id; }

/* Keep the top_k most probable tokens, then the fewest of these with probability top_p (Holtzman et al., 2020), in the
   order of their ids; how many. */
static int cut(struct token *tokens, int n, int top_k, double top_p) {
    qsort(tokens, (size_t)n, sizeof *tokens, by_probability);
    if (top_k && top_k < n) n = top_k;
    double sum = 0, before = 0;
    for (int i = 0; i < n; i++) sum += tokens[i].probability;
    int n_kept = 0;
    while (n_kept < n && before < top_p * sum) before += tokens[n_kept++].probability;
    qsort(tokens, (size_t)n_kept, sizeof *tokens, by_id);
    return n_kept;
}

/* The token where the cumulative distribution reaches `uniform`, and its log-probability; -1 without one. */
static int32_t draw_token(const struct search *s, const struct row *row, const float *logits, double uniform,
                          struct token *tokens, double *log_prob) {
    const struct td_search *r = s->request;
    double highest = -INFINITY, total = 0, sum = 0;
    int n = 0, chosen = -1;
    for (int i = 0; i < s->output.n_outputs; i++) {
        if (logits[i] != logits[i]) return -1;
        const int32_t id = s->token_of ? s->token_of[i] : i;
        if (!may_follow(s, row, id)) continue;
        tokens[n++] = (struct token){logits[i], id};
        if (logits[i] > highest) highest = logits[i];
    }
    if (highest == -INFINITY) return -1;
    for (int i = 0; i < n; i++) {
        const double logit = tokens[i].probability - highest;
        tokens[i].probability = r->temperature > 0 ? exp(logit / r->temperature) : logit == 0;
    }
    if (r->temperature <= 0 || r->top_k || r->top_p < 1) n = cut(tokens, n, r->temperature <= 0 ? 1 : r->top_k, r->top_p);
    for (int i = 0; i < n; i++) total += tokens[i].probability;
    for (int i = 0; i < n; i++) {
        if (tokens[i].probability <= 0) continue;
        chosen = i;
        sum += tokens[i].probability;
        if (uniform * total < sum) break;
    }
    *log_prob = log(tokens[chosen].probability / total);
    return tokens[chosen].id;
}

int draw_tokens(struct search *s, int n_rows) {
    const struct td_search *r = s->request;
    const size_t stride = (size_t)s->output.n_panels * PANEL;
    struct token *tokens = malloc(stride * sizeof *tokens);
    int32_t *sentences = malloc((size_t)n_rows * sizeof *sentences);
    double *draws = malloc((size_t)n_rows * sizeof *draws);
    int status = tokens && sentences && draws ? 0 : NO_MEMORY;
    all_logits(s, n_rows, s->whole);
    for (int i = 0; i < n_rows && !status; i++) {
        sentences[i] = s->rows[i].beams->index;
        if (!r->draw) draws[i] = draw_uniform(s->rows[i].beams);
    }
    if (r->draw && !status && r->draw(n_rows, sentences, draws)) status = STOPPED;
    for (int i = 0; i < n_rows && !status; i++) {
        const struct row *row = &s->rows[i];
        float *logits = s->whole + (size_t)i * stride;
        for (size_t j = 0; s->token_of && j < stride; j++)
            if (!s->is_listed[(size_t)row->beams->index * stride + j]) logits[j] = -INFINITY;
        double log_prob = 0;
        s->top_ids[i] = draw_token(s, row, logits, draws[i], tokens, &log_prob);
        s->top[i] = (float)log_prob;
    }
    free(tokens), free(sentences), free(draws);
    return status;
}
