/* A case's first step at the pace of a cluster. */
#include "grader/judge/report/on_cluster.h"

#include <math.h>

#include "grader/judge/diagnose/step_schedule.h"
#include "grader/labs/replicas.h"
#include "grader/labs/stages.h"

/* What common/bench/clusters.py prints: a cluster, in seconds and bytes per second, and a step of a
 * model on it. */
typedef struct Cluster {
    double node, latency[LINKS], bandwidth[LINKS];
    double work, activations,
        gradients; /* seconds on one rank; bytes of the activations between two blocks, of all gradients */
    const char *name;
} Cluster;

static bool read_cluster(const char *text, Cluster *cluster)
{
    int read = 0;
    *cluster = (Cluster){0};
    sscanf(text, "%lf %lf %lf %lf %lf %lf %lf %lf %n", &cluster->node, &cluster->latency[NEAR],
           &cluster->bandwidth[NEAR], &cluster->latency[FAR], &cluster->bandwidth[FAR],
           &cluster->work, &cluster->activations, &cluster->gradients, &read);
    cluster->name = text + read;
    return read > 0;
}

/* Adds up the ranks' multiply-adds in this step, and the bytes of gradients that a replica sums. */
static void add_up(const Case *c, const Calls *calls, const StepSchedule *s, double *multiplied,
                   double *summed)
{
    const Label where = work_of_stages(0);
    *multiplied = *summed = 0;
    for (int rank = 0; rank < c->world; rank++) {
        int64_t most = s->count[rank] ? s->pass[rank][s->count[rank] - 1].multiplied : 0;
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            if (!label_equal(&call->where, &where))
                continue;
            most = call->multiplied > most ? call->multiplied : most;
            if (rank < c->tp && are_replicas(call->members, c->tp))
                *summed += signature_bytes(&call->sent[0]);
        }
        *multiplied += (double)most;
    }
}

/* The calls come from a small model. The pace scales its multiplications, activations and gradients
 * to those of the requested model. */
static Pace pace_of(const Case *c, const Outcome *outcome, const Cluster *cluster)
{
    StepSchedule s;
    double multiplied, summed;
    const double activations = (double)c->B * c->S * c->H * sizeof(float),
                 scale = cluster->activations / activations;
    schedule_of_step(c, outcome, 0, NULL, &s);
    add_up(c, outcome->calls, &s, &multiplied, &summed);
    Pace pace = {.work = multiplied > 0 ? cluster->work / multiplied : 0,
                 .node = cluster->node < MAX_RANKS ? (int)cluster->node : MAX_RANKS,
                 .tp = c->tp,
                 .over_replicas = summed > 0 ? cluster->gradients / summed / scale : 1};
    for (int link = 0; link < LINKS; link++) {
        pace.latency[link] = cluster->latency[link];
        pace.byte[link] = scale / cluster->bandwidth[link];
    }
    return pace;
}

/* The length of the step at this pace, or NAN. */
static double length_at(const Case *c, const Outcome *outcome, const Pace *pace)
{
    StepSchedule s;
    return schedule_of_step(c, outcome, 0, pace, &s) ? s.length : NAN;
}

bool step_on_cluster(const Case *c, const Outcome *outcome, const char *text, OnCluster *on)
{
    Cluster cluster;
    if (!outcome->calls || !read_cluster(text, &cluster))
        return false;
    const Pace pace = pace_of(c, outcome, &cluster);
    Pace late = pace;
    late.late = true;
    *on = (OnCluster){.name = cluster.name,
                      .free = length_at(c, outcome, &(Pace){.work = pace.work}),
                      .late = length_at(c, outcome, &late)};
    return pace.work > 0 && schedule_of_step(c, outcome, 0, &pace, &on->step);
}

static double length(const Interval *span)
{
    return span->end > span->begin ? span->end - span->begin : 0;
}

double sums_take(const StepSchedule *s)
{
    double all = 0;
    for (int i = 0; i < s->sums.count; i++)
        all += length(&s->sums.span[i]);
    return all;
}

int busiest_replica(const StepSchedule *s)
{
    int busiest = 0;
    for (int rank = 0; rank < s->ranks; rank += s->pace.tp)
        if (s->busy[rank] > s->busy[busiest])
            busiest = rank;
    return busiest;
}

double sums_overlapped(const StepSchedule *s)
{
    const Intervals *work = &s->work[busiest_replica(s)];
    double all = 0;
    for (int i = 0; i < s->sums.count; i++)
        for (int k = 0; k < work->count; k++)
            all += length(&(Interval){fmax(s->sums.span[i].begin, work->span[k].begin),
                                      fmin(s->sums.span[i].end, work->span[k].end)});
    return all;
}
