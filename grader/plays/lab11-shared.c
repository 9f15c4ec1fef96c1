#include "grader/plays/lab11.h"

#include <stdio.h>

int64_t lab11_rows(const Case *c)
{
    return c->V; /* drawn: some are divisible by dp, most are not */
}

void lab11_rows_name(char text[NAME_SIZE], Tail tail, int epoch)
{
    static const char *const names[] = {[EVERY_ROW_ONCE] = "EVERY_ROW_ONCE", [PAD] = "PAD", [DROP] = "DROP"};
    snprintf(text, NAME_SIZE, "rows, %s, epoch %d", names[tail], epoch);
}

int64_t lab11_bucket_size(const Case *c, int bucket)
{
    return (int64_t)c->B * (bucket + 1) * c->H + bucket;
}

void lab11_bucket_name(char text[NAME_SIZE], int bucket, int round)
{
    snprintf(text, NAME_SIZE, "gradients in bucket %d, round %d", bucket, round + 1);
}

Metrics lab11_metrics(const Play *play, int replica)
{
    double count = (double)(3 + random_below(play, "count", replica, 20));
    return (Metrics){count * (0.5 + (double)random_below(play, "loss", replica, 64) / 64),
                     (double)random_below(play, "correct", replica, (int64_t)count), count};
}
