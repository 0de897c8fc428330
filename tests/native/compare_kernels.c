/* Kernels against plain sums of their definitions: compare_kernels [NAME]. With -DKERNELS=kernels_amx there is no choice.

   Prints what differs, and checksums of the outputs: of products in fp32, bf16 and int8, and of the rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "transduce.h"

#if defined(__aarch64__)
enum { HAS_FUSED = 1 }; /* on every such processor */
#else
enum { HAS_FUSED = 0 };
#endif

static uint64_t state = 88172645463325252, outputs[INT8 + 2];
static int n_faults;

static uint32_t random_bits(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}
static int random_int(int low, int high) { return low + (int)(random_bits() % (uint32_t)(high - low + 1)); }
static float random_float(void) { return (float)random_int(-100000, 100000) / 65536; }

static void fault(const char *what, int a, int b, double got, double wanted) {
    if (n_faults++ < 20) printf("%s (%d, %d): %.9g, wanted %.9g\n", what, a, b, got, wanted);
}
static void keep(int kind, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    outputs[kind] = (outputs[kind] ^ bits) * 1099511628211u;
}
static int same(float a, float b) { return !memcmp(&a, &b, sizeof a); }

static float as_bf16(float x) { /* ties to even */
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double activated(enum activation activation, double x) {
    switch (activation) {
    case RELU: return x > 0 ? x : 0;
    case GELU: return x * 0.5 * (1 + erf(x * 0.70710678118654752));
    case GELU_TANH: return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case SWISH: return x / (1 + exp(-x));
    default: return x;
    }
}

struct made { /* a matrix with its weights as they are, row by row */
    struct matrix matrix;
    float *weights;
    void *memory[4];
};

static struct made make_matrix(enum precision precision, int n_outputs, int n_inputs, int has_bias) {
    const int pad = precision == INT8 ? 64 : precision == BF16 ? 32 : 1, panels = (n_outputs + 15) / 16;
    struct matrix m = {n_outputs, n_inputs, panels, (n_inputs + pad - 1) / pad * pad, precision, 0, 16, NULL, NULL, NULL, NULL};
    m.panel_stride = (size_t)m.padded_inputs * 16;
    const size_t columns = (size_t)panels * 16, group = precision == FP32 ? 1 : precision == BF16 ? 2 : 4;
    char *packed = calloc(columns * (size_t)m.padded_inputs, 4);
    float *weights = calloc(columns * (size_t)m.padded_inputs, sizeof(float)), *bias = calloc(columns, sizeof(float)), *step = calloc(columns, sizeof(float));
    int32_t *offset = calloc(columns, sizeof(int32_t));
    for (int o = 0; o < n_outputs; o++) {
        step[o] = 0.001f + fabsf(random_float());
        bias[o] = random_float();
        for (int i = 0; i < n_inputs; i++) {
            const size_t at = ((size_t)(o / 16) * (size_t)m.padded_inputs / group + (size_t)i / group) * 16 * group + (size_t)(o % 16) * group + (size_t)i % group;
            const int integer = random_int(-127, 127);
            const float weight = precision == BF16 ? as_bf16(random_float()) : random_float();
            uint32_t bits;
            memcpy(&bits, &weight, sizeof bits);
            if (precision == FP32) ((float *)(void *)packed)[at] = weight;
            if (precision == BF16) ((uint16_t *)(void *)packed)[at] = (uint16_t)(bits >> 16);
            if (precision == INT8) packed[at] = (char)integer, offset[o] += 128 * integer;
            weights[(size_t)o * (size_t)n_inputs + (size_t)i] = precision == INT8 ? (float)integer : weight;
        }
    }
    m.weights = packed, m.bias = has_bias ? bias : NULL, m.step = step, m.offset = offset;
    return (struct made){m, weights, {packed, bias, step, offset}};
}

/* An output as it is defined: exact for int8, one chain of fused (or not) multiply-adds for fp32 and bf16. */
static float defined(const struct made *made, const float *x, int o, int is_fused) {
    const struct matrix *m = &made->matrix;
    const float *w = made->weights + (size_t)o * (size_t)m->n_inputs;
    float sum = 0, size = 0;
    for (int i = 0; i < m->n_inputs; i++) size = fmaxf(size, fabsf(x[i]));
    if (m->precision == INT8) {
        const float step = size * (1.0f / 127) + 1e-32f;
        int32_t total = 0;
        for (int i = 0; i < m->n_inputs; i++) total += (int32_t)rintf(x[i] / step) * (int32_t)w[i];
        sum = (float)total * m->step[o] * step;
    } else {
        for (int i = 0; i < m->n_inputs; i++) sum = is_fused ? fmaf(x[i], w[i], sum) : sum + x[i] * w[i];
    }
    return m->bias ? sum + m->bias[o] : sum + 0.0f;
}

static void compare_product(const struct kernels *k, enum precision precision, int n_rows, int n_outputs, int n_inputs, enum activation activation) {
    struct made made = make_matrix(precision, n_outputs, n_inputs, random_int(0, 1));
    const struct matrix *m = &made.matrix;
    const size_t stride = (size_t)(n_inputs + 15) / 16 * 16 + 16, y_stride = (size_t)m->n_panels * 16 + 16;
    float *x = calloc((size_t)n_rows * stride + 64, sizeof(float)), *y = malloc((size_t)n_rows * y_stride * sizeof(float)), alone[16 * 80];
    void *room = aligned_alloc(64, (input_bytes(m, n_rows) + 127) / 64 * 64);
    const int is_fused = HAS_FUSED || strcmp(k->name, "portable") != 0, in_tiles = precision == BF16 && !strcmp(k->name, "amx");
    for (int r = 0; r < n_rows; r++)
        for (int i = 0; i < n_inputs; i++) x[(size_t)r * stride + (size_t)i] = r % 7 == 6 ? 0 : random_float();
    for (size_t i = 0; i < (size_t)n_rows * y_stride; i++) y[i] = 12345;
    struct input input = k->prepare(m, x, stride, n_rows, room);
    k->product(m, &input, 0, m->n_panels, activation, y, y_stride);
    for (int r = 0; r < n_rows; r++) {
        for (int o = 0; o < n_outputs; o++) {
            const float got = y[(size_t)r * y_stride + (size_t)o], exact = defined(&made, x + (size_t)r * stride, o, is_fused);
            double wanted = activated(activation, (double)exact), bound = activation <= RELU ? 0 : 2e-6 * (1 + fabs((double)exact));
            if (in_tiles)
                for (int i = 0; i < n_inputs; i++) bound += 0.005 * fabs((double)x[(size_t)r * stride + (size_t)i] * (double)made.weights[(size_t)o * (size_t)n_inputs + (size_t)i]);
            if (!(bound > 0 ? fabs((double)got - wanted) <= bound : got == (float)wanted)) fault("product", r, o, (double)got, wanted);
            keep((int)precision, got);
        }
        for (size_t i = (size_t)m->n_panels * 16; i < y_stride; i++)
            if (!same(y[(size_t)r * y_stride + i], 12345)) fault("product writes behind its panels", r, (int)i, 0, 0);
    }
    const int row = random_int(0, n_rows - 1), begin = random_int(0, m->n_panels - 1), bad = random_int(0, n_inputs - 1);
    input = k->prepare(m, x + (size_t)row * stride, stride, 1, room); /* some panels of a row alone */
    k->product(m, &input, begin, m->n_panels, activation, alone, y_stride);
    for (int o = begin * 16; o < n_outputs; o++)
        if (!same(alone[o - begin * 16], y[(size_t)row * y_stride + (size_t)o])) fault("alone", row, o, (double)alone[o - begin * 16], (double)y[(size_t)row * y_stride + (size_t)o]);
    x[(size_t)row * stride + (size_t)bad] = bad % 2 ? NAN : INFINITY;
    input = k->prepare(m, x, stride, n_rows, room);
    k->product(m, &input, 0, m->n_panels, activation, y, y_stride);
    for (int o = 0; o < n_outputs && activation != RELU && precision == INT8; o++)
        if (!isnan(y[(size_t)row * y_stride + (size_t)o])) fault("not NaN", row, o, (double)y[(size_t)row * y_stride + (size_t)o], 0);
    for (int i = 0; i < 4; i++) free(made.memory[i]);
    free(made.weights), free(x), free(y), free(room);
}

static void compare_attention(const struct kernels *k, int n_queries, int n_positions, int d_k, int d_v, int kind) {
    const size_t q_stride = (size_t)d_k + 5, value_stride = (size_t)(d_v + 15) / 16 * 16, out_stride = (size_t)d_v + 3;
    const int n_panels = (n_positions + 15) / 16, n_first = kind == 1 ? random_int(1, n_positions) : n_positions;
    float *q = calloc((size_t)n_queries * q_stride + 16, 4), *keys = calloc((size_t)n_panels * 16 * (size_t)d_k, 4), *raw = calloc((size_t)n_positions * (size_t)d_k, 4);
    float *values = calloc(((size_t)n_panels * 16 + 1) * value_stride + 64, 4), *out = calloc((size_t)n_queries * out_stride + 16, 4), *alone = calloc(out_stride + 16, 4);
    float *room = calloc(attention_floats(n_positions, d_v), 4), *recorded = calloc((size_t)n_queries * (size_t)n_positions, 4);
    uint8_t *seen = calloc((size_t)n_queries, (size_t)n_positions);
    double *weights = calloc((size_t)n_positions, sizeof(double));
    for (int i = 0; i < n_queries * (int)q_stride; i++) q[i] = random_float();
    for (int i = 0; i < n_positions * d_k; i++) raw[i] = random_float() * 2;
    for (int i = 0; i < n_positions; i++)
        for (int j = 0; j < d_v; j++) values[(size_t)i * value_stride + (size_t)j] = random_float();
    for (int i = 0; i < n_queries * n_positions; i++) seen[i] = i % n_positions == 0 || random_int(0, 2) > 0;
    const struct head head = {FP32, keys, values, n_positions, d_k, d_v, value_stride, recorded};
    k->keep(&head, 0, n_positions, raw, NULL, (size_t)d_k);
    k->attend(&head, q, q_stride, n_queries, n_first, kind == 2 ? seen : NULL, (size_t)n_positions, out, out_stride, room);
    for (int r = 0; r < n_queries; r++) {
        double total = 0, highest = -INFINITY;
        const int n = kind == 1 && n_first + r < n_positions ? n_first + r : n_positions;
        for (int i = 0; i < n_positions; i++) {
            double score = 0;
            for (int j = 0; j < d_k; j++) score += (double)q[(size_t)r * q_stride + (size_t)j] * (double)raw[i * d_k + j];
            weights[i] = i < n && (kind != 2 || seen[r * n_positions + i]) ? score / sqrt(d_k) : -INFINITY;
            highest = fmax(highest, weights[i]);
        }
        for (int i = 0; i < n_positions; i++) total += weights[i] = exp(weights[i] - highest);
        for (int i = 0; i < n_positions; i++)
            if (!(fabs((double)recorded[r * n_positions + i] - weights[i] / total) < 2e-5)) fault("attention weight", r, i, (double)recorded[r * n_positions + i], weights[i] / total);
        for (int j = 0; j < d_v; j++) {
            double sum = 0;
            for (int i = 0; i < n_positions; i++) sum += weights[i] / total * (double)values[(size_t)i * value_stride + (size_t)j];
            const double got = (double)out[(size_t)r * out_stride + (size_t)j];
            if (!(fabs(got - sum) < 1e-4)) fault("attention", r, j, got, sum);
            keep(INT8 + 1, (float)got);
        }
        for (size_t j = (size_t)d_v; j < out_stride; j++)
            if (out[(size_t)r * out_stride + j] != 0) fault("attention writes behind its output", r, (int)j, 0, 0);
    }
    const int row = random_int(0, n_queries - 1);
    const struct head silent = {FP32, keys, values, n_positions, d_k, d_v, value_stride, NULL};
    k->attend(&silent, q + (size_t)row * q_stride, q_stride, 1, kind == 1 && n_first + row < n_positions ? n_first + row : n_positions,
              kind == 2 ? seen + row * n_positions : NULL, (size_t)n_positions, alone, out_stride, room);
    for (int j = 0; j < d_v; j++)
        if (!same(alone[j], out[(size_t)row * out_stride + (size_t)j])) fault("attention alone", row, j, (double)alone[j], (double)out[(size_t)row * out_stride + (size_t)j]);
    free(q), free(keys), free(raw), free(values), free(out), free(alone), free(room), free(recorded), free(seen), free(weights);
}

/* Rows of random numbers, and 8 more that nothing may write to. */
static float *random_rows(int n_rows, int width) {
    float *rows = malloc((size_t)((n_rows + 8) * width) * sizeof *rows);
    for (int i = 0; i < (n_rows + 8) * width; i++) rows[i] = i < n_rows * width ? random_float() : 12345;
    return rows;
}

static void compare_numbers(const char *what, const float *got, const double *wanted, int n_rows, int width) {
    for (int i = 0; i < (n_rows + 8) * width; i++) {
        const double expected = i < n_rows * width ? wanted[i] : 12345;
        if (!(fabs((double)got[i] - expected) <= 2e-5 * (1 + fabs(expected)))) fault(what, i / width, i % width, (double)got[i], expected);
        keep(INT8 + 1, got[i]);
    }
}

/* Outputs and gradients of one sentence. */
static void compare_training(const struct kernels *kernels, int n_queries, int n_keys, int n_heads, int d_k, int d_v, int is_causal) {
    const int k_width = n_heads * d_k, v_width = n_heads * d_v;
    const int32_t queries[] = {0, n_queries}, keys[] = {0, n_keys};
    float *q = random_rows(n_queries, k_width), *k = random_rows(n_keys, k_width), *v = random_rows(n_keys, v_width);
    float *grad = random_rows(n_queries, v_width), *out = random_rows(n_queries, v_width), *log_sums = random_rows(n_queries, n_heads);
    float *q_grad = random_rows(n_queries, k_width), *k_grad = random_rows(n_keys, k_width), *v_grad = random_rows(n_keys, v_width);
    float *room = malloc(training_floats(d_k, d_v, n_keys) * sizeof *room);
    struct td_attention t = {n_heads, d_k, d_v, is_causal, 0, queries, keys, q, k, v, k_width, k_width, v_width, out, log_sums, NULL, NULL, NULL, NULL};
    kernels->attend_in_training(&t, 0, 1, room);
    t.out_grad = grad, t.q_grad = q_grad, t.k_grad = k_grad, t.v_grad = v_grad;
    kernels->attend_in_training(&t, 0, 1, room);
    double *of_out = calloc((size_t)(n_queries * v_width), 8), *of_q = calloc((size_t)(n_queries * k_width), 8);
    double *of_k = calloc((size_t)(n_keys * k_width), 8), *of_v = calloc((size_t)(n_keys * v_width), 8), *weight = calloc((size_t)n_keys, 8), *change = calloc((size_t)n_keys, 8);
    for (int h = 0; h < n_heads; h++)
        for (int i = 0; i < n_queries; i++) {
            const float *query = q + i * k_width + h * d_k, *of_row = grad + i * v_width + h * d_v;
            double total = 0, mean = 0;
            for (int j = 0; j < n_keys; j++) {
                double score = 0;
                for (int c = 0; c < d_k; c++) score += (double)query[c] * (double)k[j * k_width + h * d_k + c] / sqrt(d_k);
                total += weight[j] = is_causal && j > i ? 0 : exp(score);
            }
            for (int j = 0; j < n_keys; j++) {
                weight[j] /= total, change[j] = 0;
                for (int c = 0; c < d_v; c++) {
                    of_out[i * v_width + h * d_v + c] += weight[j] * (double)v[j * v_width + h * d_v + c];
                    of_v[j * v_width + h * d_v + c] += weight[j] * (double)of_row[c];
                    change[j] += (double)of_row[c] * (double)v[j * v_width + h * d_v + c];
                }
                mean += weight[j] * change[j];
            }
            for (int j = 0; j < n_keys; j++)
                for (int c = 0; c < d_k; c++) {
                    const double of_score = weight[j] * (change[j] - mean) / sqrt(d_k);
                    of_q[i * k_width + h * d_k + c] += of_score * (double)k[j * k_width + h * d_k + c];
                    of_k[j * k_width + h * d_k + c] += of_score * (double)query[c];
                }
        }
    compare_numbers("output of training", out, of_out, n_queries, v_width);
    compare_numbers("gradient of queries", q_grad, of_q, n_queries, k_width);
    compare_numbers("gradient of keys", k_grad, of_k, n_keys, k_width);
    compare_numbers("gradient of values", v_grad, of_v, n_keys, v_width);
    free(q), free(k), free(v), free(grad), free(out), free(log_sums), free(q_grad), free(k_grad), free(v_grad), free(room);
    free(of_out), free(of_q), free(of_k), free(of_v), free(weight), free(change);
}

/* The loss of some rows and its gradient, plus alpha / 4 times the divergences of two passes. */
static void compare_loss(const struct kernels *kernels, int n_passes, int n_rows, int vocab_size) {
    const double a = 0.9, alpha = 2;
    float *z = random_rows(n_passes * n_rows, vocab_size), *room = malloc(loss_floats(n_passes, vocab_size) * sizeof *room);
    double *wanted = calloc((size_t)(n_passes * n_rows * vocab_size), 8), *sums = calloc((size_t)n_rows, 24), log_p[2][128];
    int64_t *targets = calloc((size_t)n_rows, sizeof *targets);
    double *of_rows = calloc((size_t)n_rows, 24);
    for (int r = 0; r < n_rows; r++) {
        double mean[2] = {0, 0};
        targets[r] = random_int(0, vocab_size - 1);
        for (int x = 0; x < n_passes; x++) {
            const float *row = z + (x * n_rows + r) * vocab_size;
            double total = 0;
            for (int i = 0; i < vocab_size; i++) total += exp((double)row[i]);
            for (int i = 0; i < vocab_size; i++) log_p[x][i] = (double)row[i] - log(total);
            of_rows[3 * r] -= log_p[x][targets[r]] / n_passes, of_rows[3 * r + 1] += (double)row[targets[r]] / n_passes;
        }
        for (int i = 0; i < vocab_size && n_passes == 2; i++)
            for (int x = 0; x < 2; x++) mean[x] += exp(log_p[x][i]) * (log_p[x][i] - log_p[1 - x][i]);
        of_rows[3 * r + 2] = mean[0] + mean[1];
        for (int x = 0; x < n_passes; x++)
            for (int i = 0; i < vocab_size; i++) {
                const double p = exp(log_p[x][i]), other = n_passes == 2 ? exp(log_p[1 - x][i]) : p;
                const double d = n_passes == 2 ? log_p[x][i] - log_p[1 - x][i] : 0;
                wanted[(x * n_rows + r) * vocab_size + i] = (p - (i == targets[r] ? a : 0)) / n_passes + alpha / 4 * (p * (d - mean[x]) + p - other);
            }
    }
    const struct td_cross_entropy t = {n_passes, vocab_size, 0, n_rows * vocab_size, vocab_size, z, targets, a, alpha, sums};
    kernels->cross_entropy(&t, 0, n_rows, room);
    compare_numbers("gradient of the loss", z, wanted, n_passes * n_rows, vocab_size);
    for (int i = 0; i < 3 * n_rows; i++)
        if (!(fabs(sums[i] - of_rows[i]) < 2e-5 * (1 + fabs(of_rows[i])))) fault("loss", i / 3, i % 3, sums[i], of_rows[i]);
    free(z), free(room), free(wanted), free(sums), free(of_rows), free(targets);
}

static void compare_rows(const struct kernels *k, int n_rows, int width) {
    const size_t stride = (size_t)(width + 15) / 16 * 16;
    float *x = calloc((size_t)n_rows * stride, 4), *y = calloc((size_t)n_rows * stride, 4), *out = calloc((size_t)n_rows * stride, 4), *weight = calloc(stride, 4), *bias = calloc(stride, 4);
    for (int i = 0; i < width; i++) weight[i] = random_float(), bias[i] = random_float();
    for (int r = 0; r < n_rows; r++)
        for (int i = 0; i < width; i++) x[(size_t)r * stride + (size_t)i] = random_float(), y[(size_t)r * stride + (size_t)i] = random_float();
    float *sum = calloc((size_t)n_rows * stride, 4);
    memcpy(sum, x, (size_t)n_rows * stride * 4);
    k->norm(sum, sum, y, NULL, NULL, 1e-5f, n_rows, width, stride);
    k->norm(x, x, y, weight, bias, 1e-5f, n_rows, width, stride);
    k->norm(out, sum, NULL, weight, bias, 1e-5f, n_rows, width, stride);
    for (int r = 0; r < n_rows; r++) {
        const float *row = sum + (size_t)r * stride;
        double mean = 0, square = 0;
        for (int i = 0; i < width; i++) mean += (double)row[i] / width;
        for (int i = 0; i < width; i++) square += ((double)row[i] - mean) * ((double)row[i] - mean) / width;
        for (int i = 0; i < (int)stride; i++) {
            const double wanted = i < width ? ((double)row[i] - mean) / sqrt(square + 1e-5) * (double)weight[i] + (double)bias[i] : 0;
            const double got = (double)out[(size_t)r * stride + (size_t)i];
            if (!(fabs(got - wanted) < 2e-5)) fault("norm", r, i, got, wanted);
            if (!same((float)got, x[(size_t)r * stride + (size_t)i])) fault("norm after a sum", r, i, (double)x[(size_t)r * stride + (size_t)i], got);
            keep(INT8 + 1, (float)got);
        }
        float maximum = -INFINITY, total = 0, highest = -INFINITY;
        const int n = (int)stride;
        for (int i = 0; i < n; i++) highest = fmaxf(highest, row[i]);
        if (!same(k->largest(row, n), highest)) fault("largest", r, n, (double)k->largest(row, n), (double)highest);
        for (int i = 0; i < n; i += 16) k->add_to_softmax(row + i, 16, k->largest(row + i, 16), &maximum, &total);
        double wanted = 0;
        for (int i = 0; i < n; i++) wanted += exp((double)row[i] - (double)highest);
        if (maximum != highest || !(fabs((double)total - wanted) < 1e-5 * wanted)) fault("softmax", r, n, (double)total, wanted);
        keep(INT8 + 1, total);
        sum[(size_t)r * stride + (size_t)random_int(0, n - 1)] = NAN;
        if (!isnan(k->largest(row, n))) fault("NaN is not seen", r, n, (double)k->largest(row, n), 0);
    }
    free(x), free(y), free(out), free(weight), free(bias), free(sum);
}

int main(int argc, char **argv) {
#if defined(KERNELS)
    extern const struct kernels KERNELS;
    const struct kernels *k = &KERNELS;
    (void)argc, (void)argv;
#else
    const struct kernels *k = kernels_named(argc > 1 ? argv[1] : NULL);
#endif
    if (!k) return printf("this processor does not run them\n"), 3;
    for (int n_rows = 1; n_rows <= 70; n_rows++)
        for (int i = 0; i < 6; i++) {
            const int n_outputs = random_int(1, 75), n_inputs = random_int(1, i % 2 ? 20 : 200);
            const int activation = n_rows % 3 ? random_int(LINEAR, RELU) : random_int(GELU, SWISH);
            compare_product(k, (enum precision)(i / 2), n_rows, n_outputs, n_inputs, (enum activation)activation);
        }
    for (int i = 0; i < 150; i++) {
        const int n_queries = random_int(1, 14), n_positions = random_int(1, 70), d_k = random_int(1, 70);
        compare_attention(k, n_queries, n_positions, d_k, random_int(1, 70), i % 3);
    }
    for (int i = 0; i < 40; i++) {
        const int n_queries = random_int(1, 40), n_keys = i % 2 ? n_queries : random_int(1, 40);
        const int n_heads = random_int(1, 3), d_k = random_int(1, 40);
        compare_training(k, n_queries, n_keys, n_heads, d_k, random_int(1, 40), i % 2);
    }
    for (int i = 0; i < 40; i++) {
        const int n_rows = random_int(1, 5);
        compare_loss(k, 1 + i % 2, n_rows, random_int(1, 128));
    }
    for (int i = 0; i < 60; i++) {
        const int n_rows = random_int(1, 5);
        compare_rows(k, n_rows, random_int(1, 150));
    }
    printf("%s: %d faults, outputs", k->name, n_faults);
    for (int i = 0; i <= INT8 + 1; i++) printf(" %016llx", (unsigned long long)outputs[i]);
    printf("\n");
    return n_faults > 0;
}
