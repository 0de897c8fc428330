/* The hypotheses of a sentence: the alive beams and the finished pool. Section 6.1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

/* The length penalty of Wu et al. (2016), equation 14. */
static float penalty(int length, float alpha) { return (float)pow((5.0 + length) / 6.0, alpha); }

/* The 2 beam_size most probable extensions of the alive beams, best first; how many, or -1 for NaN. */
static int expand(const struct search *s, const struct beams *b, const float *top, const int32_t *top_ids,
                  struct candidate *best) {
    int n = 0;
    for (int w = 0; w < b->n_alive; w++)
        for (int i = w * s->k; i < (w + 1) * s->k; i++) {
            const float log_prob = b->alive[w].log_prob + top[i];
            if (log_prob != log_prob) return -1;
            if (top_ids[i] < 0 || log_prob == -INFINITY) break;
            if (n == 2 * s->width && !(log_prob > best[n - 1].log_prob)) break;
            int place = n < 2 * s->width ? n++ : n - 1;
            for (; place > 0 && log_prob > best[place - 1].log_prob; place--) best[place] = best[place - 1];
            best[place] = (struct candidate){.log_prob = log_prob, .id = top_ids[i], .parent = w, .may_end = 1};
        }
    return n;
}

/* Keep a hypothesis that ends with EOS if it is among the beam_size best by score. */
static void keep_finished(const struct search *s, struct beams *b, float log_prob, const struct text *text) {
    const float score = log_prob / penalty(text->n - b->n_prompt + 1, s->request->alpha);
    if (b->n_finished == s->width && !(score > b->finished[s->width - 1].score)) return;
    int place = b->n_finished < s->width ? b->n_finished++ : s->width - 1;
    int32_t *ids = b->finished[place].ids; /* those of the one that leaves */
    for (; place > 0 && score > b->finished[place - 1].score; place--) b->finished[place] = b->finished[place - 1];
    memcpy(ids, text->ids, (size_t)text->n * sizeof *ids);
    b->finished[place] = (struct text){ids, text->n, 1, log_prob, score};
}

static void write_result(struct search *s, const struct beams *b, int place, const struct text *text, int is_finished) {
    struct td_search *r = s->request;
    const size_t at = (size_t)b->index * (size_t)r->n_best + (size_t)place;
    r->lengths[at] = text->n - b->n_prompt;
    memcpy(r->ids + at * (size_t)r->max_length, text->ids + b->n_prompt, (size_t)r->lengths[at] * sizeof *text->ids);
    r->log_probs[at] = text->log_prob;
    r->scores[at] = is_finished ? text->score : text->log_prob;
    r->is_finished[at] = (uint8_t)is_finished;
}

static int no_hypothesis(struct search *s, const struct beams *b) {
    s->where = b->index, s->n_written = b->alive->n - b->n_prompt;
    return NO_HYPOTHESIS;
}

/* Write the n-best list of a sentence: finished hypotheses, else the alive beams. A status. */
int write_results(struct search *s, struct beams *b) {
    const int n_best = s->request->n_best, n = b->n_finished ? b->n_finished : b->n_alive;
    for (int i = 0; i < n_best; i++) {
        s->request->lengths[b->index * n_best + i] = -1;
        if (i < n) write_result(s, b, i, b->n_finished ? &b->finished[i] : &b->alive[i], b->n_finished > 0);
    }
    return n ? 0 : no_hypothesis(s, b);
}

/* The log-probability of the best alive beam: of those that may end, if there are such. */
static float best_alive(const struct beams *b) {
    float best = -INFINITY, ending = -INFINITY;
    for (const struct text *text = b->alive; text < b->alive + b->n_alive; text++) {
        best = fmaxf(best, text->log_prob);
        if (text->may_end) ending = fmaxf(ending, text->log_prob);
    }
    return ending > -INFINITY ? ending : best;
}

/* Write the results of a sentence with n_written tokens that is at its maximum length, or whose best alive beam cannot
   exceed the n_best-th finished score. A status. */
static int finish_if_done(struct search *s, struct beams *b, int n_written) {
    const int n_best = s->request->n_best;
    const float bound = best_alive(b) / penalty(b->max_length, s->request->alpha);
    b->is_done = b->n_alive == 0 || n_written >= b->max_length
                 || (b->n_finished >= n_best && b->finished[n_best - 1].score >= bound);
    if (!b->is_done) return 0;
    s->n_open--;
    return write_results(s, b);
}

int advance(struct search *s, struct beams *b, const float *top, const int32_t *top_ids) {
    struct candidate best[s->width * (3 + s->n_next)];
    const int n_written = b->alive->n - b->n_prompt + 1;
    int n = expand(s, b, top, top_ids, best), n_alive = 0;
    if (n < 0) return no_hypothesis(s, b);
    if (s->n_next) n = add_phrases(s, b, top, top_ids, best, n);
    for (const struct candidate *c = best; c < best + n; c++) {
        const struct text *parent = &b->alive[c->parent];
        if (c->id == s->request->eos_id) {
            keep_finished(s, b, c->log_prob, parent);
        } else if (n_alive < s->width) {
            const size_t stride = (size_t)b->seen_stride;
            struct text *text = &b->next[n_alive];
            if (b->seen) memcpy(b->next_seen + (size_t)n_alive * stride, b->seen + (size_t)c->parent * stride, stride);
            memcpy(text->ids, parent->ids, (size_t)parent->n * sizeof *text->ids);
            text->ids[parent->n] = c->id;
            *text = (struct text){text->ids, parent->n + 1, c->may_end, c->log_prob, 0};
            n_alive++;
        }
    }
    struct text *alive = b->alive;
    uint8_t *seen = b->seen;
    if (n_alive) b->alive = b->next, b->next = alive;
    b->seen = b->next_seen, b->next_seen = seen;
    b->n_alive = n_alive;
    return finish_if_done(s, b, n_written);
}

/* Keep the drafts that the model writes, too, and its own token after them. */
int append(struct search *s, struct beams *b, const float *top, const int32_t *top_ids) {
    const struct td_search *r = s->request;
    struct text *text = b->alive;
    const int n_drafted = b->n_drafted;
    int status = 0, n_kept = 0, n = 0, is_draft = 1;
    for (b->n_drafted = 0; is_draft && !status && !b->is_done; n++) {
        const int32_t id = top_ids[n];
        if (id < 0 || top[n] != top[n]) return no_hypothesis(s, b);
        is_draft = n < n_drafted && text->ids[text->n] == id;
        n_kept += is_draft;
        text->ids[text->n] = id;
        text->log_prob += top[n];
        if (id == r->eos_id) keep_finished(s, b, text->log_prob, text), b->n_alive = 0;
        else text->n++;
        const int n_written = text->n - b->n_prompt + (id == r->eos_id);
        status = r->on_ids && r->on_ids(b->index, text->ids + b->n_prompt, n_written) ? STOPPED : finish_if_done(s, b, n_written);
    }
    if (b->n_read > text->n - 1) b->n_read = text->n - 1; /* the last token was not read */
    if (r->counts) r->counts[0]++, r->counts[1] += n, r->counts[2] += n_drafted, r->counts[3] += n_kept;
    return status;
}

/* ---- slots ---- */

static int widen_seen(const struct search *s, struct beams *b) {
    const size_t old = (size_t)b->seen_stride, stride = (size_t)b->sentence->capacity;
    uint8_t *seen = calloc((size_t)s->width, stride), *next = calloc((size_t)s->width, stride);
    if (!seen || !next) return free(seen), free(next), 0;
    for (int w = 0; w < s->width; w++) {
        if (b->seen) memcpy(seen + (size_t)w * stride, b->seen + (size_t)w * old, old);
        else memset(seen + (size_t)w * stride, 1, (size_t)b->sentence->n_slots); /* those of the prompt */
    }
    free(b->seen), free(b->next_seen);
    b->seen = seen, b->next_seen = next, b->seen_stride = (int)stride;
    return 1;
}

/* A slot for each beam's new token: one that no alive beam sees. 0 without memory. */
int take_slots(struct search *s, struct beams *b) {
    if (!grow(s->model, b->sentence, b->sentence->n_slots + b->n_alive)) return 0;
    if (b->seen_stride < b->sentence->capacity && !widen_seen(s, b)) return 0;
    int slot = 0;
    for (int w = 0; w < b->n_alive; w++) {
        for (int is_seen = 1; is_seen; slot++) {
            is_seen = 0;
            for (int v = 0; v < b->n_alive; v++) is_seen |= b->seen[v * b->seen_stride + slot];
        }
        b->slots[w] = slot - 1;
    }
    if (slot > b->sentence->n_slots) b->sentence->n_slots = slot;
    for (int w = 0; w < b->n_alive; w++) b->seen[w * b->seen_stride + b->slots[w]] = 1;
    return 1;
}
