/* What a page calls: the engine with numbers in place of structures. Compiled for WebAssembly only. */
#include <stdio.h>

#include "transduce.h"

#define CALLED(name) __attribute__((export_name(name)))
enum { BOS = 1, EOS = 2, ERROR_SIZE = 300 };

static char error[ERROR_SIZE];

/* What was wrong with the last call that failed. */
CALLED("error") const char *page_error(void) { return error; }

CALLED("read") td_model *page_read(void *bytes, size_t n_bytes) { return td_read(bytes, n_bytes, error, ERROR_SIZE); }

/* Search for the outputs of a source, EOS at its end: the best first, (n_best, max_length) ids and their lengths. 0, or -1.
   `max_repeats` may be NULL; beam_size 1 is greedy search. */
CALLED("search") int32_t page_search(const td_model *m, const int32_t *src_ids, int32_t n_src, int32_t max_length, int32_t beam_size,
                                     int32_t n_best, float alpha, int32_t min_length, int32_t no_repeat_ngram,
                                     const int32_t *suppressed_ids, int32_t n_suppressed, const int32_t *max_repeats, int32_t n_units,
                                     int32_t *ids, int32_t *lengths) {
    enum { MAX_BEST = 1000 };
    static float log_probs[MAX_BEST], scores[MAX_BEST];
    static uint8_t is_finished[MAX_BEST];
    const int32_t bos = BOS, src_offsets[] = {0, n_src}, prompt_offsets[] = {0, 1};
    struct td_search search = {
        .n_sentences = 1, .src_ids = src_ids, .src_offsets = src_offsets, .prompt_ids = &bos, .prompt_offsets = prompt_offsets,
        .max_lengths = &max_length, .max_length = max_length, .eos_id = EOS, .suppressed_ids = suppressed_ids,
        .n_suppressed = n_suppressed, .beam_size = beam_size > 1 ? beam_size : 0, .n_best = n_best < MAX_BEST ? n_best : MAX_BEST,
        .alpha = alpha, .min_length = min_length, .no_repeat_ngram = no_repeat_ngram, .max_repeats = max_repeats, .n_units = n_units,
        .ids = ids, .lengths = lengths, .log_probs = log_probs, .scores = scores, .is_finished = is_finished,
    };
    const int32_t status = td_run(m, &search, error, ERROR_SIZE);
    if (status) snprintf(error, ERROR_SIZE, status == 3 ? "no memory for this sentence" : "the model has no output for this sentence");
    return status ? -1 : 0;
}
