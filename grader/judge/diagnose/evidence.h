/** @file
 * Numbers that came out, beside those that should have: is the one a simple mistake made with the other?
 */
#pragma once

#include "grader/judge/diagnose/trial.h"

/** A tensor of a case that came out wrong. */
typedef struct Evidence {
    Trial *trial;            /**< the case under judgement */
    const Case *c;           /**< the case */
    const Entry *got, *want; /**< what the rank has written; what it should have */
    const double *is;        /**< what came out, `count` numbers */
    const double *right;     /**< what should have, the same part of it */
    int64_t count;
    double tolerance; /**< what an error of rounding may amount to */
    char *text;       /**< for the sentence that names the cause */
    size_t size;      /**< bytes of it */
    /* What one walk over the numbers shows: see look_over(). */
    int64_t wrong, first_wrong; /**< how many are wrong; the first of them, or `count` */
    int64_t zeros;              /**< that came out */
    int64_t lost, extra;        /**< wrong ones that are zero; that should be zero */
    double error;               /**< the largest */
    double most_is, most_right; /**< the largest number that came out; that should have */
} Evidence;

/** Is a[i] = factor * b[i] for all i, up to the tolerance? */
bool close_to(const double *a, const double *b, double factor, int64_t count, double tolerance);

/** What went into the layer or operation that `want` is the output of; NULL where it is none. */
const Entry *input_of(const Evidence *e);

/** Is number i within the tolerance? */
bool is_right(const Evidence *e, int64_t i);
/** Fills in what one walk over the numbers shows. */
void look_over(Evidence *e);

/** Do these numbers, of the undivided tensor, give what came out? */
bool gives(const Evidence *e, const double *whole);

/** Writes the sentence to e->text. @return true */
bool says(const Evidence *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Each looks for one kind of mistake, and says what it has found. */
typedef bool Finder(const Evidence *e);
Finder input_altered, not_a_number, nothing_flowed_back, multiple, scaled, suspected,
    added_up_over_ranks, of_another_rank, of_another_call, same_numbers_elsewhere,
    right_on_first_rank, ranks_differ, parts_of_some_ranks, nearly_right, metrics_are_wrong,
    made_of_contributions, partial_match, divided_by_bucket_count, dropout_differs, input_added,
    rows_of_ids, rows_of_repeated_ids, rest_is_not_shared, right_in_step_1, first_ones_right,
    brought_by_one, last_ones_wrong, not_on_tape, shared_by_layers, step_of_wrong_gradient,
    after_wrong_gradients, blocks_are_misplaced, received_is_wrong, gradient_received_is_wrong;

/** Is another bucket of this round right on this rank? */
bool other_bucket_is_right(const Evidence *e);

/** One way in which students go wrong; the judge computes what that would give. */
typedef struct Suspect {
    unsigned families;    /**< a set of MistakeFamily */
    const char *sentence; /**< for the report */
} Suspect;

/** The suspects, by Mistake. */
extern const Suspect suspects[MISTAKES];
