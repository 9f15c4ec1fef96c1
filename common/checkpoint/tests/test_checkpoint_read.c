/* Any part of any parameter can be read from the files of any set of ranks: other degrees, another
   dimension, uneven and empty parts. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"

enum { RANKS = 4, STAGES = 3, PARAMETERS = 4 };

static char folder[64];

/* The element at an index of the full parameter. */
static real number_at(const SavedParameter *p, int state, int64_t index)
{
    return (real)(index + 1000 * state + 100000 * p->shape.size[0]);
}

/* Writes the part `held` along `dim` to `values`, one element at a time. @return their number */
static int64_t part_of(const SavedParameter *p, int state, int dim, Range held, real *values)
{
    int64_t inner = 1, count = 0;
    for (int d = dim + 1; d < p->shape.rank; d++)
        inner *= p->shape.size[d];
    for (int64_t i = 0; i < shape_count(p->shape); i++) {
        int64_t at = i / inner % p->shape.size[dim];
        if (at >= held.begin && at < held.end)
            values[count++] = number_at(p, state, i);
    }
    return count;
}

/* The parts are uneven: 5 rows over 3 ranks are 2, 2 and 1; 7 over 4 are 2, 2, 2 and 1; 3 over 4
 * are 1, 1, 1 and none. */
static CheckpointIndex index_for(int tp, int pp, SavedParameter parameters[PARAMETERS])
{
    static char names[PARAMETERS][8] = {"rows", "columns", "cube", "whole"};
    const SavedParameter made[PARAMETERS] = {{names[0], SHAPE(5, 3), shard(0), 0},
                                             {names[1], SHAPE(3, 7), shard(1), 1 % pp},
                                             {names[2], SHAPE(2, 3, 4), shard(1), 2 % pp},
                                             {names[3], SHAPE(6), whole(), 2 % pp}};
    memcpy(parameters, made, sizeof made);
    CheckpointIndex index = {.step = 3,
                             .tp = tp,
                             .pp = pp,
                             .optimizer = "adamw",
                             .optimizer_steps = 3,
                             .count = PARAMETERS,
                             .parameters = parameters,
                             .data_key = "0123456789abcdef",
                             .rotary = {500, 8, 32, 1, 4},
                             .loss_sum = 0.1};
    for (int i = 0; i < FITTINGS; i++)
        index.fitting[i] = 100 - i;
    return index;
}

static void write_rank(const CheckpointIndex *index, int stage, int rank)
{
    enum { TENSORS = PARAMETERS * SAVED_STATES };
    SafeTensor tensors[TENSORS] = {0};
    real values[TENSORS][64];
    int count = 0;
    for (int state = 0; state < SAVED_STATES; state++)
        for (int i = 0; i < PARAMETERS; i++) {
            const SavedParameter *p = &index->parameters[i];
            bool cut = p->placement.kind == SHARD;
            int dim = cut ? p->placement.dim : 0;
            Range held =
                cut ? chunk(p->shape.size[dim], rank, index->tp) : (Range){0, p->shape.size[0]};
            if (p->stage != stage || (!cut && rank))
                continue;
            part_of(p, state, dim, held, values[count]);
            tensors[count++] =
                (SafeTensor){.name = saved_name(state, p->name),
                             .shape = shape_with(p->shape, dim, held.end - held.begin)};
        }
    Problem problem;
    const Path path = shard_path(folder, index, stage, rank);
    const char *const metadata[] = {"step", "3", NULL};
    SafetensorsWriter *writer =
        safetensors_begin(path.text, tensors, count, metadata, NULL, &problem);
    for (int i = 0; i < count; i++) {
        safetensors_put(writer, values[i], shape_count(tensors[i].shape));
        free((char *)tensors[i].name);
    }
    ck_assert(safetensors_end(writer, &problem));
}

static void write_all(int tp, int pp)
{
    Problem problem;
    SavedParameter parameters[PARAMETERS];
    CheckpointIndex index = index_for(tp, pp, parameters);
    for (int file = 0; file < tp * pp; file++)
        write_rank(&index, file / tp, file % tp);
    ck_assert(checkpoint_index_write(&index, folder, &problem));
}

static void begin(void)
{
    strcpy(folder, "/tmp/balise-checkpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_in(const char *name)
{
    unlink(path_in(folder, name).text);
}

static void end(void)
{
    remove_in("index.json");
    for (int files = 1; files <= RANKS * STAGES; files++)
        for (int file = 0; file < files; file++)
            unlink(shard_path(folder, &(CheckpointIndex){.tp = files, .pp = 1}, 0, file).text);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void check_read(const SavedModel *saved, const SavedParameter *p, int dim, int parts)
{
    for (int state = 0; state < SAVED_STATES; state++)
        for (int part = 0; part < parts; part++) {
            Problem problem = {0};
            real expected[64], actual[64];
            Range held = chunk(p->shape.size[dim], part, parts);
            int64_t count = part_of(p, state, dim, held, expected);
            memset(actual, 0xff, sizeof actual);
            memset(expected + count, 0xff, sizeof expected - (size_t)count * sizeof(real));
            ck_assert(saved_model_read(saved, state, p, dim, held, actual, &problem));
            ck_assert_mem_eq(actual, expected, sizeof actual);
        }
}

START_TEST(every_part_of_every_layout_is_read_from_every_layout)
{
    Problem problem = {0};
    write_all(1 + _i % RANKS, 1 + _i / RANKS);
    SavedModel *saved = saved_model_open(folder, &problem);
    ck_assert_msg(saved, "%s", problem.what);
    for (int i = 0; i < PARAMETERS; i++)
        for (int dim = 0; dim < saved->index.parameters[i].shape.rank; dim++)
            for (int parts = 1; parts <= RANKS; parts++)
                check_read(saved, &saved->index.parameters[i], dim, parts);
    saved_model_close(saved);
}
END_TEST

START_TEST(an_index_is_read_as_it_was_written)
{
    Problem problem;
    SavedParameter parameters[PARAMETERS];
    CheckpointIndex written = index_for(3, 2, parameters), read;
    ck_assert(checkpoint_index_write(&written, folder, &problem));
    ck_assert(checkpoint_index_read(&read, folder, &problem));
    ck_assert(checkpoint_index_fits(&read, &written, folder, &problem));
    ck_assert(read.step == 3 && read.tp == 3 && read.pp == 2 && read.optimizer_steps == 3 &&
              read.loss_sum == 0.1);
    for (int i = 0; i < PARAMETERS; i++) {
        const SavedParameter *p = checkpoint_index_find(&read, parameters[i].name);
        ck_assert(p && shape_equal(p->shape, parameters[i].shape) &&
                  placement_equal(p->placement, parameters[i].placement) &&
                  p->stage == parameters[i].stage);
    }
    for (int i = 0; i < FITTINGS; i++) {
        read.fitting[i]++;
        ck_assert(!checkpoint_index_fits(&read, &written, folder, &problem));
        read.fitting[i]--;
    }
    read.rotary.high++;
    ck_assert(!checkpoint_index_fits(&read, &written, folder, &problem));
    checkpoint_index_clear(&read);
}
END_TEST

START_TEST(parts_that_do_not_add_up_are_refused)
{
    Problem problem = {0};
    SavedParameter parameters[PARAMETERS];
    CheckpointIndex index = index_for(3, 1, parameters);
    for (int rank = 0; rank < 3; rank++)
        write_rank(&index, 0, rank);
    parameters[0].shape.size[0] = 6;
    ck_assert(checkpoint_index_write(&index, folder, &problem));
    ck_assert_ptr_null(saved_model_open(folder, &problem));
    ck_assert_msg(strstr(problem.what, "5 rows") && strstr(problem.what, "[6,3]"), "%s",
                  problem.what);
}
END_TEST

Suite *suite(void);
Suite *suite(void)
{
    Suite *all = suite_create("checkpoint");
    TCase *cases = tcase_create("parts");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_loop_test(cases, every_part_of_every_layout_is_read_from_every_layout, 0,
                        RANKS * STAGES);
    tcase_add_test(cases, an_index_is_read_as_it_was_written);
    tcase_add_test(cases, parts_that_do_not_add_up_are_refused);
    suite_add_tcase(all, cases);
    return all;
}
