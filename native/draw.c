/* Sampling: tokens drawn from the model's distribution, reshaped by temperature, top-k and top-p. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

enum { N_STATE = 624, N_SHIFT = 397 };

/* A Mersenne twister, as torch.Generator is one: Matsumoto and Nishimura (1998). */
struct generator {
    uint32_t state[N_STATE];
    int n_drawn; /* of these numbers */
};

static uint32_t draw_bits(struct generator *g) {
    uint32_t *state = g->state;
    if (g->n_drawn == N_STATE) {
        for (int i = 0; i < N_STATE; i++) {
            const uint32_t y = (state[i] & 0x80000000u) | (state[(i + 1) % N_STATE] & 0x7fffffffu);
            state[i] = state[(i + N_SHIFT) % N_STATE] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        g->n_drawn = 0;
    }
    uint32_t y = state[g->n_drawn++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* From 0 to below 1, of 53 bits. */
static double draw_uniform(struct generator *g) {
    const uint64_t high = draw_bits(g), low = draw_bits(g);
    return (double)((high << 32 | low) & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}

int begin_draws(struct search *s) {
    const struct td_search *r = s->request;
    struct generator *g = table(s, (size_t)r->n_sentences, sizeof *g);
    const size_t n_drafts = r->draft ? (size_t)(r->n_sentences * r->n_drafted) : 0;
    s->draft_probabilities = table(s, n_drafts * (size_t)s->output.n_outputs, sizeof(float));
    for (int i = 0; s->has_room && i < r->n_sentences; i++, g++) {
        g->state[0] = r->seeds[i];
        for (uint32_t n = 1; n < N_STATE; n++) g->state[n] = 1812433253u * (g->state[n - 1] ^ (g->state[n - 1] >> 30)) + n;
        g->n_drawn = N_STATE;
        s->beams[i].generator = g;
    }
    return s->has_room;
}

struct token {
    float probability; /* not normalised */
    int output;
};

static int by_probability(const void *a, const void *b) {
    const struct token *x = a, *y = b;
    return x->probability > y->probability ? -1 : x->probability < y->probability ? 1 : x->output - y->output;
}

/* Keep the top_k most probable tokens, then the fewest of these with probability top_p (Holtzman et al., 2020); the
   others get probability 0. The largest is 1, and only as many are sorted as are needed. */
static void cut(float *p, int n, int top_k, double top_p, struct token *tokens) {
    double total = 0, sum = 0, before = 0;
    int n_tokens = 0;
    for (int i = 0; i < n; i++) total += p[i];
    for (float least = 1; least > 0 && (top_k ? n_tokens < top_k : sum < top_p * total); least /= 64) {
        n_tokens = 0, sum = 0;
        for (int i = 0; i < n; i++)
            if (p[i] >= least) tokens[n_tokens++] = (struct token){p[i], i}, sum += p[i];
    }
    qsort(tokens, (size_t)n_tokens, sizeof *tokens, by_probability);
    if (top_k && top_k < n_tokens) n_tokens = top_k;
    if (top_k) total = 0;
    for (int i = 0; top_k && i < n_tokens; i++) total += tokens[i].probability;
    memset(p, 0, (size_t)n * sizeof *p);
    for (int i = 0; i < n_tokens && before < top_p * total; i++)
        before += p[tokens[i].output] = tokens[i].probability;
}

static int32_t id_of(const struct search *s, int output) { return s->token_of ? s->token_of[output] : output; }

/* Turn a row's logits into the probabilities that are drawn from. 0 if a logit is NaN or +inf, or without any token. */
static int reshape(const struct search *s, const struct row *row, float *p, struct token *tokens) {
    const struct td_search *r = s->request;
    const int n = s->output.n_outputs;
    const uint8_t *is_listed = s->token_of ? s->is_listed + (size_t)row->beams->index * row_stride(n) : NULL;
    double highest = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] != p[i]) return 0;
        if ((is_listed && !is_listed[i]) || !may_follow(s, row, id_of(s, i))) p[i] = -INFINITY;
        if (p[i] > highest) highest = p[i];
    }
    if (!isfinite(highest)) return 0;
    for (int i = 0; i < n; i++) p[i] = r->temperature > 0 ? (float)exp((p[i] - highest) / r->temperature) : p[i] == highest;
    if (r->temperature <= 0 || r->top_k || r->top_p < 1) cut(p, n, r->temperature <= 0 ? 1 : r->top_k, r->top_p, tokens);
    for (int i = 0; i < n; i++) sum += p[i];
    for (int i = 0; i < n; i++) p[i] = (float)(p[i] / sum);
    return 1;
}

/* The output where the cumulative distribution reaches a random number; -1 if all weights are 0. */
static int draw_output(const float *weights, int n, double uniform) {
    double total = 0, sum = 0;
    int chosen = -1;
    for (int i = 0; i < n; i++) total += weights[i];
    for (int i = 0; i < n && uniform * total >= sum; i++)
        if (weights[i] > 0) chosen = i, sum += weights[i];
    return chosen;
}

/* Draw the token of a row with probabilities p, after `n_kept` drafts; whether it is the next draft. A draft of
   probability q is kept with probability p / q, else the token is drawn from max(0, p - q). */
static int draw_token(struct search *s, int row, int n_kept, const float *p, double given) {
    const struct td_search *r = s->request;
    struct beams *b = s->rows[row].beams;
    const int n = s->output.n_outputs, has_draft = n_kept < b->n_drafted;
    const int32_t draft = has_draft ? b->alive->ids[b->alive->n + n_kept] : -1;
    int chosen = -1;
    if (has_draft) {
        float *q = s->draft_probabilities + (size_t)(b->index * r->n_drafted + n_kept) * (size_t)n;
        const int is_kept = draw_uniform(b->generator) * q[draft] < p[draft];
        for (int i = 0; !is_kept && i < n; i++) q[i] = p[i] > q[i] ? p[i] - q[i] : 0;
        chosen = is_kept ? draft : draw_output(q, n, draw_uniform(b->generator));
    }
    if (chosen < 0) chosen = draw_output(p, n, r->draw ? given : draw_uniform(b->generator));
    s->top_ids[row] = id_of(s, chosen);
    s->top[row] = logf(p[chosen]);
    return chosen == draft;
}

int draw_tokens(struct search *s, int n_rows) {
    const struct td_search *r = s->request;
    const int n = s->output.n_outputs;
    const size_t stride = row_stride(n);
    struct token *tokens = malloc(stride * sizeof *tokens);
    int32_t *sentences = malloc((size_t)n_rows * sizeof *sentences);
    double *draws = calloc((size_t)n_rows, sizeof *draws);
    int status = tokens && sentences && draws ? 0 : NO_MEMORY;
    for (int i = 0; i < n_rows && !status; i++) sentences[i] = s->rows[i].beams->index;
    if (!status) all_logits(s, n_rows, s->whole);
    if (!status && r->draw && r->draw(n_rows, sentences, draws)) status = STOPPED;
    for (int i = 0, n_kept = 0; i < n_rows && !status; i++) {
        float *p = s->whole + (size_t)i * stride;
        if (i && s->rows[i].beams != s->rows[i - 1].beams) n_kept = 0;
        if (n_kept < 0) continue;
        s->top_ids[i] = -1;
        n_kept = reshape(s, &s->rows[i], p, tokens) && draw_token(s, i, n_kept, p, draws[i]) ? n_kept + 1 : -1;
    }
    free(tokens), free(sentences), free(draws);
    return status;
}

void keep_draft(const struct search *drafter, int row, const struct beams *b, struct search *s) {
    const size_t place = (size_t)(b->index * s->request->n_drafted + b->n_drafted);
    float *q = s->draft_probabilities + place * (size_t)s->output.n_outputs;
    const float *from = drafter->whole + (size_t)row * row_stride(drafter->output.n_outputs);
    memset(q, 0, (size_t)s->output.n_outputs * sizeof *q);
    for (int i = 0; i < drafter->output.n_outputs; i++) q[id_of(drafter, i)] = from[i];
}
