/* Models in memory: loaded from tensors, written to a file, mapped from it. A file is the block of memory as it is, the same
   for all processors of a byte order: a header, the tensors' types, and what `pack_model` packs. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#define HAS_MMAP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "weights.h"

struct header {
    _Alignas(LINE) uint64_t magic;
    uint64_t checksum, n_bytes; /* of the block; the checksum is that of a file */
    int32_t abi, precision, n_kinds, unused;
    char key[256];              /* of a file: what its writer gave */
    struct td_config config;    /* without its pointers: zeros at the end, whatever their width */
};

static const uint64_t MAGIC = 0x324b434150534454; /* "TDSPACK2" in the order of bytes that we have */

#if defined(_WIN32)
__declspec(dllimport) int __stdcall MultiByteToWideChar(unsigned, unsigned long, const char *, int, wchar_t *, int);

/* fopen reads names in the code page of the machine; ours are UTF-8. */
static FILE *open_file(const char *path, const char *mode) {
    enum { UTF8 = 65001, LONGEST = 32768 };
    wchar_t wide_path[LONGEST], wide_mode[4];
    const int is_good = MultiByteToWideChar(UTF8, 0, path, -1, wide_path, LONGEST) && MultiByteToWideChar(UTF8, 0, mode, -1, wide_mode, 4);
    return is_good ? _wfopen(wide_path, wide_mode) : NULL;
}
#else
static FILE *open_file(const char *path, const char *mode) { return fopen(path, mode); }
#endif

/* Memory of zeros, in large pages where the system has them. */
static void *new_block(size_t n_bytes) {
#if defined(HAS_MMAP)
    void *block = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(block, n_bytes, MADV_HUGEPAGE);
#endif
    return block;
#else
    return calloc(n_bytes, 1);
#endif
}

static void free_block(void *block, size_t n_bytes) {
#if defined(HAS_MMAP)
    if (block) munmap(block, n_bytes);
#else
    (void)n_bytes;
    free(block);
#endif
}

/* A file as a block; NULL if it cannot be read or is shorter than a header. */
static void *map_file(const char *path, size_t *n_bytes) {
    void *block = NULL;
#if defined(HAS_MMAP)
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && !fstat(file, &status) && (size_t)status.st_size >= sizeof(struct header)) {
        *n_bytes = (size_t)status.st_size;
        block = mmap(NULL, *n_bytes, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
    return block == MAP_FAILED ? NULL : block;
#else
    FILE *file = open_file(path, "rb");
    const long end = file && !fseek(file, 0, SEEK_END) ? ftell(file) : 0;
    *n_bytes = (size_t)end;
    if (end >= (long)sizeof(struct header) && !fseek(file, 0, SEEK_SET) && (block = malloc(*n_bytes)) && fread(block, *n_bytes, 1, file) != 1)
        free(block), block = NULL;
    if (file) fclose(file);
    return block;
#endif
}

/* Each step can be undone, so a change of one word changes the result. */
static uint64_t checksum(uint64_t seed, const void *data, size_t n_bytes) {
    const uint64_t prime = 0x9e3779b97f4a7c15; /* odd */
    uint64_t lanes[LINE / 8], words[LINE / 8];
    for (int i = 0; i < LINE / 8; i++) lanes[i] = seed + (uint64_t)i;
    for (size_t at = 0; at < n_bytes; at += LINE) {
        memcpy(words, (const char *)data + at, LINE);
        for (int i = 0; i < LINE / 8; i++) lanes[i] = (lanes[i] ^ words[i]) * prime, lanes[i] ^= lanes[i] >> 29;
    }
    for (int i = 0; i < LINE / 8; i++) seed = (seed ^ lanes[i]) * prime, seed ^= seed >> 29;
    return seed;
}

/* Of a file that is mapped, no more than a piece is in memory: what a model does not use of it takes no room. */
static uint64_t checksum_of(const struct header *header, void *block, int is_mapped) {
    enum { PIECE = 1 << 20 }; /* bytes, a multiple of every page */
    struct header first;
    memcpy(&first, header, sizeof first);
    first.checksum = 0;
    uint64_t sum = checksum(0, &first, sizeof first);
    for (size_t at = 0; at < header->n_bytes; at += PIECE) {
        const size_t begin = at ? at : sizeof first, end = header->n_bytes - at < PIECE ? (size_t)header->n_bytes : at + PIECE;
        sum = checksum(sum, (const char *)block + begin, end - begin);
#if defined(HAS_MMAP)
        if (is_mapped) madvise((char *)block + at, end - at, MADV_DONTNEED);
#else
        (void)is_mapped;
#endif
    }
    return sum;
}

/* ---- models ---- */

static td_model *failed(td_model *m, char *error, int32_t error_size, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(error, (size_t)error_size, format, values);
    va_end(values);
    td_free(m);
    return NULL;
}

/* The first number of a configuration that no model has, and its limits. */
static const char *fault_of(const struct td_config *c, int64_t *value, int64_t *low, int64_t *high) {
    enum { WIDTH_LIMIT = 1 << 20, COUNT_LIMIT = 1 << 26 };
    const struct { const char *name; int64_t value, low, high; } limits[] = {
        {"d_model", c->d_model, 1, WIDTH_LIMIT},
        {"d_ff", c->d_ff, 1, WIDTH_LIMIT},
        {"n_heads", c->n_heads, 1, WIDTH_LIMIT},
        {"n_heads d_k", (int64_t)c->n_heads * c->d_k, 1, WIDTH_LIMIT},
        {"n_heads d_v", (int64_t)c->n_heads * c->d_v, 1, WIDTH_LIMIT},
        {"n_encoder_layers", c->n_encoder_layers, 0, 10000},
        {"n_decoder_layers", c->n_decoder_layers, 0, 10000},
        {"src_vocab_size", c->src_vocab_size, 0, COUNT_LIMIT},
        {"tgt_vocab_size", c->tgt_vocab_size, 1, COUNT_LIMIT},
        {"activation", c->activation, LINEAR, SWISH},
        {"n_positions", c->n_positions, 0, COUNT_LIMIT},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        *value = limits[i].value, *low = limits[i].low, *high = limits[i].high;
        if (*value < *low || *value > *high) return limits[i].name;
    }
    return NULL;
}

static struct td_config without_pointers(struct td_config config) {
    config.src_begins_word = config.tgt_begins_word = NULL;
    return config;
}

static uint8_t *copied(const uint8_t *from, int n) {
    uint8_t *to = from ? malloc((size_t)n) : NULL;
    return to ? memcpy(to, from, (size_t)n) : NULL;
}

/* A model without weights. */
static td_model *new_model(const struct td_config *c, int32_t precision, char *error, int32_t error_size) {
    int64_t value, low, high;
    const char *fault = fault_of(c, &value, &low, &high);
    if (fault) return failed(NULL, error, error_size, "%s is %lld; from %lld to %lld would work", fault, (long long)value, (long long)low, (long long)high);
    const struct kernels *kernels = kernels_named(getenv("TRANSDUCE_ISA"));
    if (!kernels) return failed(NULL, error, error_size, "TRANSDUCE_ISA names kernels that this processor does not run");
    td_model *m = precision >= FP32 && precision <= INT8 ? calloc(1, sizeof *m) : NULL;
    if (!m) return failed(m, error, error_size, "no memory, or precision %d is none of 0, 1, 2", precision);
    m->config = *c;
    m->precision = (enum precision)precision;
    m->kernels = kernels;
    m->encoder.n_layers = c->n_encoder_layers;
    m->decoder.n_layers = c->n_decoder_layers;
    m->encoder.layers = calloc((size_t)c->n_encoder_layers + 1, sizeof(struct layer));
    m->decoder.layers = calloc((size_t)c->n_decoder_layers + 1, sizeof(struct layer));
    m->src.begins_word = copied(c->src_begins_word, c->src_vocab_size);
    m->tgt.begins_word = copied(c->tgt_begins_word, c->tgt_vocab_size);
    m->sinusoid_width = c->tgt_begins_word ? c->d_model / 2 : c->d_model;
    m->config = without_pointers(*c);
    if (!m->encoder.layers || !m->decoder.layers || !m->src.begins_word != !c->src_begins_word || !m->tgt.begins_word != !c->tgt_begins_word)
        return failed(m, error, error_size, "no memory");
    return m;
}

td_model *td_load(const struct td_config *config, const struct td_tensor *tensors, int32_t n_tensors, int32_t precision,
                  char *error, int32_t error_size) {
    td_model *m = new_model(config, precision, error, error_size);
    if (!m) return NULL;
    const size_t max_kinds = 32 * ((size_t)m->encoder.n_layers + (size_t)m->decoder.n_layers + 1);
    const size_t widest_input = (size_t)config->d_model + (size_t)config->d_ff + (size_t)(config->n_heads * config->d_v);
    struct packer p = {.tensors = tensors, .n_tensors = n_tensors, .max_kinds = (int)max_kinds};
    p.kinds = malloc(max_kinds);
    p.row = malloc(widest_input * sizeof(float));
    if (p.kinds && p.row) pack_model(&p, m);
    const size_t before = sizeof(struct header) + lines((size_t)p.n_kinds);
    m->n_bytes = before + p.used;
    m->block = p.kinds && p.row && !p.fault[0] ? new_block(m->n_bytes) : NULL;
    if (m->block) {
        *(struct header *)m->block = (struct header){.magic = MAGIC, .n_bytes = m->n_bytes, .abi = TD_ABI, .precision = precision,
                                                     .n_kinds = p.n_kinds, .config = m->config};
        memcpy((char *)m->block + sizeof(struct header), p.kinds, (size_t)p.n_kinds);
        p.pass = FILL;
        p.block = (char *)m->block + before;
        pack_model(&p, m);
    }
    free(p.kinds), free(p.row);
    if (p.fault[0]) return failed(m, error, error_size, "tensor %s is missing or has another shape", p.fault);
    return m->block ? m : failed(m, error, error_size, "no memory for %zu bytes of weights", m->n_bytes);
}

int32_t td_save(const td_model *m, const char *path, const char *key, char *error, int32_t error_size) {
    struct header header;
    memcpy(&header, m->block, sizeof header);
    if (strlen(key) >= sizeof header.key) {
        snprintf(error, (size_t)error_size, "a key of %zu bytes; up to %zu would work", strlen(key), sizeof header.key - 1);
        return 1;
    }
    memset(header.key, 0, sizeof header.key);
    strcpy(header.key, key);
    header.checksum = checksum_of(&header, m->block, 0);
    FILE *file = open_file(path, "wb");
    int is_good = file && fwrite(&header, sizeof header, 1, file) == 1
                  && fwrite((const char *)m->block + sizeof header, m->n_bytes - sizeof header, 1, file) == 1;
    is_good = file && !fclose(file) && is_good;
    if (!is_good) snprintf(error, (size_t)error_size, "%s: %zu bytes could not be written", path, m->n_bytes);
    return !is_good;
}

/* The weights of a model in its block, which is that of a file. */
static td_model *found(td_model *m, const char *path, const char *key, char *error, int32_t error_size) {
    const struct header *header = m->block;
    if (header->magic != MAGIC || header->abi != TD_ABI || header->precision != (int32_t)m->precision
        || memcmp(&header->config, &m->config, sizeof m->config) || strncmp(header->key, key, sizeof header->key))
        return failed(m, error, error_size, "%s is of another model, precision or version", path);
    if (header->n_bytes != m->n_bytes || m->n_bytes % LINE || header->checksum != checksum_of(header, m->block, 1))
        return failed(m, error, error_size, "%s is damaged", path);
    const size_t before = sizeof *header + lines((size_t)header->n_kinds);
    struct packer p = {.kinds = (uint8_t *)m->block + sizeof *header, .max_kinds = header->n_kinds};
    if (before <= m->n_bytes) pack_model(&p, m);
    if (p.fault[0] || before + p.used != m->n_bytes) return failed(m, error, error_size, "%s is damaged", path);
    p.pass = FIND;
    p.block = (char *)m->block + before;
    pack_model(&p, m);
    return m;
}

td_model *td_map(const struct td_config *config, int32_t precision, const char *path, const char *key, char *error,
                 int32_t error_size) {
    td_model *m = new_model(config, precision, error, error_size);
    if (!m) return NULL;
    m->block = map_file(path, &m->n_bytes);
    if (!m->block) return failed(m, error, error_size, "%s cannot be read", path);
    return found(m, path, key, error, error_size);
}

#if defined(__wasm__)
td_model *td_read(void *block, size_t n_bytes, char *error, int32_t error_size) {
    const struct header *header = block;
    const int is_model = n_bytes >= sizeof *header && header->magic == MAGIC && header->abi == TD_ABI;
    td_model *m = is_model ? new_model(&header->config, header->precision, error, error_size) : NULL;
    if (!is_model) snprintf(error, (size_t)error_size, "the model is damaged, or of another version than the engine");
    if (!m) return free(block), NULL;
    m->block = block;
    m->n_bytes = n_bytes;
    return found(m, "the model", header->key, error, error_size);
}
#endif

void td_free(td_model *m) {
    if (!m) return;
    free(m->encoder.layers), free(m->decoder.layers), free(m->src.begins_word), free(m->tgt.begins_word);
    free_block(m->block, m->n_bytes);
    free(m);
}
