/** @file
 * Lab 11: the rows that each replica reads, the mean of the gradients, the sums of the metrics, and two steps of the whole
 * model. Rows are judged as sets, so the judge does not play the sampler; see judge/replicas.c.
 */
#ifndef BALISE_GRADER_LAB11_H
#define BALISE_GRADER_LAB11_H

#include "grader/plays/play.h"

enum { EPOCHS = 2, BUCKETS = 3, ROUNDS = 2 };
enum { PARTS_OF_A_REPLICA, WHOLE_MODEL }; /* the kinds of cases */

/** How many rows the sampler of a case has; below the number of replicas in some. */
int64_t lab11_rows(const Case *c);

/** "rows, PAD, epoch 1" */
void lab11_rows_name(char text[NAME_SIZE], Tail tail, int epoch);

/** How many gradients bucket `bucket` has, and the name of what rank `rank` puts there in round `round`. */
int64_t lab11_bucket_size(const Case *c, int bucket);
void lab11_bucket_name(char text[NAME_SIZE], int bucket, int round);

/** The metrics of replica `replica`, whose rows differ in number. */
Metrics lab11_metrics(const Play *play, int replica);

/** Two steps of a small BERT on rows that are dealt by the play itself, at any layout; see lab11-model.c. */
void play_model(Play *play);

#endif
