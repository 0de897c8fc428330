/* The Transformer of "Attention Is All You Need": packed weights, the encoder, and decoding steps. Sections 3.1 to 3.5.

   Activations are rows of floats, a token each, without padding between sentences. A row is as long as the next multiple
   of 16, and what is behind its width is 0. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEED_FORWARD_ROWS = 96, /* whose hidden states stay in the cache */
    ENCODER_ROWS = 256,     /* of sentences that are encoded together, unless one is longer */
};

static int padded(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

size_t row_stride(int width) { return (size_t)padded(width, PANEL); }

/* ---- room ---- */

static size_t widest(const td_model *m) {
    const struct td_config *c = &m->config;
    const int width_k = c->n_heads * c->d_k, width_v = c->n_heads * c->d_v;
    return row_stride(2 * width_k + width_v);
}

void free_room(struct room *room) {
    free(room->memory);
    free(room->scores);
}

int reserve(const td_model *m, struct room *room, size_t n_rows, size_t n_positions) {
    const struct td_config *c = &m->config;
    const size_t d = row_stride(c->d_model), heads = row_stride(c->n_heads * c->d_v), ff = row_stride(c->d_ff);
    const size_t n_scores = attention_floats((int)n_positions, c->d_v) + (size_t)c->d_k * (n_positions + PANEL); /* and an encoder's keys */
    if (n_scores > room->n_scores) {
        free(room->scores);
        room->n_scores = 2 * n_scores;
        room->scores = malloc(room->n_scores * sizeof(float));
        if (!room->scores) return room->n_scores = 0;
    }
    if (n_rows <= room->n_rows) return 1;
    n_rows += n_rows / 4;
    const struct matrix largest = {.precision = INT8, .padded_inputs = padded((int)(ff > heads ? ff > d ? ff : d : heads > d ? heads : d), MAX_INPUT_PAD)};
    const size_t n_floats = n_rows * (3 * d + widest(m) + heads) + FEED_FORWARD_ROWS * ff;
    const size_t bytes = (n_floats + 64) * sizeof(float) + input_bytes(&largest, (int)n_rows);
    free(room->memory);
    room->n_rows = 0;
    room->memory = calloc(1, bytes + 64);
    if (!room->memory) return 0;
    room->n_rows = n_rows;
    float *at = (float *)(((uintptr_t)room->memory + 63) / 64 * 64);
    room->x = at, at += n_rows * d;
    room->normed = at, at += n_rows * d;
    room->y = at, at += n_rows * d;
    room->wide = at, at += n_rows * widest(m);
    room->heads = at, at += n_rows * heads;
    room->hidden = at, at += FEED_FORWARD_ROWS * ff + 32;
    room->inputs = at;
    return 1;
}

/* ---- layers ---- */

/* y = x W^T + b, for rows of the given strides. */
static void linear(const td_model *m, struct room *room, const struct matrix *w, const float *x, size_t stride, int n_rows,
                   enum activation activation, float *y, size_t y_stride) {
    const struct input input = m->kernels->prepare(w, x, stride, n_rows, room->inputs);
    m->kernels->product(w, &input, 0, w->n_panels, activation, y, y_stride);
}

/* max(0, x W_1 + b_1) W_2 + b_2, to room->y. Section 3.3, equation 2. */
static void feed_forward(const td_model *m, struct room *room, const struct layer *layer, const float *x, int n_rows) {
    const size_t d = row_stride(m->config.d_model), ff = row_stride(m->config.d_ff);
    for (int row = 0; row < n_rows; row += FEED_FORWARD_ROWS) {
        const int n = n_rows - row < FEED_FORWARD_ROWS ? n_rows - row : FEED_FORWARD_ROWS;
        linear(m, room, &layer->w_1, x + (size_t)row * d, d, n, (enum activation)m->config.activation, room->hidden, ff);
        linear(m, room, &layer->w_2, room->hidden, ff, n, LINEAR, room->y + (size_t)row * d, d);
    }
}

/* What a sublayer reads: x, or LayerNorm(x) with pre-norm. */
static const float *before(const td_model *m, struct room *room, struct norm norm, int n_rows) {
    if (!m->config.is_pre_norm) return room->x;
    m->kernels->norm(room->normed, room->x, NULL, norm.weight, norm.bias, m->config.norm_eps, n_rows, m->config.d_model,
                     row_stride(m->config.d_model));
    return room->normed;
}

/* LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)); the sublayer's output is in room->y. Section 3.1. */
static void after(const td_model *m, struct room *room, struct norm norm, int n_rows) {
    const int is_pre = m->config.is_pre_norm;
    m->kernels->norm(room->x, room->x, room->y, is_pre ? NULL : norm.weight, norm.bias, m->config.norm_eps, n_rows,
                             m->config.d_model, row_stride(m->config.d_model));
}

static void last_norm(const td_model *m, struct room *room, const struct stack *stack, int n_rows) {
    if (!m->config.is_pre_norm) return;
    m->kernels->norm(room->x, room->x, NULL, stack->norm.weight, stack->norm.bias, m->config.norm_eps, n_rows,
                     m->config.d_model, row_stride(m->config.d_model));
}

static void add_sinusoid(const td_model *m, int position, float *to) {
    const int width = m->sinusoid_width;
    float own[width];
    const float *encoding = position < m->n_sinusoids ? m->sinusoids + (size_t)position * (size_t)width : own;
    if (encoding == own) sinusoid(own, position, width);
    for (int i = 0; i < width; i++) to[i] += encoding[i];
}

/* Embedding times sqrt(d_model), plus the position. Sections 3.4 and 3.5. With word positions, half of the sinusoids are
   those of the position, half those of the word. */
static void embed(const td_model *m, const struct embedding *e, int32_t id, int position, int n_words, float *to) {
    const int d = m->config.d_model;
    read_row(&e->table, id, to);
    for (int i = 0; i < d; i++) to[i] *= m->config.embedding_factor;
    if (e->positions.data) {
        float learned[d];
        read_row(&e->positions, position, learned);
        for (int i = 0; i < d; i++) to[i] += learned[i];
        return;
    }
    add_sinusoid(m, position, to);
    if (e->begins_word) add_sinusoid(m, n_words, to + m->sinusoid_width);
}

/* ---- the encoder ---- */

/* Self-attention within each sentence, to room->y. Section 3.2. */
static void encoder_attention(const td_model *m, struct room *room, const struct layer *layer, const float *x,
                              const int32_t *offsets, int n_sentences, int n_rows) {
    const struct td_config *c = &m->config;
    const size_t wide = widest(m), heads = row_stride(c->n_heads * c->d_v), d = row_stride(c->d_model);
    linear(m, room, &layer->w_qkv, x, d, n_rows, LINEAR, room->wide, wide);
    for (int s = 0; s < n_sentences; s++) {
        const int first = offsets[s] - offsets[0], n = offsets[s + 1] - offsets[s];
        float *keys = room->scores + attention_floats(n, c->d_v);
        for (int h = 0; h < c->n_heads; h++) {
            const float *q = room->wide + (size_t)first * wide + h * c->d_k;
            float *values = room->wide + (size_t)first * wide + 2 * c->n_heads * c->d_k + h * c->d_v;
            const struct head head = {FP32, keys, values, n, c->d_k, c->d_v, wide, NULL};
            m->kernels->keep(&head, 0, n, q + c->n_heads * c->d_k, NULL, wide);
            m->kernels->attend(&head, q, wide, n, n, NULL, 0, room->heads + (size_t)first * heads + h * c->d_v, heads, room->scores);
        }
    }
    linear(m, room, &layer->w_o, room->heads, heads, n_rows, LINEAR, room->y, d);
}

/* Bytes of the keys, or of the values, of a head in a sentence's memory for so many positions. */
static size_t kept_bytes(const td_model *m, int n_positions, size_t width) {
    return (size_t)padded(n_positions, PANEL) * width * (m->precision == FP32 ? sizeof(float) : sizeof(uint16_t));
}

static size_t key_bytes(const td_model *m, int n_positions) { return kept_bytes(m, n_positions, (size_t)padded(m->config.d_k, 2)); }

static size_t value_bytes(const td_model *m, int n_positions) { return kept_bytes(m, n_positions, row_stride(m->config.d_v)); }

static size_t memory_bytes(const td_model *m, int n_positions, int n_heads) {
    return (size_t)n_heads * (key_bytes(m, n_positions) + value_bytes(m, n_positions));
}

/* A head's keys and values in a memory with room for `capacity` positions, of which n are in use. */
static struct head head_in(const td_model *m, void *memory, int capacity, int n, int layer, int h) {
    char *keys = (char *)memory + memory_bytes(m, capacity, layer * m->config.n_heads + h);
    return (struct head){m->precision == FP32 ? FP32 : BF16, keys, keys + key_bytes(m, capacity), n, m->config.d_k, m->config.d_v,
                         row_stride(m->config.d_v), NULL};
}

static void *new_memory(const td_model *m, int n_positions) {
    return calloc(1, memory_bytes(m, n_positions, m->decoder.n_layers * m->config.n_heads) + 64);
}

/* The keys and values of cross-attention, from the encoder's output in room->x. */
static int keep_source(const td_model *m, struct room *room, const int32_t *offsets, int n_sentences, struct sentence *sentences) {
    const struct td_config *c = &m->config;
    const size_t wide = widest(m), d = row_stride(c->d_model);
    const int n_rows = offsets[n_sentences] - offsets[0];
    for (int s = 0; s < n_sentences; s++) {
        sentences[s].n_source = offsets[s + 1] - offsets[s];
        sentences[s].source = new_memory(m, sentences[s].n_source);
        if (!sentences[s].source) return 0;
    }
    for (int l = 0; l < m->decoder.n_layers; l++) {
        linear(m, room, &m->decoder.layers[l].w_kv, room->x, d, n_rows, LINEAR, room->wide, wide);
        for (int s = 0; s < n_sentences; s++) {
            struct sentence *sentence = &sentences[s];
            const float *k = room->wide + (size_t)(offsets[s] - offsets[0]) * wide, *v = k + c->n_heads * c->d_k;
            for (int h = 0; h < c->n_heads; h++, k += c->d_k, v += c->d_v) {
                const struct head head = head_in(m, sentence->source, sentence->n_source, sentence->n_source, l, h);
                m->kernels->keep(&head, 0, sentence->n_source, k, v, wide);
            }
        }
    }
    return 1;
}

static int encode_some(const td_model *m, struct room *room, const int32_t *ids, const float *states, const int32_t *offsets,
                       int n_sentences, struct sentence *sentences) {
    const int n_rows = offsets[n_sentences] - offsets[0];
    const size_t d = row_stride(m->config.d_model);
    int longest = 0;
    for (int s = 0; s < n_sentences; s++)
        if (offsets[s + 1] - offsets[s] > longest) longest = offsets[s + 1] - offsets[s];
    if (!reserve(m, room, (size_t)n_rows, (size_t)longest)) return 0;
    for (int s = 0; s < n_sentences; s++) {
        int32_t n_words = 0;
        for (int i = offsets[s]; i < offsets[s + 1]; i++) {
            float *x = room->x + (size_t)(i - offsets[0]) * d;
            const size_t width = (size_t)m->config.d_model;
            if (!states && m->src.begins_word) n_words += m->src.begins_word[ids[i]];
            if (states) memcpy(x, states + (size_t)i * width, width * sizeof(float));
            else embed(m, &m->src, ids[i], i - offsets[s], n_words, x);
        }
    }
    for (int l = 0; l < m->encoder.n_layers; l++) {
        const struct layer *layer = &m->encoder.layers[l];
        encoder_attention(m, room, layer, before(m, room, layer->self_norm, n_rows), offsets, n_sentences, n_rows);
        after(m, room, layer->self_norm, n_rows);
        feed_forward(m, room, layer, before(m, room, layer->feed_forward_norm, n_rows), n_rows);
        after(m, room, layer->feed_forward_norm, n_rows);
    }
    last_norm(m, room, &m->encoder, n_rows);
    return keep_source(m, room, offsets, n_sentences, sentences);
}

int encode(const td_model *m, struct room *room, const int32_t *ids, const float *states, const int32_t *offsets,
           int n_sentences, struct sentence *sentences) {
    for (int first = 0, next; first < n_sentences && !(room->stop && *room->stop); first = next) {
        next = first + 1;
        while (next < n_sentences && offsets[next + 1] - offsets[first] <= ENCODER_ROWS) next++;
        if (!encode_some(m, room, ids, states, offsets + first, next - first, sentences + first)) return 0;
    }
    return 1;
}

/* ---- decoding ---- */

int grow(const td_model *m, struct sentence *sentence, int n_slots) {
    if (n_slots <= sentence->capacity) return 1;
    const int capacity = padded(n_slots + n_slots / 2 + PANEL, PANEL);
    void *slots = new_memory(m, capacity);
    if (!slots) return 0;
    for (int l = 0; l < m->decoder.n_layers && sentence->slots; l++)
        for (int h = 0; h < m->config.n_heads; h++) {
            const struct head to = head_in(m, slots, capacity, 0, l, h), from = head_in(m, sentence->slots, sentence->capacity, 0, l, h);
            memcpy(to.keys, from.keys, key_bytes(m, sentence->n_slots));
            memcpy(to.values, from.values, value_bytes(m, sentence->n_slots));
        }
    free(sentence->slots);
    sentence->slots = slots;
    sentence->capacity = capacity;
    return 1;
}

void free_sentence(struct sentence *sentence) {
    free(sentence->source);
    free(sentence->slots);
    *sentence = (struct sentence){0};
}

/* Keep the keys and values of new rows in their slots, then attend to the slots that each sees, to room->y. */
static void decoder_attention(const td_model *m, struct room *room, int l, const float *x, const struct group *groups,
                              int n_groups, int n_rows) {
    const struct td_config *c = &m->config;
    const struct layer *layer = &m->decoder.layers[l];
    const size_t wide = widest(m), heads = row_stride(c->n_heads * c->d_v), d = row_stride(c->d_model);
    linear(m, room, &layer->w_qkv, x, d, n_rows, LINEAR, room->wide, wide);
    size_t row = 0;
    for (const struct group *g = groups; g < groups + n_groups; row += (size_t)g->n_rows, g++) {
        struct sentence *sentence = g->sentence;
        const float *first = room->wide + row * wide;
        for (int h = 0; h < c->n_heads; h++) {
            const struct head head = head_in(m, sentence->slots, sentence->capacity, sentence->n_slots, l, h);
            const float *k = first + (c->n_heads + h) * c->d_k, *v = first + 2 * c->n_heads * c->d_k + h * c->d_v;
            for (int r = 0; r < g->n_rows; r++) m->kernels->keep(&head, g->slots[r], 1, k + (size_t)r * wide, v + (size_t)r * wide, 0);
            m->kernels->attend(&head, first + h * c->d_k, wide, g->n_rows, g->slots[0] + 1, g->seen, g->seen_stride,
                               room->heads + row * heads + h * c->d_v, heads, room->scores);
        }
    }
    linear(m, room, &layer->w_o, room->heads, heads, n_rows, LINEAR, room->y, d);
}

/* Attend to the source, to room->y. */
static void cross_attention(const td_model *m, struct room *room, int l, const float *x, const struct group *groups,
                            int n_groups, int n_rows) {
    const struct td_config *c = &m->config;
    const struct layer *layer = &m->decoder.layers[l];
    const size_t wide = widest(m), heads = row_stride(c->n_heads * c->d_v), d = row_stride(c->d_model);
    linear(m, room, &layer->w_q, x, d, n_rows, LINEAR, room->wide, wide);
    size_t row = 0;
    float *recorded = room->attention && room->attention_layer == l ? room->attention : NULL;
    for (const struct group *g = groups; g < groups + n_groups; row += (size_t)g->n_rows, g++) {
        const struct sentence *s = g->sentence;
        for (int h = 0; h < c->n_heads; h++) {
            struct head head = head_in(m, s->source, s->n_source, s->n_source, l, h);
            head.recorded = recorded;
            m->kernels->attend(&head, room->wide + row * wide + h * c->d_k, wide, g->n_rows, s->n_source, NULL, 0,
                               room->heads + row * heads + h * c->d_v, heads, room->scores);
        }
        if (recorded) recorded += (size_t)g->n_rows * (size_t)s->n_source;
    }
    linear(m, room, &layer->w_cross_o, room->heads, heads, n_rows, LINEAR, room->y, d);
}

int decode(const td_model *m, struct room *room, const struct group *groups, int n_groups, const int32_t *ids,
           const int32_t *positions, const int32_t *n_words) {
    const size_t d = row_stride(m->config.d_model);
    int n_rows = 0, longest = 0;
    for (const struct group *g = groups; g < groups + n_groups; g++) {
        n_rows += g->n_rows;
        if (g->sentence->n_slots > longest) longest = g->sentence->n_slots;
        if (g->sentence->n_source > longest) longest = g->sentence->n_source;
    }
    if (!reserve(m, room, (size_t)n_rows, (size_t)longest)) return 0;
    for (int r = 0; r < n_rows; r++) embed(m, &m->tgt, ids[r], positions[r], n_words[r], room->x + (size_t)r * d);
    for (int l = 0; l < m->decoder.n_layers; l++) {
        const struct layer *layer = &m->decoder.layers[l];
        decoder_attention(m, room, l, before(m, room, layer->self_norm, n_rows), groups, n_groups, n_rows);
        after(m, room, layer->self_norm, n_rows);
        if (m->encoder.n_layers) {
            cross_attention(m, room, l, before(m, room, layer->cross_norm, n_rows), groups, n_groups, n_rows);
            after(m, room, layer->cross_norm, n_rows);
        }
        feed_forward(m, room, layer, before(m, room, layer->feed_forward_norm, n_rows), n_rows);
        after(m, room, layer->feed_forward_norm, n_rows);
    }
    last_norm(m, room, &m->decoder, n_rows);
    return 1;
}
