/* Phrases that an output must have, or must not have.

   Beam search with wanted phrases (Post and Vilar, 2018; the order is that of Hu et al., 2019): each alive beam may also go
   on with the next token of a phrase that it lacks, and the beams are shared out among the hypotheses that have 0, 1, 2, ...
   tokens of the phrases. `transduce.search.phrases` is the readable reference. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "search.h"

int is_avoided(const struct search *s, const struct row *row, int32_t id) {
    const struct td_phrases *avoided = &s->request->avoided;
    for (int p = avoided->first[row->beams->index]; p < avoided->first[row->beams->index + 1]; p++) {
        const int32_t *phrase = avoided->ids + avoided->offsets[p];
        const int n = avoided->offsets[p + 1] - avoided->offsets[p] - 1;
        if (phrase[n] == id && row->n_written >= n && !memcmp(phrase, row->written + row->n_written - n, (size_t)n * sizeof *phrase)) return 1;
    }
    return 0;
}

int n_wanted(const struct search *s, const struct beams *b) {
    const struct td_phrases *wanted = &s->request->wanted;
    return wanted->first ? wanted->offsets[wanted->first[b->index + 1]] - wanted->offsets[wanted->first[b->index]] : 0;
}

/* How many tokens of a phrase a text has: all, if it is there so many times, or those at the end of the text. */
static int progress(const struct search *s, const int32_t *phrase, int length, int n_times, const int32_t *ids, int n) {
    int n_found = 0, n_begun = 0;
    for (int i = 0; i < n; i++) {
        int n_same = 0;
        while (n_same < length && i + n_same < n && ids[i + n_same] == phrase[n_same]) n_same++;
        if (n_same == length) n_found += i + length == n || !s->request->goes_on[ids[i + length]];
        else if (i + n_same == n && !n_begun) n_begun = n_same;
    }
    return n_found >= n_times ? length : n_begun;
}

int n_had(const struct search *s, const struct beams *b, const struct text *text, int32_t *next) {
    const struct td_phrases *wanted = &s->request->wanted;
    const int first = wanted->first[b->index], end = wanted->first[b->index + 1];
    int n_whole = 0, n_begun = 0;
    for (int p = first; p < end; p++) {
        const int32_t *phrase = wanted->ids + wanted->offsets[p];
        const int length = wanted->offsets[p + 1] - wanted->offsets[p];
        int n_times = 1; /* one that is listed twice must be there twice */
        for (int q = first; q < p; q++)
            n_times += wanted->offsets[q + 1] - wanted->offsets[q] == length
                       && !memcmp(wanted->ids + wanted->offsets[q], phrase, (size_t)length * sizeof *phrase);
        const int n = progress(s, phrase, length, n_times, text->ids + b->n_prompt, text->n - b->n_prompt);
        if (n == length) n_whole += length;
        else if (n > n_begun) n_begun = n;
        if (next) next[p - first] = n < length ? phrase[n] : -1;
    }
    for (int i = end - first; next && i < s->n_next; i++) next[i] = -1;
    return n_whole + n_begun;
}

static int add(const struct beams *b, struct candidate *all, int n, float log_prob, int32_t id, int parent) {
    for (int i = 0; i < n; i++)
        if (all[i].id == id && all[i].parent == parent) return n;
    log_prob += b->alive[parent].log_prob;
    if (!(log_prob > -INFINITY)) return n;
    all[n] = (struct candidate){.log_prob = log_prob, .id = id, .parent = parent, .may_end = 1};
    return n + 1;
}

/* The best with the most tokens of phrases, the best with one less, and so on; then the second best of each. */
static void rank(const struct search *s, const struct beams *b, struct candidate *all, int n) {
    const int n_all = n_wanted(s, b);
    int had[n + 1];
    for (int i = 0; i < n; i++) {
        struct text *text = &b->alive[all[i].parent];
        text->ids[text->n++] = all[i].id;
        had[i] = all[i].id == s->request->eos_id ? -1 : n_had(s, b, text, NULL);
        text->n--;
        all[i].may_end = had[i] == n_all;
    }
    for (int i = 0; i < n; i++) {
        int place = 0;
        for (int j = 0; j < n; j++) place += had[j] == had[i] && all[j].log_prob > all[i].log_prob;
        all[i].rank = had[i] < 0 ? INT_MAX : place * (n_all + 1) - had[i];
    }
}

int add_phrases(const struct search *s, const struct beams *b, const float *top, const int32_t *top_ids, struct candidate *all, int n) {
    for (int w = 0; w < b->n_alive; w++) {
        const size_t row = (size_t)(top - s->top) / (size_t)s->k + (size_t)w, next = row * (size_t)s->n_next;
        if (top_ids[w * s->k] >= 0) n = add(b, all, n, top[w * s->k], top_ids[w * s->k], w);
        for (int i = 0; i < s->n_next; i++)
            if (s->next_ids[next + (size_t)i] >= 0) n = add(b, all, n, s->next[next + (size_t)i], s->next_ids[next + (size_t)i], w);
    }
    rank(s, b, all, n);
    for (int i = 1; i < n; i++) {
        const struct candidate moved = all[i];
        int place = i;
        for (; place > 0 && all[place - 1].rank > moved.rank; place--) all[place] = all[place - 1];
        all[place] = moved;
    }
    return n;
}
