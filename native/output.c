/* The softmax over the vocabulary: the most probable next tokens, constraints, shortlists. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

static const float MIN_FORCED = -1e4f; /* a forced token stays possible, whatever the model says */

/* Whether an id would repeat what was written more often than it may. */
static int repeats(const struct search *s, const struct row *row, int32_t id) {
    const struct td_search *r = s->request;
    const int32_t *ids = row->written;
    const int n = row->n_written, gram = r->no_repeat_ngram;
    for (int unit = 1; unit <= r->n_units && unit <= n; unit++) {
        if (ids[n - unit] != id) continue;
        int run = 0; /* tokens at the end that equal the one a unit before */
        while (run + unit < n && ids[n - 1 - run] == ids[n - 1 - run - unit]) run++;
        if (run >= (int64_t)r->max_repeats[row->beams->index * r->n_units + unit - 1] * unit - 1) return 1;
    }
    for (int i = 0; gram > 0 && i + gram <= n; i++)
        if (ids[i + gram - 1] == id && !memcmp(ids + i, ids + n - gram + 1, (size_t)(gram - 1) * sizeof *ids)) return 1;
    return 0;
}

int may_follow(const struct search *s, const struct row *row, int32_t id) {
    const struct td_search *r = s->request;
    if (s->is_suppressed[id] || (id == r->eos_id && (row->n_written < r->min_length || !row->may_end))) return 0;
    if (r->avoided.first && is_avoided(s, row, id)) return 0;
    if (row->is_word_start && !r->word_starts[id]) return 0;
    return (!r->n_units && !r->no_repeat_ngram) || !repeats(s, row, id);
}

/* Insert a token that exceeds a row's k-th best; of equal ones, the smaller id comes first. */
static void insert(const struct search *s, float value, int32_t id, float *top, int32_t *top_ids) {
    int place = s->k - 1;
    for (; place > 0 && value > top[place - 1]; place--) top[place] = top[place - 1], top_ids[place] = top_ids[place - 1];
    top[place] = value;
    top_ids[place] = id;
}

/* Keep the best of some panels of a row; missing outputs are -inf. */
static void keep_best(const struct search *s, const struct row *row, const float *logits, int first, int n, float *top,
                      int32_t *top_ids) {
    if (row->forced >= 0) {
        if (row->forced >= first && row->forced < first + n) top[0] = logits[row->forced - first], top_ids[0] = row->forced;
        return;
    }
    for (int panel = 0; panel < n; panel += PANEL) {
        int is_better = 0;
        for (int i = panel; i < panel + PANEL; i++) is_better |= logits[i] > top[s->k - 1];
        for (int i = panel; is_better && i < panel + PANEL; i++) {
            if (!(logits[i] > top[s->k - 1])) continue;
            const int32_t id = s->token_of ? s->token_of[first + i] : first + i;
            if (may_follow(s, row, id)) insert(s, logits[i], id, top, top_ids);
        }
    }
}

/* Keep those of the tokens with which wanted phrases go on. */
static void keep_next(const struct search *s, const struct row *row, const float *logits, int first, int n) {
    const size_t start = (size_t)(row - s->rows) * (size_t)s->n_next;
    for (size_t i = start; i < start + (size_t)s->n_next; i++) {
        const int32_t id = s->next_ids[i];
        if (id >= first && id < first + n) s->next[i] = row->forced < 0 && may_follow(s, row, id) ? logits[id - first] : -INFINITY;
    }
}

/* All logits are never stored: a block of tokens at a time, with its maximum and sum of exponentials. */
static void best_of_rows(struct search *s, const float *states, struct row *rows, int n_rows, int is_scored, float *top,
                         int32_t *top_ids) {
    const struct kernels *kernels = s->model->kernels;
    const struct matrix *w = &s->output;
    const struct input input = kernels->prepare(w, states, row_stride(w->n_inputs), n_rows, s->room.inputs);
    for (int panel = 0; panel < w->n_panels; panel += BLOCK_PANELS) {
        const int end = panel + BLOCK_PANELS < w->n_panels ? panel + BLOCK_PANELS : w->n_panels;
        const int first = panel * PANEL, n = (end - panel) * PANEL;
        kernels->product(w, &input, panel, end, LINEAR, s->logits, BLOCK);
        for (int r = 0; r < n_rows; r++) {
            struct row *row = &rows[r];
            float *logits = s->logits + (size_t)r * BLOCK, *best = top + r * s->k;
            const uint8_t *is_listed = s->token_of ? s->is_listed + (size_t)row->beams->index * (size_t)w->n_panels * PANEL : NULL;
            for (int i = 0; is_listed && i < n; i++) logits[i] = is_listed[first + i] ? logits[i] : -INFINITY;
            const float highest = kernels->largest(logits, n);
            if (is_scored) kernels->add_to_softmax(logits, n, highest, &row->maximum, &row->sum);
            else if (highest != highest) row->sum = highest;
            if (s->n_next) keep_next(s, row, logits, first, n);
            if (highest > best[s->k - 1]) keep_best(s, row, logits, first, n, best, top_ids + r * s->k);
        }
    }
    for (int r = 0; r < n_rows; r++) {
        const float shift = is_scored ? rows[r].maximum + logf(rows[r].sum) : rows[r].sum; /* NaN if a logit is */
        for (int i = r * s->k; i < (r + 1) * s->k; i++) top[i] = top_ids[i] < 0 && shift == shift ? -INFINITY : top[i] - shift;
        for (int i = 0; i < s->n_next; i++) s->next[(rows + r - s->rows) * s->n_next + i] -= shift;
        if (rows[r].forced >= 0 && top[r * s->k] < MIN_FORCED) top[r * s->k] = MIN_FORCED;
    }
}

void best_tokens(struct search *s, int n_rows, int is_scored) {
    for (int i = 0; i < n_rows * s->k; i++) s->top[i] = -INFINITY, s->top_ids[i] = -1;
    for (int first = 0; first < n_rows; first += BLOCK_ROWS) {
        const int n = n_rows - first < BLOCK_ROWS ? n_rows - first : BLOCK_ROWS;
        best_of_rows(s, s->room.x + (size_t)first * row_stride(s->output.n_inputs), s->rows + first, n, is_scored,
                     s->top + first * s->k, s->top_ids + first * s->k);
    }
}

void all_logits(struct search *s, int n_rows, float *logits) {
    const struct matrix *w = &s->output;
    const struct input input = s->model->kernels->prepare(w, s->room.x, row_stride(w->n_inputs), n_rows, s->room.inputs);
    s->model->kernels->product(w, &input, 0, w->n_panels, LINEAR, logits, (size_t)w->n_panels * PANEL);
}

static double log_sum(const float *logits, const int32_t *ids, int n, const uint8_t *is_counted) {
    double highest = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        if (is_counted[ids[i]] && logits[ids[i]] > highest) highest = logits[ids[i]];
    for (int i = 0; i < n; i++)
        if (is_counted[ids[i]]) sum += exp(logits[ids[i]] - highest);
    return highest + log(sum);
}

/* Ask Python which ids may follow; how many, or a status as a negative number. */
static int ask_allowed(struct search *s, const struct row *row) {
    const int n_tokens = s->model->config.tgt_vocab_size, index = row->beams->index;
    const int n = s->request->allowed(index, row->written, row->n_written, s->allowed);
    if (n < 0) return -STOPPED;
    s->where = index;
    for (int i = 0; i < n && n <= n_tokens; i++)
        if (s->allowed[i] < 0 || s->allowed[i] >= n_tokens) return s->bad_id = s->allowed[i], -BAD_IDS;
    return n <= n_tokens ? n : (s->bad_id = n, -BAD_IDS);
}

/* Among pooled ids, the allowed ones share the probability of all. */
int best_allowed(struct search *s, int n_rows) {
    const struct td_search *r = s->request;
    const int stride = s->output.n_panels * PANEL;
    all_logits(s, n_rows, s->whole);
    for (int i = 0; i < n_rows; i++) {
        const struct row *row = &s->rows[i];
        const float *logits = s->whole + (size_t)i * (size_t)stride;
        float *top = s->top + i * s->k, maximum = -INFINITY, sum = 0, share = 0;
        int32_t *top_ids = s->top_ids + i * s->k;
        s->model->kernels->add_to_softmax(logits, stride, s->model->kernels->largest(logits, stride), &maximum, &sum);
        const float shift = maximum + logf(sum);
        const int n = ask_allowed(s, row);
        if (n < 0) return -n;
        if (r->n_pooled) /* is_pooled leaves out what is suppressed */
            share = (float)(log_sum(logits, r->pooled, r->n_pooled, s->is_pooled) - log_sum(logits, s->allowed, n, s->is_pooled));
        for (int j = 0; j < s->k; j++) top[j] = shift == shift ? -INFINITY : NAN, top_ids[j] = -1;
        if (row->forced >= 0) insert(s, fmaxf(logits[row->forced] - shift, MIN_FORCED), row->forced, top, top_ids);
        for (int j = 0; j < n && row->forced < 0; j++) {
            const int32_t id = s->allowed[j];
            const float log_prob = logits[id] - shift + (s->is_pooled[id] && share > -INFINITY ? share : 0);
            if (log_prob > top[s->k - 1] && may_follow(s, row, id)) insert(s, log_prob, id, top, top_ids);
        }
    }
    return 0;
}

/* ---- shortlists, after Jean et al. (2015), section 3.3 ---- */

/* Some outputs of a matrix, as a matrix. In every precision a panel has 4 bytes for each output and group of inputs. */
static struct matrix some_outputs(const struct matrix *w, const int32_t *ids, int n, char *memory) {
    struct matrix some = *w;
    some.n_outputs = n;
    some.n_panels = (n + PANEL - 1) / PANEL;
    const size_t per_group = w->precision == FP32 ? 1 : w->precision == BF16 ? 2 : 4;
    const size_t n_groups = (size_t)w->padded_inputs / per_group, columns = (size_t)some.n_panels * PANEL;
    uint32_t *weights = (uint32_t *)(void *)memory;
    float *step = (float *)(void *)(weights + columns * n_groups), *bias = step + columns;
    int32_t *offset = (int32_t *)(void *)(bias + columns);
    for (int to = 0; to < n; to++) {
        const uint32_t *from = (const uint32_t *)w->weights + (size_t)(ids[to] / PANEL) * n_groups * PANEL + ids[to] % PANEL;
        uint32_t *at = weights + (size_t)(to / PANEL) * n_groups * PANEL + to % PANEL;
        for (size_t g = 0; g < n_groups; g++) at[g * PANEL] = from[g * PANEL];
        step[to] = w->step ? w->step[ids[to]] : 0;
        offset[to] = w->offset ? w->offset[ids[to]] : 0;
    }
    for (size_t i = 0; i < columns; i++) bias[i] = (int)i >= n ? -INFINITY : w->bias ? w->bias[ids[i]] : 0;
    some.weights = weights, some.step = step, some.bias = bias, some.offset = offset;
    return some;
}

/* Score only the listed tokens of the batch's sentences. 0 without memory. */
int make_shortlist(struct search *s) {
    const struct td_search *r = s->request;
    const int n_tokens = s->model->config.tgt_vocab_size, n_listed = r->listed_offsets[r->n_sentences];
    int32_t *place = malloc((size_t)n_tokens * sizeof *place);
    s->token_of = malloc((size_t)n_tokens * sizeof *s->token_of);
    s->tables[s->n_tables++] = s->token_of;
    if (!place || !s->token_of) return free(place), 0;
    int n = 0;
    for (int i = 0; i < n_tokens; i++) place[i] = -1;
    for (int i = 0; i < n_listed; i++) place[r->listed_ids[i]] = 0;
    for (int i = 0; i < n_tokens; i++)
        if (place[i] == 0) place[i] = n, s->token_of[n++] = i;
    const size_t columns = row_stride(n);
    s->is_listed = calloc((size_t)r->n_sentences, columns);
    char *memory = calloc(columns, (size_t)s->output.padded_inputs * 4 + 12);
    s->tables[s->n_tables++] = s->is_listed;
    s->tables[s->n_tables++] = memory;
    if (s->is_listed && memory) s->output = some_outputs(&s->output, s->token_of, n, memory);
    for (int b = 0; s->is_listed && b < r->n_sentences; b++)
        for (int i = r->listed_offsets[b]; i < r->listed_offsets[b + 1]; i++)
            s->is_listed[(size_t)b * columns + (size_t)place[r->listed_ids[i]]] = 1;
    free(place);
    return s->is_listed && memory;
}
