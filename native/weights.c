/* Weights in panels: what the kernels read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weights.h"

enum { N_SINUSOIDS = 512 }; /* those of later positions are computed */

static void *take(struct packer *p, size_t n_bytes) {
    void *at = p->pass == COUNT ? NULL : p->block + p->used;
    p->used += lines(n_bytes);
    return at;
}

static float number(const struct td_tensor *t, int64_t index) {
    union { uint32_t bits; float value; } u;
    if (t->type == 0) return ((const float *)t->data)[index];
    const uint32_t half = ((const uint16_t *)t->data)[index];
    if (t->type == 1) return u.bits = half << 16, u.value;
    u.bits = (half & 0x7fff) << 13;
    u.value *= 0x1p112f; /* the exponents of fp16 count from -15, those of fp32 from -127 */
    if ((half & 0x7c00) == 0x7c00) u.bits |= 0x7f800000;
    u.bits |= (half & 0x8000) << 16;
    return u.value;
}

void read_row(const struct td_tensor *t, int64_t row, float *to) {
    const int64_t n = t->n_columns;
    if (t->type == 0) memcpy(to, (const float *)t->data + row * n, (size_t)n * sizeof(float));
    else for (int64_t i = 0; i < n; i++) to[i] = number(t, row * n + i);
}

/* The tensor of a name; its type is ABSENT if there is none. Its data are read in the pass that fills a block only. */
static struct td_tensor find(struct packer *p, const char *name, int64_t n_rows, int64_t n_columns, int is_needed) {
    struct td_tensor t = {NULL, NULL, n_rows, n_columns, ABSENT};
    for (int i = 0; i < p->n_tensors && !t.name; i++)
        if (!strcmp(p->tensors[i].name, name)) t = p->tensors[i];
    if (p->n_kinds < p->max_kinds) {
        uint8_t *kind = &p->kinds[p->n_kinds++];
        if (!p->tensors) t.type = *kind;
        else if (p->pass == COUNT) *kind = (uint8_t)t.type;
    }
    const int is_good = t.type == ABSENT ? !is_needed : t.type >= 0 && t.type <= 2 && t.n_rows == n_rows && t.n_columns == n_columns;
    if (is_good) return t;
    if (!p->fault[0]) snprintf(p->fault, sizeof p->fault, "%s", name);
    return (struct td_tensor){NULL, NULL, n_rows, n_columns, ABSENT};
}

/* ---- matrices ---- */

/* The weights of an output, each to its place in the panel. */
static void pack_output(const struct matrix *m, int o, const float *row, float *step, int32_t *offset) {
    const int group = m->precision == FP32 ? 1 : m->precision == BF16 ? 2 : 4; /* inputs that are side by side */
    const size_t first = (size_t)(o / PANEL) * m->panel_stride + (size_t)(o % PANEL * group);
    void *weights = (void *)(uintptr_t)m->weights;
    float largest = 0, zero = 0; /* or NaN, if a weight is not finite */
    int32_t sum = 0;
    for (int i = 0; i < m->n_inputs; i++) largest = fabsf(row[i]) > largest ? fabsf(row[i]) : largest, zero += row[i] * 0;
    const float scale = largest / 127 + 1e-32f + zero;
    for (int i = 0; i < m->n_inputs; i++) {
        const size_t at = first + (size_t)(i / group * group) * PANEL + (size_t)(i % group);
        if (m->precision == FP32) ((float *)weights)[at] = row[i];
        if (m->precision == BF16) ((uint16_t *)weights)[at] = to_bf16(row[i]);
        if (m->precision != INT8 || !isfinite(scale)) continue;
        const float level = row[i] / scale + 12582912.0f; /* ties to even, in the last bits */
        int32_t integer;
        memcpy(&integer, &level, sizeof integer);
        sum += ((int8_t *)weights)[at] = (int8_t)(integer - 0x4b400000);
    }
    if (m->precision == INT8) step[o] = scale, offset[o] = 128 * sum;
}

static struct matrix pack(struct packer *p, enum precision precision, struct td_tensor weight, struct td_tensor bias, float bias_behind) {
    const int n_inputs = (int)weight.n_columns, n_outputs = (int)weight.n_rows;
    const int pad = precision == INT8 ? MAX_INPUT_PAD : precision == BF16 ? MAX_INPUT_PAD / 2 : 1;
    struct matrix m = {.n_outputs = n_outputs, .n_inputs = n_inputs, .n_panels = (int)(row_stride(n_outputs) / PANEL),
                       .padded_inputs = (n_inputs + pad - 1) / pad * pad, .precision = precision, .input_stride = PANEL};
    const size_t columns = row_stride(n_outputs), n_bytes = precision == FP32 ? 4 : precision == BF16 ? 2 : 1;
    m.panel_stride = (size_t)m.padded_inputs * PANEL;
    m.weights = take(p, columns * (size_t)m.padded_inputs * n_bytes);
    float *step = precision == INT8 ? take(p, columns * sizeof(float)) : NULL;
    int32_t *offset = precision == INT8 ? take(p, columns * sizeof(int32_t)) : NULL;
    float *biases = bias.type != ABSENT || bias_behind != 0 ? take(p, columns * sizeof(float)) : NULL;
    m.step = step, m.offset = offset, m.bias = biases;
    for (int o = 0; p->pass == FILL && o < n_outputs; o++) {
        read_row(&weight, o, p->row);
        pack_output(&m, o, p->row, step, offset);
    }
    for (int o = 0; p->pass == FILL && biases && o < (int)columns; o++)
        biases[o] = o >= n_outputs ? bias_behind : bias.type != ABSENT ? number(&bias, o) : 0;
    return m;
}

static struct matrix pack_linear(struct packer *p, enum precision precision, const char *prefix, const char *name, int n_outputs, int n_inputs) {
    char weight[200], bias[200];
    snprintf(weight, sizeof weight, "%s.%s.weight", prefix, name);
    snprintf(bias, sizeof bias, "%s.%s.bias", prefix, name);
    const struct td_tensor weights = find(p, weight, n_outputs, n_inputs, 1);
    return pack(p, precision, weights, find(p, bias, n_outputs, 1, 0), 0);
}

static struct norm pack_norm(struct packer *p, const char *prefix, int width) {
    const float *parts[2];
    for (int which = 0; which < 2; which++) {
        char name[200];
        snprintf(name, sizeof name, "%s.%s", prefix, which ? "bias" : "weight");
        const struct td_tensor t = find(p, name, width, 1, 1);
        float *to = take(p, row_stride(width) * sizeof(float));
        for (int i = 0; p->pass == FILL && i < width; i++) to[i] = number(&t, i);
        parts[which] = to;
    }
    return (struct norm){parts[0], parts[1]};
}

/* To the nearest, ties to even. */
static uint16_t to_fp16(float x) {
    uint32_t bits;
    const float size = fabsf(x);
    memcpy(&bits, &size, sizeof bits);
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (!(size < 65520)) return sign | (x != x ? 0x7e00 : 0x7c00);
    if (size < 0x1p-14f) return sign | (uint16_t)lrintf(size * 0x1p24f);
    return sign | (uint16_t)((bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13);
}

/* A table whose rows are read one by one; fp32 becomes fp16 unless products are in fp32, too. */
static struct td_tensor keep(struct packer *p, enum precision precision, struct td_tensor t) {
    const size_t n = (size_t)t.n_rows * (size_t)t.n_columns;
    const int is_halved = t.type == 0 && precision != FP32;
    void *at = take(p, n * (t.type || is_halved ? sizeof(uint16_t) : sizeof(float)));
    if (p->pass == FILL && !is_halved) memcpy(at, t.data, n * (t.type ? sizeof(uint16_t) : sizeof(float)));
    for (size_t i = 0; p->pass == FILL && is_halved && i < n; i++) ((uint16_t *)at)[i] = to_fp16(((const float *)t.data)[i]);
    return (struct td_tensor){NULL, at, t.n_rows, t.n_columns, is_halved ? 2 : t.type};
}

/* ---- a model ---- */

static void pack_stack(struct packer *p, const td_model *m, struct stack *stack, const char *kind, int has_source) {
    const struct td_config *c = &m->config;
    const int width_k = c->n_heads * c->d_k, width_v = c->n_heads * c->d_v;
    char prefix[100];
    for (int i = 0; i < stack->n_layers; i++) {
        struct layer *layer = &stack->layers[i];
#define WITHIN(name) (snprintf(prefix, sizeof prefix, "%s.%d." name, kind, i), prefix)
        layer->w_qkv = pack_linear(p, m->precision, WITHIN("self_attention"), "w_qkv", 2 * width_k + width_v, c->d_model);
        layer->w_o = pack_linear(p, m->precision, prefix, "w_o", c->d_model, width_v);
        layer->self_norm = pack_norm(p, WITHIN("self_attention_residual.norm"), c->d_model);
        if (has_source) {
            layer->w_q = pack_linear(p, m->precision, WITHIN("cross_attention"), "w_q", width_k, c->d_model);
            layer->w_kv = pack_linear(p, m->precision, prefix, "w_kv", width_k + width_v, c->d_model);
            layer->w_cross_o = pack_linear(p, m->precision, prefix, "w_o", c->d_model, width_v);
            layer->cross_norm = pack_norm(p, WITHIN("cross_attention_residual.norm"), c->d_model);
        }
        layer->w_1 = pack_linear(p, m->precision, WITHIN("feed_forward"), "w_1", c->d_ff, c->d_model);
        layer->w_2 = pack_linear(p, m->precision, prefix, "w_2", c->d_model, c->d_ff);
        layer->feed_forward_norm = pack_norm(p, WITHIN("feed_forward_residual.norm"), c->d_model);
    }
    snprintf(prefix, sizeof prefix, "%s_norm", kind);
    if (c->is_pre_norm && stack->n_layers) stack->norm = pack_norm(p, prefix, c->d_model);
}

/* PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) the cosine. Section 3.5. */
void sinusoid(float *to, int position, int d_model) {
    for (int i = 0; i < d_model; i += 2) {
        const double angle = position / pow(10000.0, (double)i / d_model);
        to[i] = (float)sin(angle);
        if (i + 1 < d_model) to[i + 1] = (float)cos(angle);
    }
}

static void pack_positions(struct packer *p, td_model *m) {
    const struct td_config *c = &m->config;
    const int is_translator = c->n_encoder_layers > 0, width = m->sinusoid_width;
    m->n_sinusoids = c->n_positions ? 0 : N_SINUSOIDS;
    float *table = take(p, (size_t)m->n_sinusoids * (size_t)width * sizeof(float));
    for (int i = 0; p->pass == FILL && i < m->n_sinusoids; i++) sinusoid(table + (size_t)i * (size_t)width, i, width);
    m->sinusoids = table;
    if (!c->n_positions) return;
    m->tgt.positions = keep(p, m->precision, find(p, is_translator ? "tgt_positions.weight" : "src_positions.weight", c->n_positions, c->d_model, 1));
    if (is_translator && c->src_vocab_size) m->src.positions = keep(p, m->precision, find(p, "src_positions.weight", c->n_positions, c->d_model, 1));
}

/* All weights, in one order. Tied embeddings are there once. */
void pack_model(struct packer *p, td_model *m) {
    const struct td_config *c = &m->config;
    const int is_translator = c->n_encoder_layers > 0;
    p->used = 0;
    p->n_kinds = 0;
    pack_stack(p, m, &m->encoder, "encoder", 0);
    pack_stack(p, m, &m->decoder, "decoder", is_translator);
    const struct td_tensor tgt = find(p, is_translator ? "tgt_embedding.weight" : "src_embedding.weight", c->tgt_vocab_size, c->d_model, 1);
    m->tgt.table = keep(p, m->precision, tgt);
    if (is_translator && c->src_vocab_size) {
        const struct td_tensor src = find(p, "src_embedding.weight", c->src_vocab_size, c->d_model, c->src_vocab_size != c->tgt_vocab_size);
        m->src.table = src.type == ABSENT ? m->tgt.table : keep(p, m->precision, src);
    }
    pack_positions(p, m);
    const struct td_tensor output = find(p, "output.weight", c->tgt_vocab_size, c->d_model, 0);
    const struct td_tensor bias = find(p, "output.bias", c->tgt_vocab_size, 1, 0);
    m->output = pack(p, m->precision, output.type == ABSENT ? tgt : output, bias, -INFINITY);
}
