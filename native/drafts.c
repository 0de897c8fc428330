/* Speculative greedy search: a smaller model drafts tokens, which one pass of the model verifies. Leviathan, Kalman and
   Matias (2023). What is written is what greedy search writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

enum { MODEL, DRAFTER };

/* What was written of a sentence, from BOS on, and how much of it each model has read. */
struct text {
    int32_t *ids;
    int n, n_drafted, is_open;
    int n_read[2];
};

/* Let a model read what is new in its texts; find the best token after each of the drafts, or after the last id. */
static int read_texts(struct search *s, struct text *texts, int which) {
    const size_t d = row_stride(s->model->config.d_model);
    int n_groups = 0, n_rows = 0, n_wanted = 0, row = 0;
    for (int i = 0; i < s->request->n_sentences; i++) {
        struct text *t = &texts[i];
        struct sentence *sentence = &s->beams[i].sentence;
        if (which == DRAFTER ? !t->is_open : s->beams[i].is_done) continue;
        const int first = t->n_read[which], end = t->n + t->n_drafted;
        if (!grow(s->model, sentence, end)) return 0;
        sentence->n_slots = t->n_read[which] = end;
        s->groups[n_groups++] = (struct group){sentence, end - first, s->order + first, NULL, 0};
        const int n_before = count_words(&s->model->tgt, t->ids, first, 0, s->written);
        count_words(&s->model->tgt, t->ids + first, end - first, n_before, s->n_words + n_rows);
        for (int at = first; at < end; at++, n_rows++) s->ids[n_rows] = t->ids[at], s->positions[n_rows] = at;
    }
    if (n_groups && !decode(s->model, &s->room, s->groups, n_groups, s->ids, s->positions, s->n_words)) return 0;
    for (int g = 0; g < n_groups; g++) {
        struct beams *b = (struct beams *)(void *)s->groups[g].sentence;
        const int n = which == DRAFTER ? 1 : texts[b->index].n_drafted + 1;
        row += s->groups[g].n_rows;
        memmove(s->room.x + (size_t)n_wanted * d, s->room.x + (size_t)(row - n) * d, (size_t)n * d * sizeof(float));
        for (int i = 0; i < n; i++) s->rows[n_wanted++] = (struct row){.beams = b, .forced = -1};
    }
    best_tokens(s, s->room.x, n_wanted, which == DRAFTER || s->request->is_scored);
    return 1;
}

/* Draft tokens after each text, until EOS, which the model writes itself, or after an improbable token. */
static int draft(struct search *drafter, struct text *texts, const struct beams *beams) {
    const struct td_search *r = drafter->request;
    int n_open = 0;
    for (int i = 0; i < r->n_sentences; i++) {
        texts[i].n_drafted = 0;
        n_open += texts[i].is_open = !beams[i].is_done && texts[i].n < beams[i].max_length && r->n_drafted > 0;
    }
    while (n_open) {
        if (!read_texts(drafter, texts, DRAFTER)) return 0;
        for (int i = 0, row = 0; i < r->n_sentences; i++) {
            struct text *t = &texts[i];
            if (!t->is_open) continue;
            const int32_t id = drafter->top_ids[row];
            const double probability = exp(drafter->top[row++]);
            t->is_open = id >= 0 && id != r->eos_id;
            if (t->is_open) {
                t->ids[t->n + t->n_drafted++] = id;
                t->is_open = t->n_drafted < r->n_drafted && t->n + t->n_drafted < beams[i].max_length
                             && probability >= r->min_draft_probability;
            }
            n_open -= !t->is_open;
        }
    }
    return 1;
}

/* Keep the drafts of a text that the model writes too, and the model's own token after them. A status. */
static int verify(struct search *s, struct text *t, struct beams *b, const float *top, const int32_t *top_ids) {
    const int n_before = t->n;
    int status = 0, n_kept = 0, is_draft = 1;
    for (int i = 0; is_draft && !status && !b->is_done; i++) {
        is_draft = i < t->n_drafted && t->ids[t->n] == top_ids[i];
        s->n_tokens = t->n - 1; /* BOS is no token of the output */
        status = append(s, b, top[i], top_ids[i]);
        t->ids[t->n++] = top_ids[i];
        s->n_tokens++;
        if (!status) status = finish_if_done(s, b);
        n_kept += is_draft;
    }
    for (int which = MODEL; which <= DRAFTER; which++) /* the last token was not read */
        if (t->n_read[which] > t->n - 1) t->n_read[which] = t->n - 1;
    if (s->request->counts) {
        int64_t *counts = s->request->counts;
        counts[0]++, counts[1] += t->n - n_before, counts[2] += t->n_drafted, counts[3] += n_kept;
    }
    return status;
}

int run_with_drafts(struct search *s, struct search *drafter) {
    const struct td_search *r = s->request;
    const size_t room = (size_t)r->max_length + 2;
    struct text *texts = calloc((size_t)r->n_sentences + 1, sizeof *texts);
    int32_t *ids = calloc((size_t)r->n_sentences * room + 1, sizeof *ids);
    int status = texts && ids && encode_sources(s) && encode_sources(drafter) ? 0 : NO_MEMORY, n_left = r->n_sentences;
    for (int i = 0; i < r->n_sentences && !status; i++) {
        texts[i] = (struct text){.ids = ids + (size_t)i * room, .n = 1};
        texts[i].ids[0] = r->prompt_ids[i];
    }
    while (n_left && !status) {
        if (r->on_step && r->on_step()) status = STOPPED;
        else if (!draft(drafter, texts, s->beams) || !read_texts(s, texts, MODEL)) status = NO_MEMORY;
        for (int i = 0, row = 0; i < r->n_sentences && !status; i++) {
            struct beams *b = &s->beams[i];
            if (b->is_done) continue;
            const int first = row;
            row += texts[i].n_drafted + 1;
            status = verify(s, &texts[i], b, s->top + first, s->top_ids + first);
            n_left -= b->is_done;
        }
    }
    free(texts), free(ids);
    return status;
}
