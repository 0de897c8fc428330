/* The Transformer of "Attention Is All You Need": packed weights, the encoder, and decoding steps. Sections 3.1 to 3.5.

   Activations are rows of floats, a token each, without padding between sentences. A row is as long as the next multiple
   of 16, and what is behind its width is 0. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

enum {
    N_SINUSOIDS = 2048,
    FEED_FORWARD_ROWS = 96, /* whose hidden states stay in the cache */
    ENCODER_ROWS = 256,     /* of sentences that are encoded together, unless one is longer */
};

static int padded(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

size_t row_stride(int width) { return (size_t)padded(width, PANEL); }

/* ---- weights ---- */

/* Where packed weights go: the first pass only counts bytes (base NULL), the second one writes. */
struct packer {
    char *base;
    size_t used;
    const struct td_tensor *tensors;
    int n_tensors;
    enum precision precision;
    float *rows; /* room for the weights of a panel */
    char missing[200]; /* the first tensor that is missing or has another shape */
};

static void *take(struct packer *p, size_t bytes) {
    void *at = p->base ? p->base + p->used : NULL;
    p->used += (bytes + 63) / 64 * 64;
    return at;
}

static float number(const struct td_tensor *t, int64_t index) {
    union { uint32_t bits; float value; } u;
    if (t->type == 0) return ((const float *)t->data)[index];
    const uint32_t half = ((const uint16_t *)t->data)[index];
    if (t->type == 1) {
        u.bits = half << 16;
        return u.value;
    }
    const int exponent = (int)(half >> 10 & 31), fraction = (int)(half & 1023);
    float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexpf(1 + (float)fraction / 1024, exponent - 15)
                                 : ldexpf((float)fraction, -24);
    return half >> 15 ? -value : value;
}

static struct td_tensor find(struct packer *p, const char *name, int64_t n_rows, int64_t n_columns, int is_needed) {
    for (int i = 0; i < p->n_tensors; i++)
        if (!strcmp(p->tensors[i].name, name)) {
            if (p->tensors[i].n_rows == n_rows && p->tensors[i].n_columns == n_columns) return p->tensors[i];
            is_needed = 1;
            break;
        }
    if (is_needed && !p->missing[0]) snprintf(p->missing, sizeof p->missing, "%s", name);
    return (struct td_tensor){0};
}

static uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* ties to even */
}

/* Rows of a tensor as floats. */
static void read_row(const struct td_tensor *t, int64_t row, float *to) {
    const int64_t n = t->n_columns;
    if (t->type == 0) memcpy(to, (const float *)t->data + row * n, (size_t)n * sizeof(float));
    else for (int64_t i = 0; i < n; i++) to[i] = number(t, row * n + i);
}

/* The integers of an output's weights, to every fourth group of 4 bytes from `to` on; returns 128 times their sum. */
static int32_t pack_int8(const float *row, int n, float step, int8_t *to) {
    int32_t sum = 0;
    if (!isfinite(step)) return 0;
    for (int i = 0; i < n; i += 4) {
        for (int j = 0; j < 4 && i + j < n; j++) {
            const float level = row[i + j] / step + 12582912.0f; /* ties to even, in the last bits */
            int32_t integer;
            memcpy(&integer, &level, sizeof integer);
            to[(size_t)i * PANEL + (size_t)j] = (int8_t)(integer - 0x4b400000);
            sum += to[(size_t)i * PANEL + (size_t)j];
        }
    }
    return 128 * sum;
}

static void pack_panel(struct matrix *m, const struct td_tensor *t, int panel, float *rows, float *step, int32_t *offset) {
    const size_t first = (size_t)panel * (size_t)m->padded_inputs * PANEL;
    const int n = m->n_inputs, n_rows = m->n_outputs - panel * PANEL < PANEL ? m->n_outputs - panel * PANEL : PANEL;
    for (int o = 0; o < n_rows; o++) read_row(t, panel * PANEL + o, rows + (size_t)o * (size_t)n);
    if (m->precision == FP32) {
        float *to = (float *)(uintptr_t)m->weights + first;
        for (int i = 0; i < n; i++)
            for (int o = 0; o < n_rows; o++) to[(size_t)i * PANEL + (size_t)o] = rows[(size_t)o * (size_t)n + (size_t)i];
        return;
    }
    for (int o = 0; o < n_rows; o++) {
        const float *row = rows + (size_t)o * (size_t)n;
        if (m->precision == BF16) {
            uint16_t *to = (uint16_t *)(uintptr_t)m->weights + first + (size_t)o * 2;
            for (int i = 0; i < n; i++) to[(size_t)(i / 2) * PANEL * 2 + (size_t)(i % 2)] = to_bf16(row[i]);
            continue;
        }
        float largest = 0, zero = 0; /* or NaN, if a weight is not finite */
        for (int i = 0; i < n; i++) {
            if (fabsf(row[i]) > largest) largest = fabsf(row[i]);
            zero += row[i] * 0;
        }
        step[panel * PANEL + o] = largest / 127 + 1e-32f + zero;
        offset[panel * PANEL + o] = pack_int8(row, n, step[panel * PANEL + o], (int8_t *)(uintptr_t)m->weights + first + (size_t)o * 4);
    }
}

static struct matrix pack(struct packer *p, const char *name, const char *bias_name, int n_outputs, int n_inputs,
                          float bias_behind) {
    const int pad = p->precision == INT8 ? MAX_INPUT_PAD : p->precision == BF16 ? MAX_INPUT_PAD / 2 : 1;
    struct matrix m = {.n_outputs = n_outputs, .n_inputs = n_inputs, .n_panels = padded(n_outputs, PANEL) / PANEL,
                       .padded_inputs = padded(n_inputs, pad), .precision = p->precision};
    const struct td_tensor weight = find(p, name, n_outputs, n_inputs, 1);
    const struct td_tensor bias = bias_name ? find(p, bias_name, n_outputs, 1, 0) : (struct td_tensor){0};
    const size_t columns = (size_t)m.n_panels * PANEL, n_bytes = m.precision == FP32 ? 4 : m.precision == BF16 ? 2 : 1;
    m.weights = take(p, columns * (size_t)m.padded_inputs * n_bytes);
    float *step = m.precision == INT8 ? take(p, columns * sizeof(float)) : NULL;
    int32_t *offset = m.precision == INT8 ? take(p, columns * sizeof(int32_t)) : NULL;
    float *biases = bias.data || bias_behind != 0 ? take(p, columns * sizeof(float)) : NULL;
    m.step = step;
    m.offset = offset;
    m.bias = biases;
    if (!p->base || !weight.data) return m;
    for (int panel = 0; panel < m.n_panels; panel++) pack_panel(&m, &weight, panel, p->rows, step, offset);
    for (int o = 0; biases && o < m.n_panels * PANEL; o++)
        biases[o] = o >= n_outputs ? bias_behind : bias.data ? number(&bias, o) : 0;
    return m;
}

static struct matrix pack_linear(struct packer *p, const char *prefix, const char *name, int n_outputs, int n_inputs) {
    char weight[200], bias[200];
    snprintf(weight, sizeof weight, "%s.%s.weight", prefix, name);
    snprintf(bias, sizeof bias, "%s.%s.bias", prefix, name);
    return pack(p, weight, bias, n_outputs, n_inputs, 0);
}

static struct norm pack_norm(struct packer *p, const char *prefix, int width) {
    const float *parts[2];
    for (int which = 0; which < 2; which++) {
        char name[200];
        snprintf(name, sizeof name, "%s.%s", prefix, which ? "bias" : "weight");
        const struct td_tensor t = find(p, name, width, 1, 1);
        float *to = take(p, row_stride(width) * sizeof(float));
        for (int i = 0; to && i < (int)row_stride(width); i++) to[i] = i < width && t.data ? number(&t, i) : 0;
        parts[which] = to;
    }
    return (struct norm){parts[0], parts[1]};
}

static void pack_stack(struct packer *p, const struct td_config *c, struct stack *stack, const char *kind, int has_source) {
    const int width_k = c->n_heads * c->d_k, width_v = c->n_heads * c->d_v;
    char prefix[100];
    for (int i = 0; i < stack->n_layers; i++) {
        struct layer *layer = &stack->layers[i];
#define WITHIN(name) (snprintf(prefix, sizeof prefix, "%s.%d." name, kind, i), prefix)
        layer->w_qkv = pack_linear(p, WITHIN("self_attention"), "w_qkv", 2 * width_k + width_v, c->d_model);
        layer->w_o = pack_linear(p, prefix, "w_o", c->d_model, width_v);
        layer->self_norm = pack_norm(p, WITHIN("self_attention_residual.norm"), c->d_model);
        if (has_source) {
            layer->w_q = pack_linear(p, WITHIN("cross_attention"), "w_q", width_k, c->d_model);
            layer->w_kv = pack_linear(p, prefix, "w_kv", width_k + width_v, c->d_model);
            layer->w_cross_o = pack_linear(p, prefix, "w_o", c->d_model, width_v);
            layer->cross_norm = pack_norm(p, WITHIN("cross_attention_residual.norm"), c->d_model);
        }
        layer->w_1 = pack_linear(p, WITHIN("feed_forward"), "w_1", c->d_ff, c->d_model);
        layer->w_2 = pack_linear(p, prefix, "w_2", c->d_model, c->d_ff);
        layer->feed_forward_norm = pack_norm(p, WITHIN("feed_forward_residual.norm"), c->d_model);
    }
    snprintf(prefix, sizeof prefix, "%s_norm", kind);
    if (c->is_pre_norm && stack->n_layers) stack->norm = pack_norm(p, prefix, c->d_model);
}

static int has(const struct packer *p, const char *name) {
    for (int i = 0; i < p->n_tensors; i++)
        if (!strcmp(p->tensors[i].name, name)) return 1;
    return 0;
}

/* Memory of zeros, in large pages where the system has them. */
static void *new_pages(size_t n_bytes) {
#if defined(__unix__) || defined(__APPLE__)
    void *pages = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(pages, n_bytes, MADV_HUGEPAGE);
#endif
    return pages;
#else
    return calloc(n_bytes, 1);
#endif
}

static void free_pages(void *pages, size_t n_bytes) {
#if defined(__unix__) || defined(__APPLE__)
    if (pages) munmap(pages, n_bytes);
#else
    (void)n_bytes;
    free(pages);
#endif
}

/* All weights, in one order. Tied embeddings are in the file once. */
static void pack_model(struct packer *p, td_model *m) {
    const struct td_config *c = &m->config;
    const int is_translator = c->n_encoder_layers > 0;
    p->used = 0;
    pack_stack(p, c, &m->encoder, "encoder", 0);
    pack_stack(p, c, &m->decoder, "decoder", is_translator);
    const char *tgt = is_translator ? "tgt_embedding.weight" : "src_embedding.weight";
    const char *src = has(p, "src_embedding.weight") ? "src_embedding.weight" : tgt;
    m->tgt.table = find(p, tgt, c->tgt_vocab_size, c->d_model, 1);
    if (is_translator) m->src.table = find(p, src, c->src_vocab_size, c->d_model, 1);
    if (c->n_positions) {
        m->tgt.positions = find(p, is_translator ? "tgt_positions.weight" : "src_positions.weight", c->n_positions, c->d_model, 1);
        if (is_translator) m->src.positions = find(p, "src_positions.weight", c->n_positions, c->d_model, 1);
    }
    m->output = pack(p, has(p, "output.weight") ? "output.weight" : tgt, "output.bias", c->tgt_vocab_size, c->d_model, -INFINITY);
}

int count_words(const struct embedding *e, const int32_t *ids, int n, int n_before, int32_t *n_words) {
    for (int i = 0; i < n; i++) n_words[i] = n_before += e->begins_word ? e->begins_word[ids[i]] : 0;
    return n_before;
}

static uint8_t *copied(const uint8_t *from, int n) {
    uint8_t *to = from ? malloc((size_t)n) : NULL;
    return to ? memcpy(to, from, (size_t)n) : NULL;
}

/* PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) the cosine. Section 3.5. */
static void sinusoid(float *to, int position, int d_model) {
    for (int i = 0; i < d_model; i += 2) {
        const double angle = position / pow(10000.0, (double)i / d_model);
        to[i] = (float)sin(angle);
        if (i + 1 < d_model) to[i + 1] = (float)cos(angle);
    }
}

td_model *td_load(const struct td_config *config, const struct td_tensor *tensors, int32_t n_tensors, int32_t precision,
                  char *error, int32_t error_size) {
    td_model *m = calloc(1, sizeof *m);
    const struct kernels *kernels = kernels_named(getenv("TRANSDUCE_ISA"));
    if (!m || !kernels) {
        snprintf(error, (size_t)error_size, "%s", m ? "TRANSDUCE_ISA names kernels that this processor does not run" : "no memory");
        free(m);
        return NULL;
    }
    m->config = *config;
    m->precision = precision;
    m->kernels = kernels;
    m->encoder.n_layers = config->n_encoder_layers;
    m->decoder.n_layers = config->n_decoder_layers;
    m->encoder.layers = calloc((size_t)config->n_encoder_layers + 1, sizeof(struct layer));
    m->decoder.layers = calloc((size_t)config->n_decoder_layers + 1, sizeof(struct layer));
    m->src.begins_word = copied(config->src_begins_word, config->src_vocab_size);
    m->tgt.begins_word = copied(config->tgt_begins_word, config->tgt_vocab_size);
    m->sinusoid_width = m->tgt.begins_word ? config->d_model / 2 : config->d_model;
    m->n_sinusoids = config->n_positions ? 0 : N_SINUSOIDS;
    m->sinusoids = malloc(((size_t)m->n_sinusoids * (size_t)m->sinusoid_width + 1) * sizeof(float));
    struct packer packer = {.tensors = tensors, .n_tensors = n_tensors, .precision = m->precision};
    if (m->encoder.layers && m->decoder.layers && m->sinusoids) {
        pack_model(&packer, m);
        m->packed_bytes = packer.used;
        const size_t widest_input = (size_t)config->d_model + (size_t)config->d_ff + (size_t)(config->n_heads * config->d_v);
        packer.rows = malloc(widest_input * PANEL * sizeof(float));
        m->packed = packer.missing[0] || !packer.rows ? NULL : new_pages(packer.used);
    }
    if (!m->packed) {
        if (packer.missing[0]) snprintf(error, (size_t)error_size, "tensor %s is missing or has another shape", packer.missing);
        else snprintf(error, (size_t)error_size, "no memory for %zu bytes of weights", packer.used);
        free(packer.rows);
        td_free(m);
        return NULL;
    }
    packer.base = m->packed;
    pack_model(&packer, m);
    free(packer.rows);
    for (int position = 0; position < m->n_sinusoids; position++)
        sinusoid(m->sinusoids + (size_t)position * (size_t)m->sinusoid_width, position, m->sinusoid_width);
    return m;
}

void td_free(td_model *m) {
    if (!m) return;
    free(m->encoder.layers);
    free(m->decoder.layers);
    free(m->sinusoids);
    free(m->src.begins_word);
    free(m->tgt.begins_word);
    free_pages(m->packed, m->packed_bytes);
    free(m);
}

/* ---- room ---- */

size_t input_bytes(const struct matrix *m, int n_rows) {
    if (m->precision == FP32) return 0;
    return (size_t)(n_rows + 32) * ((size_t)m->padded_inputs * 2 + sizeof(float)) + 128; /* rows of whole tiles */
}

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
    const size_t n_scores = (n_positions + PANEL) * 16 + (size_t)c->d_k * (n_positions + PANEL);
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
    m->kernels->norm(room->normed, room->x, norm.weight, norm.bias, m->config.norm_eps, n_rows, m->config.d_model,
                     row_stride(m->config.d_model));
    return room->normed;
}

/* LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)); the sublayer's output is in room->y. Section 3.1. */
static void after(const td_model *m, struct room *room, struct norm norm, int n_rows) {
    const int is_pre = m->config.is_pre_norm;
    m->kernels->add_and_norm(room->x, room->y, is_pre ? NULL : norm.weight, norm.bias, m->config.norm_eps, n_rows,
                             m->config.d_model, row_stride(m->config.d_model));
}

static void last_norm(const td_model *m, struct room *room, const struct stack *stack, int n_rows) {
    if (!m->config.is_pre_norm) return;
    m->kernels->norm(room->x, room->x, stack->norm.weight, stack->norm.bias, m->config.norm_eps, n_rows,
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
    for (int i = 0; i < d; i++) to[i] = number(&e->table, (int64_t)id * d + i) * m->config.embedding_factor;
    if (e->positions.data) {
        for (int i = 0; i < d; i++) to[i] += number(&e->positions, (int64_t)position * d + i);
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
        float *keys = room->scores + (size_t)padded(n, PANEL) * 16;
        for (int h = 0; h < c->n_heads; h++) {
            const float *q = room->wide + (size_t)first * wide + h * c->d_k;
            m->kernels->pack_keys(q + c->n_heads * c->d_k, wide, n, c->d_k, keys);
            const float *values = room->wide + (size_t)first * wide + 2 * c->n_heads * c->d_k + h * c->d_v;
            const struct head head = {keys, values, n, c->d_k, c->d_v, wide, NULL};
            m->kernels->attend(&head, q, wide, n, n, NULL, 0, room->heads + (size_t)first * heads + h * c->d_v, heads, room->scores);
        }
    }
    linear(m, room, &layer->w_o, room->heads, heads, n_rows, LINEAR, room->y, d);
}

/* Where the keys and the values of a head are in a sentence's memory. */
static float *keys_of(const td_model *m, float *memory, int n_positions, int layer, int head) {
    const struct td_config *c = &m->config;
    return memory + (size_t)(layer * c->n_heads + head) * (size_t)padded(n_positions, PANEL) * ((size_t)c->d_k + row_stride(c->d_v));
}

static float *values_of(const td_model *m, float *memory, int n_positions, int layer, int head) {
    return keys_of(m, memory, n_positions, layer, head) + (size_t)padded(n_positions, PANEL) * (size_t)m->config.d_k;
}

static float *new_memory(const td_model *m, int n_positions) {
    const size_t floats = (size_t)(keys_of(m, NULL, n_positions, m->decoder.n_layers, 0) - (float *)NULL);
    return calloc(floats + PANEL, sizeof(float));
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
            const float *from = room->wide + (size_t)(offsets[s] - offsets[0]) * wide;
            for (int h = 0; h < c->n_heads; h++) {
                m->kernels->pack_keys(from + h * c->d_k, wide, sentence->n_source, c->d_k, keys_of(m, sentence->source, sentence->n_source, l, h));
                float *values = values_of(m, sentence->source, sentence->n_source, l, h);
                for (int i = 0; i < sentence->n_source; i++)
                    memcpy(values + (size_t)i * row_stride(c->d_v), from + (size_t)i * wide + c->n_heads * c->d_k + h * c->d_v,
                           (size_t)c->d_v * sizeof(float));
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
            if (states) memcpy(x, states + (size_t)i * width, width * sizeof(float));
            else embed(m, &m->src, ids[i], i - offsets[s], count_words(&m->src, ids + i, 1, n_words, &n_words), x);
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
    for (int first = 0, next; first < n_sentences; first = next) {
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
    float *slots = new_memory(m, capacity);
    if (!slots) return 0;
    const size_t d_k = (size_t)m->config.d_k, d_v = row_stride(m->config.d_v);
    for (int l = 0; l < m->decoder.n_layers && sentence->slots; l++)
        for (int h = 0; h < m->config.n_heads; h++) {
            const int n = padded(sentence->n_slots, PANEL);
            memcpy(keys_of(m, slots, capacity, l, h), keys_of(m, sentence->slots, sentence->capacity, l, h), (size_t)n * d_k * sizeof(float));
            memcpy(values_of(m, slots, capacity, l, h), values_of(m, sentence->slots, sentence->capacity, l, h), (size_t)n * d_v * sizeof(float));
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
            float *keys = keys_of(m, sentence->slots, sentence->capacity, l, h);
            float *values = values_of(m, sentence->slots, sentence->capacity, l, h);
            for (int r = 0; r < g->n_rows; r++) {
                const int slot = g->slots[r];
                const float *k = first + (size_t)r * wide + (c->n_heads + h) * c->d_k;
                m->kernels->pack_keys(k, 0, 1, c->d_k, keys + (size_t)(slot / PANEL) * (size_t)c->d_k * PANEL + slot % PANEL);
                memcpy(values + (size_t)slot * row_stride(c->d_v),
                       first + (size_t)r * wide + 2 * c->n_heads * c->d_k + h * c->d_v, (size_t)c->d_v * sizeof(float));
            }
            const struct head head = {keys, values, sentence->n_slots, c->d_k, c->d_v, row_stride(c->d_v), NULL};
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
            const struct head head = {keys_of(m, s->source, s->n_source, l, h), values_of(m, s->source, s->n_source, l, h),
                                      s->n_source, c->d_k, c->d_v, row_stride(c->d_v), recorded};
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
