/* The hypotheses of a sentence: the alive beams and the finished pool. Section 6.1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

/* The length penalty of Wu et al. (2016), equation 14. */
static float penalty(int length, float alpha) { return (float)pow((5.0 + length) / 6.0, alpha); }

static int add_node(const struct search *s, struct beams *b, int32_t token, int32_t before) {
    if (b->n_nodes == b->node_capacity) {
        const int capacity = 2 * b->node_capacity + 64;
        struct node *nodes = realloc(b->nodes, (size_t)capacity * sizeof *nodes);
        if (!nodes) return -1;
        b->nodes = nodes;
        b->node_capacity = capacity;
    }
    struct node *node = &b->nodes[b->n_nodes];
    *node = (struct node){.token = token, .before = before};
    count_words(&s->model->tgt, &token, 1, before < 0 ? b->n_prompt_words : b->nodes[before].n_words, &node->n_words);
    return b->n_nodes++;
}

/* The last ids of a hypothesis, at most n, in their order; the number of them. */
int last_ids(const struct beams *b, int32_t node, int32_t *to, int n) {
    int length = 0;
    for (int32_t at = node; at >= 0 && length < n; at = b->nodes[at].before) length++;
    for (int i = length - 1; i >= 0; node = b->nodes[node].before) to[i--] = b->nodes[node].token;
    return length;
}

struct candidate {
    float log_prob;
    int32_t id;
    int parent;
};

/* The 2 beam_size most probable extensions of the alive beams, best first; how many, or -1 for NaN. */
static int expand(const struct search *s, const struct beams *b, const float *top, const int32_t *top_ids,
                  struct candidate *best) {
    int n = 0;
    for (int w = 0; w < b->n_alive; w++)
        for (int i = w * s->k; i < (w + 1) * s->k; i++) {
            const float log_prob = b->log_probs[w] + top[i];
            if (log_prob != log_prob) return -1;
            if (top_ids[i] < 0 || log_prob == -INFINITY) break;
            if (n == 2 * s->width && !(log_prob > best[n - 1].log_prob)) break;
            int place = n < 2 * s->width ? n++ : n - 1;
            for (; place > 0 && log_prob > best[place - 1].log_prob; place--) best[place] = best[place - 1];
            best[place] = (struct candidate){log_prob, top_ids[i], w};
        }
    return n;
}

/* Keep a hypothesis that ends with EOS if it is among the beam_size best by score. */
static void keep_finished(const struct search *s, struct beams *b, float log_prob, int32_t node) {
    const float score = log_prob / penalty(s->n_tokens + 1, s->request->alpha);
    if (b->n_finished == s->width && !(score > b->finished[s->width - 1].score)) return;
    int place = b->n_finished < s->width ? b->n_finished++ : s->width - 1;
    for (; place > 0 && score > b->finished[place - 1].score; place--) b->finished[place] = b->finished[place - 1];
    b->finished[place] = (struct finished){log_prob, score, node};
}

int advance(struct search *s, struct beams *b, const float *top, const int32_t *top_ids) {
    struct candidate best[2 * s->width];
    float log_probs[s->width];
    int32_t ends[s->width];
    const int n = expand(s, b, top, top_ids, best);
    int n_alive = 0;
    if (n < 0) return NO_HYPOTHESIS;
    for (const struct candidate *c = best; c < best + n; c++) {
        if (c->id == s->request->eos_id) {
            keep_finished(s, b, c->log_prob, b->ends[c->parent]);
        } else if (n_alive < s->width) {
            const size_t stride = (size_t)b->seen_stride;
            if (b->seen) memcpy(b->next_seen + (size_t)n_alive * stride, b->seen + (size_t)c->parent * stride, stride);
            log_probs[n_alive] = c->log_prob;
            ends[n_alive] = add_node(s, b, c->id, b->ends[c->parent]);
            if (ends[n_alive++] < 0) return NO_MEMORY;
        }
    }
    memcpy(b->log_probs, log_probs, (size_t)n_alive * sizeof *log_probs);
    memcpy(b->ends, ends, (size_t)n_alive * sizeof *ends);
    uint8_t *seen = b->seen;
    b->seen = b->next_seen;
    b->next_seen = seen;
    b->n_alive = n_alive;
    return 0;
}

int append(struct search *s, struct beams *b, float log_prob, int32_t id) {
    if (id < 0 || log_prob != log_prob) return NO_HYPOTHESIS;
    if (s->request->on_token) s->request->on_token(b->index, id);
    b->log_probs[0] += log_prob;
    if (id == s->request->eos_id) {
        keep_finished(s, b, b->log_probs[0], b->ends[0]);
        b->n_alive = 0;
        return 0;
    }
    b->ends[0] = add_node(s, b, id, b->ends[0]);
    return b->ends[0] < 0 ? NO_MEMORY : 0;
}

static void write_result(struct search *s, const struct beams *b, int place, int32_t node, float log_prob, float score,
                         int is_finished) {
    struct td_search *r = s->request;
    const size_t at = (size_t)b->index * (size_t)r->n_best + (size_t)place;
    r->lengths[at] = last_ids(b, node, r->ids + at * (size_t)r->max_length, r->max_length);
    r->log_probs[at] = log_prob;
    r->scores[at] = score;
    r->is_finished[at] = (uint8_t)is_finished;
}

/* Write the n-best list of a sentence at its maximum length, or whose best alive beam cannot exceed the n_best-th
   finished score: finished hypotheses, else the alive beams. A status. */
int finish_if_done(struct search *s, struct beams *b) {
    const int n_best = s->request->n_best;
    const float bound = b->n_alive ? b->log_probs[0] / penalty(b->max_length, s->request->alpha) : -INFINITY;
    b->is_done = b->n_alive == 0 || s->n_tokens >= b->max_length
                 || (b->n_finished >= n_best && b->finished[n_best - 1].score >= bound);
    if (!b->is_done) return 0;
    s->where = b->index;
    for (int i = 0; i < n_best; i++) s->request->lengths[b->index * n_best + i] = -1;
    for (int i = 0; i < b->n_finished && i < n_best; i++)
        write_result(s, b, i, b->finished[i].node, b->finished[i].log_prob, b->finished[i].score, 1);
    for (int i = 0; !b->n_finished && i < b->n_alive && i < n_best; i++)
        write_result(s, b, i, b->ends[i], b->log_probs[i], b->log_probs[i], 0);
    return b->n_finished || b->n_alive ? 0 : NO_HYPOTHESIS;
}

/* ---- slots ---- */

static int widen_seen(const struct search *s, struct beams *b) {
    const size_t old = (size_t)b->seen_stride, stride = (size_t)b->sentence.capacity;
    uint8_t *seen = calloc((size_t)s->width, stride), *next = calloc((size_t)s->width, stride);
    if (!seen || !next) return free(seen), free(next), 0;
    for (int w = 0; w < s->width; w++) {
        if (b->seen) memcpy(seen + (size_t)w * stride, b->seen + (size_t)w * old, old);
        else memset(seen + (size_t)w * stride, 1, (size_t)b->sentence.n_slots); /* those of the prompt */
    }
    free(b->seen), free(b->next_seen);
    b->seen = seen, b->next_seen = next, b->seen_stride = (int)stride;
    return 1;
}

/* A slot for each beam's new token: one that no alive beam sees. 0 without memory. */
int take_slots(struct search *s, struct beams *b) {
    if (!grow(s->model, &b->sentence, b->sentence.n_slots + b->n_alive)) return 0;
    if (s->width == 1) return b->slots[0] = b->sentence.n_slots++, 1;
    if (b->seen_stride < b->sentence.capacity && !widen_seen(s, b)) return 0;
    int slot = 0;
    for (int w = 0; w < b->n_alive; w++) {
        for (int is_seen = 1; is_seen; slot++) {
            is_seen = 0;
            for (int v = 0; v < b->n_alive; v++) is_seen |= b->seen[v * b->seen_stride + slot];
        }
        b->slots[w] = slot - 1;
    }
    if (slot > b->sentence.n_slots) b->sentence.n_slots = slot;
    for (int w = 0; w < b->n_alive; w++) b->seen[w * b->seen_stride + b->slots[w]] = 1;
    return 1;
}
