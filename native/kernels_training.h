/* Training: attention of one head of one sentence at a time, and the loss of one position at a time. All is computed in
   fp32, and what is between stays in the cache. */
#ifndef KERNELS_TRAINING_H
#define KERNELS_TRAINING_H

enum { QUERIES = PANEL }; /* whose scores are computed together */

typedef uint16_t half_part __attribute__((vector_size(2 * WIDTH)));
typedef uint32_t unsigned_part __attribute__((vector_size(4 * WIDTH)));

INLINE int panels_of(int n) { return (n + PANEL - 1) / PANEL; }

/* ---- rows of fp32 or bf16, and panels of fp32 ---- */

INLINE lanes load_16(const void *rows, size_t at, const int is_bf16) {
    if (!is_bf16) return load((const float *)rows + at);
    lanes out;
    EACH_PART {
        half_part half;
        memcpy(&half, (const uint16_t *)rows + at + (size_t)(p * WIDTH), sizeof half);
        out.v[p] = (part)(__builtin_convertvector(half, unsigned_part) << 16);
    }
    return out;
}

INLINE void store_16(void *rows, size_t at, lanes x, const int is_bf16) {
    if (!is_bf16) {
        store((float *)rows + at, x);
        return;
    }
    EACH_PART { /* as to_bf16, for finite numbers and infinity; NaN stays NaN */
        const unsigned_part exact = (unsigned_part)x.v[p], rounded = (exact + 0x7fff + (exact >> 16 & 1)) >> 16;
        const unsigned_part is_nan = (unsigned_part)(x.v[p] != x.v[p]);
        const half_part half = __builtin_convertvector((is_nan & 0x7fc0) | (~is_nan & rounded), half_part);
        memcpy((uint16_t *)rows + at + (size_t)(p * WIDTH), &half, sizeof half);
    }
}

/* Some numbers of each row, from `at` on, as fp32, padded with zeros to whole panels, times `scale`. */
INLINE void unpack(float *to, const void *rows, size_t at, size_t stride, int n_rows, int width, float scale, const int is_bf16) {
    const int n_panels = panels_of(width), n_whole = width / PANEL;
    for (int r = 0; r < n_rows; r++, to += n_panels * PANEL, at += stride) {
        for (int i = 0; i < n_whole; i++) store(to + i * PANEL, multiply(load_16(rows, at + (size_t)(i * PANEL), is_bf16), all(scale)));
        for (int i = n_whole * PANEL; i < n_panels * PANEL; i++) {
            float x = 0;
            if (i < width && !is_bf16) x = ((const float *)rows)[at + (size_t)i];
            if (i < width && is_bf16) {
                const uint32_t bits_of_x = (uint32_t)((const uint16_t *)rows)[at + (size_t)i] << 16;
                memcpy(&x, &bits_of_x, sizeof x);
            }
            to[i] = x * scale;
        }
    }
}

INLINE void pack(void *rows, size_t at, size_t stride, const float *from, int n_rows, int width, float scale, const int is_bf16) {
    const int n_panels = panels_of(width), n_whole = width / PANEL;
    for (int r = 0; r < n_rows; r++, from += n_panels * PANEL, at += stride) {
        for (int i = 0; i < n_whole; i++) store_16(rows, at + (size_t)(i * PANEL), multiply(load(from + i * PANEL), all(scale)), is_bf16);
        for (int i = n_whole * PANEL; i < width; i++) {
            if (is_bf16) ((uint16_t *)rows)[at + (size_t)i] = to_bf16(from[i] * scale);
            else ((float *)rows)[at + (size_t)i] = from[i] * scale;
        }
    }
}

/* The transpose of padded rows: (n_rows, width) to (width, whole panels of rows), the missing rows 0. */
INLINE void transpose(float *to, const float *from, int n_rows, int width) {
    const int from_stride = panels_of(width) * PANEL, stride = panels_of(n_rows) * PANEL;
    for (int i = 0; i < width; i++, to += stride) {
        for (int r = 0; r < n_rows; r++) to[r] = from[r * from_stride + i];
        for (int r = n_rows; r < stride; r++) to[r] = 0;
    }
}

/* ---- products ---- */

#if WIDTH == 16
enum { TILE = 16, TILE_PANELS = 4 }; /* sums of a tile: half of the registers */
#else
enum { TILE = 4, TILE_PANELS = 2 };
#endif

/* c += a b, of `rows` rows and `panels` panels; a has any strides, b and c whole panels. */
INLINE void add_tile(const int rows, const int panels, float *c, int c_stride, const float *a, int a_row, int a_step,
                     const float *b, int b_stride, int depth) {
    lanes sum[TILE];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int p = 0; p < panels; p++) sum[r * panels + p] = load(c + r * c_stride + p * PANEL);
    for (int d = 0; d < depth; d++) {
        lanes of_b[TILE_PANELS];
        UNROLL for (int p = 0; p < panels; p++) of_b[p] = load(b + d * b_stride + p * PANEL);
        UNROLL for (int r = 0; r < rows; r++) {
            const lanes of_a = all(a[r * a_row + d * a_step]);
            UNROLL for (int p = 0; p < panels; p++) sum[r * panels + p] = multiply_add(of_a, of_b[p], sum[r * panels + p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int p = 0; p < panels; p++) store(c + r * c_stride + p * PANEL, sum[r * panels + p]);
}

#define ADD_ROWS(rows)                                                                                                   \
    for (; (rows) * panels <= TILE && r + (rows) <= n_rows; r += (rows))                                                 \
        add_tile(rows, panels, c + r * c_stride, c_stride, a + r * a_row, a_row, a_step, b, b_stride, depth);

INLINE void add_columns(const int panels, float *c, int c_stride, const float *a, int a_row, int a_step, const float *b, int b_stride,
                        int n_rows, int depth) {
    int r = 0;
    ADD_ROWS(8) ADD_ROWS(4) ADD_ROWS(2) ADD_ROWS(1)
}

/* c += a b: (n_rows, depth) times (depth, n_panels), for any strides of a. */
static void add_product(float *c, int c_stride, const float *a, int a_row, int a_step, const float *b, int b_stride, int n_rows,
                        int depth, int n_panels) {
    int p = 0;
#if WIDTH == 16
    for (; p + 4 <= n_panels; p += 4) add_columns(4, c + p * PANEL, c_stride, a, a_row, a_step, b + p * PANEL, b_stride, n_rows, depth);
#endif
    for (; p + 2 <= n_panels; p += 2) add_columns(2, c + p * PANEL, c_stride, a, a_row, a_step, b + p * PANEL, b_stride, n_rows, depth);
    if (p < n_panels) add_columns(1, c + p * PANEL, c_stride, a, a_row, a_step, b + p * PANEL, b_stride, n_rows, depth);
}

INLINE void clear(float *x, int n) { memset(x, 0, (size_t)n * sizeof *x); }

/* ---- attention of a head ---- */

/* One head of a sentence. */
struct attended {
    const struct td_attention *all;
    int n_queries, n_keys, head;
    size_t query, key; /* its first rows */
};

INLINE struct attended attended_by(const struct td_attention *t, int sentence, int head) {
    const int32_t *queries = t->query_offsets + sentence, *keys = t->key_offsets + sentence;
    return (struct attended){t, queries[1] - queries[0], keys[1] - keys[0], head, (size_t)queries[0], (size_t)keys[0]};
}

/* Read or write n rows of the head, from `row` on; all have `width` numbers of each head. */
#define READ(to, rows, row, stride, n, width, scale) \
    unpack(to, rows, (row) * (size_t)(stride) + (size_t)(h->head * (width)), (size_t)(stride), n, width, scale, is_bf16)
#define WRITE(rows, row, stride, from, n, width, scale) \
    pack(rows, (row) * (size_t)(stride) + (size_t)(h->head * (width)), (size_t)(stride), from, n, width, scale, is_bf16)

/* The weights of a block of queries from their scores, in place, and the logarithms of the sums of exponentials; or by these,
   if they are known. */
INLINE void weigh(float *scores, int stride, int first, int n, int n_keys, int is_causal, float *log_sums, int log_stride, const int is_known) {
    for (int r = 0; r < n; r++, scores += stride, log_sums += log_stride) {
        const int n_seen = is_causal && first + r + 1 < n_keys ? first + r + 1 : n_keys, n_panels = panels_of(n_seen);
        for (int i = n_seen; i < n_panels * PANEL; i++) scores[i] = -INFINITY;
        clear(scores + n_panels * PANEL, stride - n_panels * PANEL);
        float shift = *log_sums;
        if (!is_known) {
            lanes highest = load(scores);
            for (int p = 1; p < n_panels; p++) highest = maximum(highest, load(scores + p * PANEL));
            shift = largest_of(highest);
        }
        lanes total = all(0);
        for (int p = 0; p < n_panels; p++) {
            const lanes e = exponential(subtract(load(scores + p * PANEL), all(shift)));
            store(scores + p * PANEL, e);
            total = add(total, e);
        }
        if (is_known) continue;
        const float sum = sum_of(total);
        *log_sums = shift + logf(sum);
        for (int p = 0; p < n_panels; p++) store(scores + p * PANEL, multiply(load(scores + p * PANEL), all(1 / sum)));
    }
}

INLINE void forward_head(const struct attended *h, float *room, const int is_bf16) {
    const struct td_attention *t = h->all;
    const int k_width = panels_of(t->d_k) * PANEL, v_width = panels_of(t->d_v) * PANEL, s_width = panels_of(h->n_keys) * PANEL;
    const float scale = 1 / sqrtf((float)t->d_k);
    float *k = room, *v = k + h->n_keys * k_width, *keys = v + h->n_keys * v_width, *q = keys + t->d_k * s_width;
    float *scores = q + QUERIES * k_width, *out = scores + QUERIES * s_width;
    READ(k, t->k, h->key, t->k_stride, h->n_keys, t->d_k, 1);
    READ(v, t->v, h->key, t->v_stride, h->n_keys, t->d_v, 1);
    transpose(keys, k, h->n_keys, t->d_k);
    for (int first = 0; first < h->n_queries; first += QUERIES) {
        const int n = h->n_queries - first < QUERIES ? h->n_queries - first : QUERIES;
        const int n_seen = t->is_causal && first + n < h->n_keys ? first + n : h->n_keys;
        const size_t row = h->query + (size_t)first;
        READ(q, t->q, row, t->q_stride, n, t->d_k, scale);
        clear(scores, n * s_width);
        add_product(scores, s_width, q, k_width, 1, keys, s_width, n, t->d_k, panels_of(n_seen));
        weigh(scores, s_width, first, n, h->n_keys, t->is_causal, t->log_sums + row * (size_t)t->n_heads + h->head, t->n_heads, 0);
        clear(out, n * v_width);
        add_product(out, v_width, scores, s_width, 1, v, v_width, n, n_seen, v_width / PANEL);
        WRITE(t->out, row, t->n_heads * t->d_v, out, n, t->d_v, 1);
    }
}

INLINE void backward_head(const struct attended *h, float *room, const int is_bf16) {
    const struct td_attention *t = h->all;
    const int k_width = panels_of(t->d_k) * PANEL, v_width = panels_of(t->d_v) * PANEL, s_width = panels_of(h->n_keys) * PANEL;
    const float scale = 1 / sqrtf((float)t->d_k);
    float *k = room, *v = k + h->n_keys * k_width, *k_grad = v + h->n_keys * v_width, *v_grad = k_grad + h->n_keys * k_width;
    float *keys = v_grad + h->n_keys * v_width, *values = keys + t->d_k * s_width, *q = values + t->d_v * s_width;
    float *q_grad = q + QUERIES * k_width, *grad = q_grad + QUERIES * k_width, *weights = grad + QUERIES * v_width;
    float *changes = weights + QUERIES * s_width;
    READ(k, t->k, h->key, t->k_stride, h->n_keys, t->d_k, 1);
    READ(v, t->v, h->key, t->v_stride, h->n_keys, t->d_v, 1);
    transpose(keys, k, h->n_keys, t->d_k);
    transpose(values, v, h->n_keys, t->d_v);
    clear(k_grad, h->n_keys * (k_width + v_width));
    for (int first = 0; first < h->n_queries; first += QUERIES) {
        const int n = h->n_queries - first < QUERIES ? h->n_queries - first : QUERIES;
        const int n_seen = t->is_causal && first + n < h->n_keys ? first + n : h->n_keys, n_panels = panels_of(n_seen);
        const size_t row = h->query + (size_t)first;
        READ(q, t->q, row, t->q_stride, n, t->d_k, scale);
        READ(grad, t->out_grad, row, t->n_heads * t->d_v, n, t->d_v, 1);
        clear(weights, 2 * QUERIES * s_width);
        add_product(weights, s_width, q, k_width, 1, keys, s_width, n, t->d_k, n_panels);
        weigh(weights, s_width, first, n, h->n_keys, t->is_causal, t->log_sums + row * (size_t)t->n_heads + h->head, t->n_heads, 1);
        add_product(changes, s_width, grad, v_width, 1, values, s_width, n, t->d_v, n_panels);
        for (int r = 0; r < n; r++) { /* of the softmax */
            float *w = weights + r * s_width, *change = changes + r * s_width;
            lanes mean = all(0);
            for (int p = 0; p < n_panels; p++) mean = multiply_add(load(w + p * PANEL), load(change + p * PANEL), mean);
            const lanes of_row = all(sum_of(mean));
            for (int p = 0; p < n_panels; p++)
                store(change + p * PANEL, multiply(load(w + p * PANEL), subtract(load(change + p * PANEL), of_row)));
        }
        clear(q_grad, n * k_width);
        add_product(q_grad, k_width, changes, s_width, 1, k, k_width, n, n_seen, k_width / PANEL);
        add_product(k_grad, k_width, changes, 1, s_width, q, k_width, n_seen, n, k_width / PANEL);
        add_product(v_grad, v_width, weights, 1, s_width, grad, v_width, n_seen, n, v_width / PANEL);
        WRITE(t->q_grad, row, t->q_stride, q_grad, n, t->d_k, scale);
    }
    WRITE(t->k_grad, h->key, t->k_stride, k_grad, h->n_keys, t->d_k, 1);
    WRITE(t->v_grad, h->key, t->v_stride, v_grad, h->n_keys, t->d_v, 1);
}

static void attend_in_training(const struct td_attention *t, int first, int end, float *room) {
    for (int sentence = first; sentence < end; sentence++)
        for (int head = 0; head < t->n_heads; head++) {
            const struct attended h = attended_by(t, sentence, head);
            if (t->out_grad && t->is_bf16) backward_head(&h, room, 1);
            else if (t->out_grad) backward_head(&h, room, 0);
            else if (t->is_bf16) forward_head(&h, room, 1);
            else forward_head(&h, room, 0);
        }
}

/* ---- the loss ---- */

/* Read a row of logits z, write p = e^(z - the largest), and return the logarithm of the sum of e^z; `sum` is that of p. */
INLINE double read_logits(float *z, float *p, const void *logits, size_t at, int n, float *sum, const int is_bf16) {
    const int n_panels = panels_of(n);
    unpack(z, logits, at, 0, 1, n, 1, is_bf16);
    for (int i = n; i < n_panels * PANEL; i++) z[i] = -INFINITY;
    lanes highest = load(z), total = all(0);
    for (int i = PANEL; i < n_panels * PANEL; i += PANEL) highest = maximum(highest, load(z + i));
    const float most = largest_of(highest);
    for (int i = 0; i < n_panels * PANEL; i += PANEL) {
        const lanes e = exponential(subtract(load(z + i), all(most)));
        store(p + i, e);
        total = add(total, e);
    }
    *sum = sum_of(total);
    return (double)most + log((double)*sum);
}

/* A row of the gradient in the place of the logits, `taken` from that of the target. */
INLINE void write_gradient(void *logits, size_t at, float *gradient, int n, int64_t target, float taken, const int is_bf16) {
    gradient[target] -= taken;
    pack(logits, at, 0, gradient, 1, n, 1, is_bf16);
}

INLINE void loss_of_row(const struct td_cross_entropy *t, int row, float *room, const int is_bf16) {
    const int n = t->vocab_size, width = panels_of(n) * PANEL;
    const int64_t target = t->targets[row];
    const float factor = (float)t->alpha / 4;
    float *z[2], *p[2], sum[2];
    size_t at[2];
    double log_sum[2], *sums = t->sums + 3 * (size_t)row;
    sums[0] = sums[1] = sums[2] = 0;
    for (int x = 0; x < t->n_passes; x++) {
        z[x] = room + 2 * x * width, p[x] = z[x] + width;
        at[x] = (size_t)x * (size_t)t->pass_stride + (size_t)row * (size_t)t->row_stride;
        log_sum[x] = read_logits(z[x], p[x], t->logits, at[x], n, &sum[x], is_bf16);
        sums[0] += (log_sum[x] - (double)z[x][target]) / t->n_passes;
        sums[1] += (double)z[x][target] / t->n_passes;
        for (int i = 0; i < width; i += PANEL) store(p[x] + i, multiply(load(p[x] + i), all(1 / sum[x])));
    }
    if (t->n_passes == 1) {
        write_gradient(t->logits, at[0], p[0], n, target, (float)t->a, is_bf16);
        return;
    }
    /* With d = log p_1 - log p_2, the gradient of the divergences in z_1 is p_1 (d - sum p_1 d) + p_1 - p_2. */
    lanes of_first = all(0), of_second = all(0);
    const lanes shift = all((float)(log_sum[0] - log_sum[1]));
    for (int i = n; i < width; i++) z[0][i] = z[1][i] = 0;
    for (int i = 0; i < width; i += PANEL) {
        const lanes d = subtract(subtract(load(z[0] + i), load(z[1] + i)), shift);
        store(z[0] + i, d);
        of_first = multiply_add(load(p[0] + i), d, of_first);
        of_second = multiply_add(load(p[1] + i), d, of_second);
    }
    const float mean[2] = {sum_of(of_first), -sum_of(of_second)};
    sums[2] = (double)mean[0] + (double)mean[1];
    const lanes f = all(factor), first = all(0.5f + factor - factor * mean[0]), second = all(0.5f + factor - factor * mean[1]);
    for (int i = 0; i < width; i += PANEL) {
        const lanes p1 = load(p[0] + i), p2 = load(p[1] + i), change = multiply(f, load(z[0] + i));
        store(p[0] + i, subtract(multiply(p1, add(first, change)), multiply(f, p2)));
        store(p[1] + i, subtract(multiply(p2, subtract(second, change)), multiply(f, p1)));
    }
    for (int x = 0; x < 2; x++) write_gradient(t->logits, at[x], p[x], n, target, (float)t->a / 2, is_bf16);
}

static void cross_entropy(const struct td_cross_entropy *t, int first, int end, float *room) {
    for (int row = first; row < end; row++) {
        if (t->is_bf16) loss_of_row(t, row, room, 1);
        else loss_of_row(t, row, room, 0);
    }
}
#endif
