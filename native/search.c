/* Greedy search, beam search and sampling: step by step, with the rows of all sentences of a batch.

   Beam search is the authors': the 2 beam_size most probable extensions of the alive beams are candidates; those that end
   with EOS enter the finished pool, the best others stay alive. Section 6.1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

static int encode_sources(struct search *s) {
    const struct td_search *r = s->request;
    return !r->src_offsets || encode(s->model, &s->room, r->src_ids, r->src_states, r->src_offsets, r->n_sentences, s->sentences);
}

/* What may follow the first n ids of a text, whose state is the `state`-th. */
static struct row row_of(const struct search *s, struct beams *b, const struct text *text, int n, int state) {
    const struct td_search *r = s->request;
    const int n_written = n - b->n_prompt, first = r->prefix_ids ? r->prefix_offsets[b->index] : 0;
    const int length = r->prefix_ids ? r->prefix_offsets[b->index + 1] - first : 0;
    return (struct row){
        .beams = b, .may_end = text->may_end, .state = state, .written = text->ids + b->n_prompt, .n_written = n_written,
        .forced = n_written < length ? r->prefix_ids[first + n_written] : -1,
        .is_word_start = r->starts_word && r->starts_word[b->index] && n_written == length,
        .maximum = -INFINITY,
    };
}

/* Where the new tokens of a sentence go. 0 without memory. */
static int make_group(struct search *s, struct beams *b, int n, struct group *group) {
    const int window = s->request->window;
    if (s->width > 1 && b->n_read) {
        const int has_slots = take_slots(s, b);
        *group = (struct group){b->sentence, b->n_alive, b->slots, b->seen, (size_t)b->seen_stride};
        return has_slots;
    }
    if (window && s->width == 1 && n - b->first > window) b->first = b->n_read = n - (window > 1 ? window / 2 : 1);
    *group = (struct group){b->sentence, n - b->n_read, s->order + b->n_read - b->first, NULL, 0};
    if (!grow(s->model, b->sentence, n - b->first)) return 0;
    b->sentence->n_slots = n - b->first;
    return 1;
}

/* Read what is new in the texts of open sentences. The states after their last token, and before each draft, are at the
   front of room->x, and s->rows describes them; how many, or -1 without memory. */
int read_texts(struct search *s) {
    const uint8_t *begins_word = s->model->tgt.begins_word;
    const size_t d = row_stride(s->model->config.d_model);
    int n_groups = 0, n_tokens = 0, n_rows = 0;
    for (struct beams *b = s->beams; b < s->beams + s->request->n_sentences; b++) {
        const int n = b->alive->n + b->n_drafted;
        if (b->is_done) continue;
        if (!make_group(s, b, n, &s->groups[n_groups++])) return -1;
        for (const struct text *text = b->alive; text < b->alive + b->n_alive; text++) {
            for (int at = 0, n_words = 0; at < n; at++) {
                n_words += begins_word ? begins_word[text->ids[at]] : 0;
                if (at < b->n_read) continue;
                if (at >= text->n - 1) {
                    if (s->n_next) n_had(s, b, text, s->next_ids + n_rows * s->n_next);
                    s->rows[n_rows++] = row_of(s, b, text, at + 1, n_tokens);
                }
                s->ids[n_tokens] = text->ids[at], s->positions[n_tokens] = at - b->first, s->n_words[n_tokens++] = n_words;
            }
        }
        b->n_read = n;
    }
    if (n_groups && !decode(s->model, &s->room, s->groups, n_groups, s->ids, s->positions, s->n_words)) return -1;
    for (int i = 0; i < n_rows; i++)
        if (s->rows[i].state > i) memcpy(s->room.x + (size_t)i * d, s->room.x + (size_t)s->rows[i].state * d, d * sizeof(float));
    return n_rows;
}

/* Choose the next tokens of the rows. A status. */
static int choose(struct search *s, int n_rows) {
    const struct td_search *r = s->request;
    int status = 0;
    if (r->is_sampled) status = draw_tokens(s, n_rows);
    else if (!r->allowed) best_tokens(s, n_rows, r->beam_size || r->is_scored);
    else status = best_allowed(s, n_rows);
    for (int row = 0, n; row < n_rows && !status; row += n) {
        struct beams *b = s->rows[row].beams;
        const int first = row * s->k;
        n = b->n_alive * (b->n_drafted + 1);
        status = (r->beam_size ? advance : append)(s, b, s->top + first, s->top_ids + first);
    }
    return status;
}

static int is_stopped(const struct td_search *r) { return r->stop && *r->stop; }

static int run(struct search *s, struct search *drafter) {
    const struct td_search *r = s->request;
    if (r->is_sampled && !r->draw && !begin_draws(s)) return NO_MEMORY;
    if (!encode_sources(s) || (drafter && !encode_sources(drafter))) return NO_MEMORY;
    int status = 0;
    while (s->n_open && !status) {
        if (is_stopped(r) || (r->on_step && r->on_step())) return STOPPED;
        if (drafter && (status = draft(drafter, s))) return status;
        const int n_rows = read_texts(s);
        status = n_rows < 0 ? NO_MEMORY : choose(s, n_rows);
    }
    return status;
}

/* Draft tokens until EOS, or after an improbable token. EOS is no draft unless it was drawn: the model writes it itself.
   Speculative decoding: Leviathan, Kalman and Matias (2023). */
int draft(struct search *drafter, struct search *s) {
    const struct td_search *r = s->request;
    int n_rows, status;
    for (int i = 0; i < r->n_sentences; i++) {
        const struct beams *b = &s->beams[i];
        struct beams *own = &drafter->beams[i];
        own->generator = b->generator;
        own->alive->ids = b->alive->ids, own->alive->n = b->alive->n;
        if (own->n_read > b->alive->n - 1) own->n_read = b->alive->n - 1;
        own->is_done = b->is_done || r->n_drafted < 1 || b->alive->n - b->n_prompt >= b->max_length - 1;
    }
    while ((n_rows = read_texts(drafter)) > 0) {
        if (!r->is_sampled) best_tokens(drafter, n_rows, 1);
        else if ((status = draw_tokens(drafter, n_rows))) return status;
        for (int row = 0; row < n_rows; row++) {
            struct beams *own = drafter->rows[row].beams, *b = &s->beams[own->index];
            const int32_t id = drafter->top_ids[row];
            own->is_done = id < 0 || (id == r->eos_id && !r->is_sampled);
            if (own->is_done) continue;
            if (r->is_sampled) keep_draft(drafter, row, b, s);
            own->alive->ids[own->alive->n++] = id;
            own->is_done = ++b->n_drafted >= r->n_drafted || id == r->eos_id || own->alive->n - b->n_prompt >= b->max_length - 1
                           || exp(drafter->top[row]) < r->min_draft_probability;
        }
    }
    return n_rows < 0 ? NO_MEMORY : 0;
}

/* ---- the beginning and the end ---- */

void *table(struct search *s, size_t n, size_t size) {
    void *rows = calloc(n + 1, size);
    s->has_room = s->has_room && rows;
    return s->tables[s->n_tables++] = rows;
}

/* The most ids that a text has, with drafts and EOS. */
static size_t most_ids(const struct td_search *r, int i) {
    return (size_t)(r->prompt_offsets[i + 1] - r->prompt_offsets[i] + (r->max_lengths ? r->max_lengths[i] : 0) + r->n_drafted + 1);
}

static void begin_texts(struct search *s, size_t n_ids) {
    const struct td_search *r = s->request;
    const size_t width = (size_t)s->width, n_texts = 3 * width;
    int32_t *ids = table(s, n_ids * n_texts, sizeof *ids);
    struct text *texts = table(s, (size_t)r->n_sentences * n_texts, sizeof *texts);
    int *slots = table(s, (size_t)r->n_sentences * width, sizeof *slots);
    s->sentences = table(s, (size_t)r->n_sentences, sizeof *s->sentences);
    s->beams = table(s, (size_t)r->n_sentences, sizeof *s->beams);
    for (int i = 0; i < r->n_sentences && s->has_room; i++, slots += width) {
        const int n_prompt = r->prompt_offsets[i + 1] - r->prompt_offsets[i];
        s->beams[i] = (struct beams){
            .sentence = &s->sentences[i], .index = i, .n_prompt = n_prompt, .n_alive = 1, .slots = slots,
            .max_length = r->max_lengths ? r->max_lengths[i] : 0,
            .alive = texts, .next = texts + width, .finished = texts + 2 * width,
        };
        for (size_t t = 0; t < n_texts; t++, ids += most_ids(r, i)) texts++->ids = ids;
        s->beams[i].alive->n = n_prompt, s->beams[i].alive->may_end = !n_wanted(s, &s->beams[i]);
        memcpy(s->beams[i].alive->ids, r->prompt_ids + r->prompt_offsets[i], (size_t)n_prompt * sizeof *ids);
    }
}

static int begin(struct search *s, const td_model *model, struct td_search *request) {
    const struct td_search *r = request;
    const int width = r->beam_size > 1 ? r->beam_size : 1, n_tokens = model->config.tgt_vocab_size;
    *s = (struct search){.model = model, .request = request, .width = width, .output = model->output, .has_room = 1,
                         .room.stop = request->stop, .n_open = r->n_sentences};
    s->k = !r->beam_size ? 1 : 2 * width < n_tokens ? 2 * width : n_tokens;
    size_t n_ids = 0, longest = 0;
    for (int i = 0; i < r->n_sentences; i++) {
        n_ids += most_ids(r, i);
        if (most_ids(r, i) > longest) longest = most_ids(r, i);
    }
    const size_t n_outputs = (size_t)s->output.n_panels * PANEL, n_beams = (size_t)r->n_sentences * (size_t)width;
    const size_t n_rows = n_ids + n_beams;
    begin_texts(s, n_ids);
    s->groups = table(s, (size_t)r->n_sentences, sizeof *s->groups);
    s->rows = table(s, n_rows, sizeof *s->rows);
    s->ids = table(s, n_rows, sizeof *s->ids);
    s->positions = table(s, n_rows, sizeof *s->positions);
    s->n_words = table(s, n_rows, sizeof *s->n_words);
    s->top = table(s, n_rows * (size_t)s->k, sizeof *s->top);
    s->top_ids = table(s, n_rows * (size_t)s->k, sizeof *s->top_ids);
    for (int i = 0; r->wanted.first && i < r->n_sentences; i++)
        if (s->n_next < r->wanted.first[i + 1] - r->wanted.first[i]) s->n_next = r->wanted.first[i + 1] - r->wanted.first[i];
    s->next = table(s, n_beams * (size_t)s->n_next, sizeof *s->next);
    s->next_ids = table(s, n_beams * (size_t)s->n_next, sizeof *s->next_ids);
    s->logits = table(s, BLOCK_ROWS * BLOCK, sizeof *s->logits);
    s->is_suppressed = table(s, n_outputs, 1);
    s->is_pooled = table(s, n_outputs, 1);
    s->allowed = table(s, n_outputs, sizeof *s->allowed);
    s->order = table(s, longest, sizeof *s->order);
    if (r->allowed || r->is_sampled) s->whole = table(s, n_beams * (size_t)(r->n_drafted + 1) * n_outputs, sizeof *s->whole);
    if (!s->has_room) return 0;
    for (size_t i = 0; i < longest; i++) s->order[i] = (int)i;
    for (int i = 0; i < r->n_pooled; i++) s->is_pooled[r->pooled[i]] = 1;
    for (int i = 0; i < r->n_suppressed; i++) s->is_suppressed[r->suppressed_ids[i]] = 1, s->is_pooled[r->suppressed_ids[i]] = 0;
    return !r->listed_ids || (r->draft && r->draft != model) || make_shortlist(s); /* else it is the drafter's */
}

static void end(struct search *s) {
    for (int i = 0; s->beams && s->sentences && i < s->request->n_sentences; i++) {
        free_sentence(&s->sentences[i]);
        free(s->beams[i].seen), free(s->beams[i].next_seen);
    }
    for (int i = 0; i < s->n_tables; i++) free(s->tables[i]);
    free_room(&s->room);
}

int32_t td_run(const td_model *model, struct td_search *request, char *error, int32_t error_size) {
    struct search s, drafter;
    int status = NO_MEMORY;
    if (begin(&s, model, request)) {
        if (!request->draft) status = run(&s, NULL);
        else if (begin(&drafter, request->draft, request)) status = run(&s, &drafter);
        if (request->draft) end(&drafter);
    }
    for (int i = 0; status == STOPPED && i < request->n_sentences; i++)
        if (!s.beams[i].is_done) write_results(&s, &s.beams[i]);
    if (status == NO_HYPOTHESIS) snprintf(error, (size_t)error_size, "%d %d", s.where, s.n_written + 1);
    if (status == BAD_IDS) snprintf(error, (size_t)error_size, "%d %d", s.where, s.bad_id);
    end(&s);
    return status;
}

int32_t td_score(const td_model *model, struct td_search *request, const int32_t *targets, float *log_probs,
                 int32_t attention_layer, float *attention) {
    struct search s;
    const int is_begun = begin(&s, model, request) && encode_sources(&s);
    for (struct beams *b = s.beams; is_begun && b < s.beams + request->n_sentences; b++) /* as if all but the first id were drafts */
        b->n_drafted = b->n_prompt - 1, b->n_prompt = b->alive->n = 1;
    s.room.attention_layer = attention_layer, s.room.attention = attention;
    const int n_rows = is_begun ? read_texts(&s) : -1;
    for (int i = 0; i < n_rows; i++) s.rows[i].forced = targets[i];
    if (n_rows > 0) best_tokens(&s, n_rows, 1);
    if (n_rows > 0) memcpy(log_probs, s.top, (size_t)n_rows * sizeof *log_probs);
    end(&s);
    return n_rows < 0 ? NO_MEMORY : 0;
}

int32_t td_logits(const td_model *model, struct td_search *request, float *logits) {
    struct search s;
    const size_t n_outputs = (size_t)model->output.n_panels * PANEL, n_tokens = (size_t)model->config.tgt_vocab_size;
    int n_rows = -1;
    if (begin(&s, model, request) && encode_sources(&s)) n_rows = read_texts(&s);
    float *padded = table(&s, (size_t)request->n_sentences * n_outputs, sizeof *padded);
    if (padded && n_rows > 0) all_logits(&s, n_rows, padded);
    for (int i = 0; padded && i < n_rows; i++) memcpy(logits + (size_t)i * n_tokens, padded + (size_t)i * n_outputs, n_tokens * sizeof *logits);
    end(&s);
    return padded && n_rows >= 0 ? 0 : NO_MEMORY;
}
