/* What searches share: the texts of a sentence, the rows of a step, the most probable tokens. */
#ifndef SEARCH_H
#define SEARCH_H

#include "model.h"

/* A text that is written: a prompt, then an output. */
struct text {
    int32_t *ids;
    int n;       /* of the prompt and the output */
    int may_end; /* it has all wanted phrases */
    float log_prob, score;
};

/* The hypotheses of a sentence: alive beams, and those that ended with EOS. */
struct beams {
    struct sentence *sentence;
    int index, n_prompt, max_length, n_alive, n_finished, is_done;
    int n_drafted;                        /* ids behind those of an alive text, which are read with it */
    int first, n_read;                    /* the ids of an alive text that are in slots */
    struct text *alive, *next, *finished; /* best first */
    uint8_t *seen, *next_seen;            /* (beam_size, seen_stride): the slots of each beam */
    int seen_stride;
    int *slots; /* of the tokens that are read in this step */
    struct generator *generator; /* of draws */
};

/* An extension of an alive beam by one id. */
struct candidate {
    float log_prob;
    int32_t id;
    int parent, may_end;
    int rank; /* among those that stay alive, where wanted phrases decide */
};

/* A row of a step: a text that is continued. */
struct row {
    struct beams *beams;
    int state;                     /* where its state was among those of all tokens that were read */
    const int32_t *written;        /* the output so far */
    int n_written;
    int32_t forced;                /* the only id that may follow; -1: any */
    int is_word_start;             /* an id that begins a word must follow */
    int may_end;                   /* it has all wanted phrases */
    float maximum, sum;            /* of the softmax over its logits */
};

struct search {
    const td_model *model;
    struct td_search *request;
    struct room room;
    struct sentence *sentences;
    struct beams *beams;  /* of the sentences */
    int width;            /* beams of a sentence */
    int k;                /* tokens that are found for each row */
    int n_open;           /* sentences that are not done */
    int where, n_written; /* the sentence of an error, and its tokens */
    int bad_id;           /* what Python allowed outside the vocabulary */
    struct matrix output; /* the model's, or that of a shortlist */
    int32_t *token_of;    /* the ids of a shortlist's outputs; NULL: all, in order */
    uint8_t *is_listed;   /* (sentences, outputs): which of them a sentence may have */
    uint8_t *is_suppressed, *is_pooled;
    struct group *groups;
    struct row *rows;
    int32_t *ids, *positions, *n_words, *top_ids; /* of the tokens that are read; k of each row */
    float *top, *logits;
    int n_next;                         /* the most wanted phrases of a sentence */
    int32_t *next_ids;                  /* (rows, n_next): with what these go on; -1: with nothing */
    float *next;                        /* as `top` */
    float *whole;                       /* (rows, outputs): all logits, where Python or draws choose */
    float *draft_probabilities;         /* (sentences, drafts, outputs): where drafts were drawn from */
    int32_t *allowed;
    int *order;                         /* 0, 1, 2, ...: the slots of a text that is read in order */
    void *tables[32];                   /* the arrays above, to be freed */
    int n_tables, has_room;
};

enum { STOPPED = 1, NO_HYPOTHESIS = 2, NO_MEMORY = 3, BAD_IDS = 4 }; /* what td_run returns, and 0 */

/* search.c */
void *table(struct search *, size_t n, size_t size);
int read_texts(struct search *);

/* output.c: the k best tokens of rows of states, in s->top and s->top_ids, as log-probabilities, or as logits if not
   `is_scored`; NaN if a logit is. */
void best_tokens(struct search *, int n_rows, int is_scored);
int best_allowed(struct search *, int n_rows); /* of the ids that Python allows. A status. */
void all_logits(struct search *, int n_rows, float *logits);
int may_follow(const struct search *, const struct row *, int32_t id);
int make_shortlist(struct search *);

/* draw.c: draw a token of each row in place of the best, behind the last draft that is kept. A status. */
int draw_tokens(struct search *, int n_rows);
int begin_draws(struct search *); /* 0 without memory */
/* Keep the distribution that the next draft of a sentence was drawn from. */
void keep_draft(const struct search *drafter, int row, const struct beams *, struct search *);

/* beams.c: what follows a step, for a sentence. A status. */
int advance(struct search *, struct beams *, const float *top, const int32_t *top_ids); /* beam search */
int append(struct search *, struct beams *, const float *top, const int32_t *top_ids);  /* without beams */
int write_results(struct search *, struct beams *);
int take_slots(struct search *, struct beams *);

/* phrases.c */
int is_avoided(const struct search *, const struct row *, int32_t id); /* whether an id would complete a phrase */
/* How many tokens of its wanted phrases a text has: whole ones, and the one furthest begun. `next`, if not NULL, gets with
   what each goes on. */
int n_had(const struct search *, const struct beams *, const struct text *, int32_t *next);
int n_wanted(const struct search *, const struct beams *);
/* Add to n candidates those that go on with wanted phrases, and share out the alive beams; how many there are. */
int add_phrases(const struct search *, const struct beams *, const float *top, const int32_t *top_ids, struct candidate *, int n);

/* Let a smaller model draft tokens behind each text. A status. */
int draft(struct search *drafter, struct search *);
#endif
