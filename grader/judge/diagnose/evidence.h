/** @file
 * Compares a rank's numbers with the expected ones: does a simple mistake explain the difference?
 */
#pragma once

#include "grader/judge/diagnose/trial.h"

/** A wrong tensor of a case. */
typedef struct Evidence {
    Trial *trial;            /**< the case being judged */
    const Case *c;           /**< the case */
    const Entry *got, *want; /**< the rank's entry; the expected entry */
    const double *is;        /**< the rank's `count` numbers */
    const double *right;     /**< the same part of the expected numbers */
    int64_t count;
    double tolerance; /**< the largest error that rounding explains */
    bool has_note;    /**< a broken placement rule may be the cause */
    bool beyond;      /**< a call has left its group, so no mistake within the group is replayed */
    char *text;       /**< receives the sentence that names the cause */
    size_t size;      /**< bytes of `text` */
    /* The results of one pass over the numbers: see look_over(). */
    int64_t wrong, first_wrong; /**< count of wrong numbers; index of the first, or `count` */
    int64_t zeros;              /**< numbers that are zero */
    int64_t lost;               /**< wrong numbers that are zero */
    double error;               /**< the largest error */
    double most_is, most_right; /**< the largest absolute value; the largest expected one */
} Evidence;

/** The error of a number. NaN is right where NaN or infinity is expected, and infinity where it is;
 *  elsewhere, they have an error of INFINITY. */
double error_of(double is, double right);
/** The same in this entry: in the step with NaN, NaN may spread farther, since 0 times NaN is NaN. */
double error_in(const Entry *want, double is, double right);
/** Is a[i] = factor * b[i] for all i, up to the tolerance (times |factor| if that is above 1)? */
bool close_to(const double *a, const double *b, double factor, int64_t count, double tolerance);

/** The entry that went into the layer or operation with the output `want`, or NULL. */
const Entry *input_of(const Evidence *e);

/** Are all outputs of the case's layers right on this rank? */
bool all_outputs_right(const Evidence *e);

/** Is number i within the tolerance? */
bool is_right(const Evidence *e, int64_t i);
/** Compares all numbers once, and fills in the counts and errors of `e`. */
void look_over(Evidence *e);

/** Are the rank's numbers its part of the full tensor `whole`, up to four tolerances? */
bool gives(const Evidence *e, const double *whole);
/** How many times the right numbers the tensor has, or 1 if it is wrong otherwise. */
double constant_factor(const Evidence *e);

/** Writes the sentence to e->text. @return true */
bool says(const Evidence *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

Finder reduced_otherwise, program_is_another, value_is_wrong, result_was_changed, input_altered,
    not_a_number, nan_is_hidden, nothing_flowed_back, parameter_not_read, leaves_the_tape, multiple,
    scaled, added_up_over_ranks, of_another_rank, of_another_call, same_numbers_elsewhere,
    right_on_first_rank, ranks_differ, nearly_right, made_of_contributions, partial_match,
    rest_is_not_shared, right_in_step_1, first_ones_right, brought_by_one, few_wrong, not_on_tape,
    step_of_wrong_gradient, after_wrong_gradients, call_beyond_group, layer_gradient_is_scaled,
    after_wrong_forward;

/** Have the ranks sent as many numbers in this call as it needs, and more than none? */
bool have_sent_enough(const Trial *t, Label call);

/** Is this a parameter after a step with a wrong gradient? */
bool follows_wrong_gradient(const Trial *t, const Entry *want);

/** The gradient of a layer's input without the layer's part of it; NULL for other entries. */
const double *past_the_layer(Trial *t, const Entry *want);
/** The line of a loop over raw numbers in a pass, or "". */
const char *line_of_raw_look(const Trial *t);

/** The next call that this rank has made where the entry comes from: in the same thing, index and
 *  step. `last` is the one before, or NULL. NULL if there is none. */
const Call *next_call_there(const Evidence *e, const Call *last);
