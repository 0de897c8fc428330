/* The log-probabilities that a model gives to texts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

/* Of each row's target, from the states of the rows. */
static void score_rows(const td_model *m, struct room *room, const int32_t *targets, int n_rows, float *logits, float *log_probs) {
    const struct matrix *w = &m->output;
    const size_t d = row_stride(m->config.d_model);
    for (int first = 0; first < n_rows; first += BLOCK_ROWS) {
        const int rows = n_rows - first < BLOCK_ROWS ? n_rows - first : BLOCK_ROWS;
        float maximum[BLOCK_ROWS], sum[BLOCK_ROWS], chosen[BLOCK_ROWS];
        for (int r = 0; r < rows; r++) maximum[r] = -INFINITY, sum[r] = 0;
        const struct input input = m->kernels->prepare(w, room->x + (size_t)first * d, d, rows, room->inputs);
        for (int panel = 0; panel < w->n_panels; panel += BLOCK_PANELS) {
            const int end = panel + BLOCK_PANELS < w->n_panels ? panel + BLOCK_PANELS : w->n_panels;
            m->kernels->product(w, &input, panel, end, LINEAR, logits, BLOCK);
            for (int r = 0; r < rows; r++) {
                const int target = targets[first + r] - panel * PANEL, n = (end - panel) * PANEL;
                const float *row = logits + (size_t)r * BLOCK;
                m->kernels->add_to_softmax(row, n, m->kernels->largest(row, n), &maximum[r], &sum[r]);
                if (target >= 0 && target < n) chosen[r] = row[target];
            }
        }
        for (int r = 0; r < rows; r++) log_probs[first + r] = chosen[r] - (maximum[r] + logf(sum[r]));
    }
}

/* The decoder's states of all ids, in room->x. */
static int read_ids(const td_model *m, struct room *room, int n_sentences, const int32_t *src_ids, const int32_t *src_offsets,
                    const int32_t *ids, const int32_t *offsets) {
    const size_t n_rows = (size_t)offsets[n_sentences], n = (size_t)n_sentences;
    struct sentence *sentences = calloc(n + 1, sizeof *sentences);
    struct group *groups = calloc(n + 1, sizeof *groups);
    int32_t *positions = calloc(n_rows + 1, sizeof *positions);
    int32_t *n_words = calloc(n_rows + 1, sizeof *n_words);
    int *slots = calloc(n_rows + 1, sizeof *slots);
    int is_good = sentences && groups && positions && slots && n_words;
    is_good = is_good && (!src_ids || encode(m, room, src_ids, NULL, src_offsets, n_sentences, sentences));
    for (int s = 0; s < n_sentences && is_good; s++) {
        const int length = offsets[s + 1] - offsets[s];
        for (int i = 0; i < length; i++) positions[offsets[s] + i] = slots[offsets[s] + i] = i;
        count_words(&m->tgt, ids + offsets[s], length, 0, n_words + offsets[s]);
        is_good = grow(m, &sentences[s], length);
        sentences[s].n_slots = length;
        groups[s] = (struct group){&sentences[s], length, slots + offsets[s], NULL, 0};
    }
    is_good = is_good && decode(m, room, groups, n_sentences, ids, positions, n_words);
    for (int s = 0; sentences && s < n_sentences; s++) free_sentence(&sentences[s]);
    free(sentences), free(groups), free(positions), free(slots), free(n_words);
    return is_good;
}

int32_t td_score(const td_model *m, int32_t n_sentences, const int32_t *src_ids, const int32_t *src_offsets, const int32_t *ids,
                 const int32_t *targets, const int32_t *offsets, float *log_probs, int32_t attention_layer, float *attention) {
    struct room room = {.attention_layer = attention_layer, .attention = attention};
    float *logits = malloc(BLOCK_ROWS * BLOCK * sizeof(float));
    const int is_good = logits && read_ids(m, &room, n_sentences, src_ids, src_offsets, ids, offsets);
    if (is_good) score_rows(m, &room, targets, offsets[n_sentences], logits, log_probs);
    for (int s = 0; is_good && attention && s < n_sentences; s++) {
        const int n = (offsets[s + 1] - offsets[s]) * (src_offsets[s + 1] - src_offsets[s]);
        for (int i = 0; i < n; i++) *attention++ /= (float)m->config.n_heads;
    }
    free(logits);
    free_room(&room);
    return is_good ? 0 : 3;
}

int32_t td_logits(const td_model *m, const int32_t *src_ids, int32_t n_source, const int32_t *ids, int32_t n_ids, float *logits) {
    const int32_t src_offsets[] = {0, n_source}, offsets[] = {0, n_ids};
    const size_t d = row_stride(m->config.d_model);
    struct room room = {0};
    float *whole = calloc((size_t)m->output.n_panels, PANEL * sizeof(float));
    const int is_good = whole && read_ids(m, &room, 1, src_ids, src_offsets, ids, offsets);
    if (is_good) {
        const struct input input = m->kernels->prepare(&m->output, room.x + (size_t)(n_ids - 1) * d, d, 1, room.inputs);
        m->kernels->product(&m->output, &input, 0, m->output.n_panels, LINEAR, whole, 0);
        for (int i = 0; i < m->config.tgt_vocab_size; i++) logits[i] = whole[i];
    }
    free(whole);
    free_room(&room);
    return is_good ? 0 : 3;
}
