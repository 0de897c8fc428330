/* Greedy search, beam search and sampling: step by step, with the rows of all sentences of a batch.

   Beam search is the authors': the 2 beam_size most probable extensions of the alive beams are candidates; those that end
   with EOS enter the finished pool, the best others stay alive. Section 6.1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

int encode_sources(struct search *s) {
    const struct td_search *r = s->request;
    if (!r->src_offsets) return 1;
    struct sentence *sentences = calloc((size_t)r->n_sentences, sizeof *sentences);
    const int is_encoded = sentences && encode(s->model, &s->room, r->src_ids, r->src_states, r->src_offsets, r->n_sentences, sentences);
    for (int i = 0; sentences && i < r->n_sentences; i++) s->beams[i].sentence = sentences[i];
    free(sentences);
    return is_encoded;
}

/* Read the prompts of all sentences; the states after them are moved to the front of room->x. */
static int read_prompts(struct search *s) {
    const struct td_search *r = s->request;
    const size_t d = row_stride(s->model->config.d_model);
    const int32_t *offsets = r->prompt_offsets;
    int32_t *positions = malloc((size_t)offsets[r->n_sentences] * sizeof *positions);
    int32_t *n_words = malloc((size_t)offsets[r->n_sentences] * sizeof *n_words);
    int is_good = positions && n_words;
    for (int i = 0; i < r->n_sentences && is_good; i++) {
        const int n = offsets[i + 1] - offsets[i];
        memcpy(positions + offsets[i], s->order, (size_t)n * sizeof *positions);
        s->beams[i].n_prompt_words = count_words(&s->model->tgt, r->prompt_ids + offsets[i], n, 0, n_words + offsets[i]);
        is_good = grow(s->model, &s->beams[i].sentence, n);
        s->beams[i].sentence.n_slots = n;
        s->groups[i] = (struct group){&s->beams[i].sentence, n, s->order, NULL, 0};
    }
    is_good = is_good && decode(s->model, &s->room, s->groups, r->n_sentences, r->prompt_ids, positions, n_words);
    for (int i = 0; i < r->n_sentences && is_good; i++) {
        memmove(s->room.x + (size_t)i * d, s->room.x + (size_t)(offsets[i + 1] - 1) * d, d * sizeof(float));
        s->groups[i].n_rows = 1;
    }
    free(positions), free(n_words);
    return is_good;
}

/* Read the last token of every beam of every sentence that is not done. The number of sentences, or -1. */
static int read_last_tokens(struct search *s) {
    const struct td_search *r = s->request;
    int n_groups = 0, row = 0;
    for (int i = 0; i < r->n_sentences; i++) {
        struct beams *b = &s->beams[i];
        if (b->is_done) continue;
        if (!take_slots(s, b)) return -1;
        const int n_prompt = r->prompt_offsets[i + 1] - r->prompt_offsets[i];
        s->groups[n_groups++] = (struct group){&b->sentence, b->n_alive, b->slots, b->seen, (size_t)b->seen_stride};
        for (int w = 0; w < b->n_alive; w++, row++) {
            s->ids[row] = b->nodes[b->ends[w]].token;
            s->n_words[row] = b->nodes[b->ends[w]].n_words;
            s->positions[row] = n_prompt + s->n_tokens - 1;
        }
    }
    return n_groups && !decode(s->model, &s->room, s->groups, n_groups, s->ids, s->positions, s->n_words) ? -1 : n_groups;
}

/* The rows of a step, with what may follow each. */
static int describe_rows(struct search *s, int n_groups) {
    const struct td_search *r = s->request;
    const int n = s->n_tokens, remembers = r->n_units > 0 || r->no_repeat_ngram > 0;
    int n_rows = 0;
    for (int g = 0; g < n_groups; g++) {
        struct beams *b = (struct beams *)(void *)s->groups[g].sentence; /* its first member */
        const int32_t *prefix = r->prefix_ids ? r->prefix_ids + r->prefix_offsets[b->index] : NULL;
        const int length = prefix ? r->prefix_offsets[b->index + 1] - r->prefix_offsets[b->index] : 0;
        for (int w = 0; w < s->groups[g].n_rows; w++, n_rows++) {
            struct row *row = &s->rows[n_rows];
            *row = (struct row){.beams = b, .beam = w, .forced = n < length ? prefix[n] : -1};
            row->is_word_start = r->starts_word && r->starts_word[b->index] && n == length;
            if (!remembers) continue;
            int32_t *written = s->written + (size_t)n_rows * (size_t)r->max_length;
            last_ids(b, b->ends[w], written, n);
            row->written = written;
        }
    }
    return n_rows;
}

/* Choose the next tokens from the states of the rows in room->x. A status. */
static int choose(struct search *s, int n_groups) {
    const struct td_search *r = s->request;
    const int n_rows = describe_rows(s, n_groups);
    int status = 0;
    if (r->is_sampled) return sample(s, n_rows);
    if (!r->allowed) best_tokens(s, s->room.x, n_rows, r->beam_size || r->is_scored);
    else if (!best_allowed(s, s->room.x, n_rows)) return STOPPED;
    for (int g = 0, row = 0; g < n_groups && !status; row += s->groups[g++].n_rows) {
        struct beams *b = s->rows[row].beams;
        const int first = row * s->k;
        s->where = b->index;
        if (r->beam_size) status = advance(s, b, s->top + first, s->top_ids + first);
        else status = append(s, b, s->top[first], s->top_ids[first]);
    }
    return status;
}

static int run(struct search *s) {
    const struct td_search *r = s->request;
    if (r->is_sampled && !r->draw) seed_draws(s);
    if (!encode_sources(s) || !read_prompts(s)) return NO_MEMORY;
    int n_groups = r->n_sentences;
    while (n_groups > 0) {
        if (r->on_step && r->on_step()) return STOPPED;
        int status = choose(s, n_groups);
        s->n_tokens++;
        for (int g = 0; g < n_groups && !status; g++) status = finish_if_done(s, (struct beams *)(void *)s->groups[g].sentence);
        if (status) return status;
        n_groups = read_last_tokens(s);
    }
    return n_groups < 0 ? NO_MEMORY : 0;
}

/* ---- the beginning and the end ---- */

static void *table(struct search *s, size_t n, size_t size) {
    void *rows = calloc(n + 1, size);
    s->has_room = s->has_room && rows;
    return s->tables[s->n_tables++] = rows;
}

static int longest_prompt(const struct td_search *r) {
    int longest = 0;
    for (int i = 0; i < r->n_sentences; i++)
        if (r->prompt_offsets[i + 1] - r->prompt_offsets[i] > longest) longest = r->prompt_offsets[i + 1] - r->prompt_offsets[i];
    return longest;
}

static void make_tables(struct search *s) {
    const struct td_search *r = s->request;
    const size_t n_sentences = (size_t)r->n_sentences, n_beams = n_sentences * (size_t)s->width;
    const size_t n_rows = r->draft ? n_sentences * (size_t)(r->n_drafted + 2) : n_beams;
    const size_t n_tokens = (size_t)s->output.n_panels * PANEL, n_order = (size_t)(r->max_length + longest_prompt(r) + 1);
    s->beams = table(s, n_sentences, sizeof *s->beams);
    s->groups = table(s, n_sentences, sizeof *s->groups);
    s->rows = table(s, n_rows, sizeof *s->rows);
    s->ids = table(s, n_rows, sizeof *s->ids);
    s->positions = table(s, n_rows, sizeof *s->positions);
    s->n_words = table(s, n_rows, sizeof *s->n_words);
    s->top = table(s, n_rows * (size_t)s->k, sizeof *s->top);
    s->top_ids = table(s, n_rows * (size_t)s->k, sizeof *s->top_ids);
    s->logits = table(s, BLOCK_ROWS * BLOCK, sizeof *s->logits);
    s->is_suppressed = table(s, n_tokens, 1);
    s->is_pooled = table(s, n_tokens, 1);
    s->allowed = table(s, n_tokens, sizeof *s->allowed);
    s->written = table(s, r->n_units || r->no_repeat_ngram ? n_rows * (size_t)r->max_length : (size_t)r->max_length, sizeof *s->written);
    s->order = table(s, n_order, sizeof *s->order);
    if (r->allowed || r->is_sampled) s->whole = table(s, n_rows * n_tokens, sizeof *s->whole);
    float *log_probs = table(s, n_beams, sizeof *log_probs);
    int32_t *ends = table(s, n_beams, sizeof *ends);
    struct finished *finished = table(s, n_beams, sizeof *finished);
    int *slots = table(s, n_beams, sizeof *slots);
    if (!s->has_room) return;
    for (int i = 0; i < (int)n_order; i++) s->order[i] = i;
    for (int i = 0; i < r->n_pooled; i++) s->is_pooled[r->pooled[i]] = 1;
    for (int i = 0; i < r->n_suppressed; i++) s->is_suppressed[r->suppressed_ids[i]] = 1, s->is_pooled[r->suppressed_ids[i]] = 0;
    for (int i = 0; i < r->n_sentences; i++) {
        struct beams *b = &s->beams[i];
        const int first = i * s->width;
        b->log_probs = log_probs + first, b->ends = ends + first, b->finished = finished + first, b->slots = slots + first;
        b->index = i, b->max_length = r->max_lengths[i], b->n_alive = 1, b->ends[0] = -1;
    }
    if (r->listed_ids && (!r->draft || r->draft == s->model)) s->has_room = make_shortlist(s); /* else it is the drafter's */
}

static void begin(struct search *s, const td_model *model, struct td_search *request) {
    const int width = request->beam_size > 1 ? request->beam_size : 1, n_tokens = model->config.tgt_vocab_size;
    *s = (struct search){.model = model, .request = request, .width = width, .output = model->output, .has_room = 1};
    s->k = !request->beam_size ? 1 : 2 * width < n_tokens ? 2 * width : n_tokens;
    make_tables(s);
}

static void end(struct search *s) {
    for (int i = 0; s->beams && i < s->request->n_sentences; i++) {
        free_sentence(&s->beams[i].sentence);
        free(s->beams[i].nodes), free(s->beams[i].seen), free(s->beams[i].next_seen);
    }
    for (int i = 0; i < s->n_tables; i++) free(s->tables[i]);
    free_room(&s->room);
}

int32_t td_run(const td_model *model, struct td_search *request, char *error, int32_t error_size) {
    struct search s, drafter;
    int status = NO_MEMORY;
    begin(&s, model, request);
    if (request->draft) {
        begin(&drafter, request->draft, request);
        if (s.has_room && drafter.has_room) status = run_with_drafts(&s, &drafter);
        end(&drafter);
    } else if (s.has_room) {
        status = run(&s);
    }
    if (status == NO_HYPOTHESIS) snprintf(error, (size_t)error_size, "%d %d", s.where, s.n_tokens + 1);
    end(&s);
    return status;
}
