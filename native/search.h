/* What searches share: the hypotheses of a sentence, the rows of a step, the most probable tokens. */
#ifndef SEARCH_H
#define SEARCH_H

#include "model.h"

/* The end of an output that is written token by token; outputs share beginnings. */
struct node {
    int32_t token, before; /* -1: nothing was written */
    int32_t n_words;       /* begun up to the token */
};

struct finished {
    float log_prob, score;
    int32_t node;
};

/* The hypotheses of a sentence: alive beams, and those that ended with EOS. */
struct beams {
    struct sentence sentence;
    int index, max_length, n_alive, n_finished, is_done, n_prompt_words;
    float *log_probs;          /* of the alive beams, best first */
    int32_t *ends;             /* their nodes */
    struct finished *finished; /* best first */
    struct node *nodes;
    int n_nodes, node_capacity;
    uint8_t *seen, *next_seen; /* (beam_size, seen_stride): the slots of each beam */
    int seen_stride;
    int *slots; /* of the tokens that are read in this step */
    uint32_t generator[624];
    int n_drawn; /* of these numbers */
};

/* A row of a step: a hypothesis that is continued. */
struct row {
    struct beams *beams;
    int beam;
    int32_t forced;    /* the only id that may follow; -1: any */
    int is_word_start; /* an id that begins a word must follow */
    const int32_t *written; /* n_tokens ids, where constraints need them; else NULL */
    float maximum, sum;     /* of the softmax over its logits */
};

struct search {
    const td_model *model;
    struct td_search *request;
    struct room room;
    struct beams *beams;  /* of the sentences */
    int width;            /* beams of a sentence */
    int k;                /* tokens that are found for each row */
    int n_tokens;         /* written so far */
    int where;            /* the sentence of an error */
    struct matrix output; /* the model's, or that of a shortlist */
    int32_t *token_of;    /* the ids of a shortlist's outputs; NULL: all, in order */
    uint8_t *is_listed;   /* (sentences, outputs): which of them a sentence may have */
    uint8_t *is_suppressed, *is_pooled;
    struct group *groups;
    struct row *rows;
    int32_t *ids, *positions, *n_words, *top_ids; /* of the rows; k of each */
    float *top, *logits;
    float *whole;                       /* (rows, V): all logits, where Python or draws choose */
    int32_t *written, *allowed;
    int *order;                         /* 0, 1, 2, ...: the slots of a text that is read in order */
    void *tables[32];                   /* the arrays above, to be freed */
    int n_tables, has_room;
};

enum { STOPPED = 1, NO_HYPOTHESIS = 2, NO_MEMORY = 3 }; /* what td_run returns, and 0 */

/* output.c: the k best tokens of rows of states, in s->top and s->top_ids, as log-probabilities, or as logits if not
   `is_scored`; NaN if a logit is. */
void best_tokens(struct search *, const float *states, int n_rows, int is_scored);
int best_allowed(struct search *, const float *states, int n_rows); /* of the ids that Python allows; 0: it gave up */
void all_logits(struct search *, const float *states, int n_rows);
int may_follow(const struct search *, const struct row *, int32_t id);
int make_shortlist(struct search *);

/* draw.c: draw the next tokens of all rows. A status. */
int sample(struct search *, int n_rows);
void seed_draws(struct search *);

/* beams.c: the hypotheses of a sentence. */
int last_ids(const struct beams *, int32_t node, int32_t *to, int n);
int advance(struct search *, struct beams *, const float *top, const int32_t *top_ids); /* beam search; a status */
int append(struct search *, struct beams *, float log_prob, int32_t id);               /* greedy search, draws */
int finish_if_done(struct search *, struct beams *);
int take_slots(struct search *, struct beams *);

/* drafts.c: greedy search with the drafts of a smaller model. A status. */
int run_with_drafts(struct search *, struct search *drafter);
int encode_sources(struct search *);
#endif
