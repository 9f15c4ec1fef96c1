/* The list of labs, and access to their records. */
#include "grader/labs/lab.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const check_names[CHECKS] = {N_("forward"),         N_("input gradient"),
                                         N_("weight gradient"), N_("step"),
                                         N_("reduce-scatter"),  N_("all-gather"),
                                         N_("initial values"),  N_("sharding"),
                                         N_("groups"),          N_("rows"),
                                         N_("gradient"),        N_("metrics"),
                                         N_("layout"),          N_("arithmetic and memory"),
                                         N_("communication"),   N_("schedule")};

const char *const check_keys[CHECKS] = {
    "forward",        "input_gradient", "weight_gradient", "step",
    "reduce_scatter", "all_gather",     "initial_values",  "sharding",
    "groups",         "rows",           "gradient",        "metrics",
    "layout",         "arithmetic",     "communication",   "schedule"};

static Lab *const all_labs[] = {LABS};

int lab_count(void)
{
    return (int)(sizeof all_labs / sizeof *all_labs);
}

const Lab *lab_at(int i)
{
    return all_labs[i];
}

static Lab *find_lab(int number)
{
    for (int i = 0; i < lab_count(); i++)
        if (all_labs[i]->number == number)
            return all_labs[i];
    return NULL;
}

const Lab *lab_of(int number)
{
    return find_lab(number);
}

Range labs_of_part(int part)
{
    Range labs = {0, 0};
    while (labs.begin < lab_count() && all_labs[labs.begin]->part < part)
        labs.begin++;
    for (labs.end = labs.begin; labs.end < lab_count() && all_labs[labs.end]->part == part;)
        labs.end++;
    return labs;
}

const Kind *kind_of_case(const Case *c)
{
    return &lab_of(c->lab)->kinds[c->kind];
}

bool alike_on_ranks(const Case *c)
{
    return kind_of_case(c)->scenario != NULL;
}

int exchanging_ranks(const Case *c)
{
    const Lab *lab = lab_of(c->lab);
    return lab->over_replicas ? replicas_of(c) : lab->over_stages ? c->world / c->tp : c->tp;
}

int lab_points(const Lab *lab, Check check)
{
    return check < CHECKS ? lab->points[check] : 0;
}

Check lab_check(const Lab *lab, Check from)
{
    int check = (int)from;
    while (!lab->points[check])
        check = (check + 1) % CHECKS;
    return (Check)check;
}

Check check_of_key(const char *key, size_t length)
{
    int check = 0;
    while (check < CHECKS &&
           (strlen(check_keys[check]) != length || strncmp(check_keys[check], key, length)))
        check++;
    return (Check)check;
}

void lab_set_layouts(int number, const char *layouts)
{
    find_lab(number)->layouts = strdup(layouts);
}

void lab_set_points(int number, Check check, int points)
{
    find_lab(number)->points[check] = points;
}

const CaseSize case_sizes[CASE_SIZES] = {
    {"B", "B", SIZES_BSH, 16, offsetof(Case, B)},
    {"S", "S", SIZES_BSH, 64, offsetof(Case, S)},
    {"H", "H", SIZES_BSH, 512, offsetof(Case, H)},
    {"A", "A", SIZE_A, 64, offsetof(Case, A)},
    {"F", "inner", SIZE_F, 512, offsetof(Case, F)},
    {"OUT", "out", SIZE_OUT, 512, offsetof(Case, out)},
    {"V", "V", SIZE_V, 4096, offsetof(Case, V)},
    {"BLOCKS", "blocks", SIZE_BLOCKS, MAX_BLOCKS, offsetof(Case, blocks)},
    {"MICROS", "m", SIZE_MICROS, MAX_MICROS, offsetof(Case, micros)},
    {"EVERY", "h", SIZE_EVERY, 64, offsetof(Case, every)},
    {"N", "N", SIZE_N, 100000, offsetof(Case, N)}};

int32_t *case_size_in(Case *c, const CaseSize *size)
{
    return (int32_t *)((char *)c + size->offset);
}

int case_size(const Case *c, int i)
{
    return lab_of(c->lab)->sizes & case_sizes[i].set ? *case_size_in((Case *)c, &case_sizes[i]) : 0;
}

const char *case_size_name(const Lab *lab, int i)
{
    const bool is_width_of_x = case_sizes[i].offset == offsetof(Case, H);
    return is_width_of_x && lab->sizes & SIZE_OUT ? "in" : case_sizes[i].shown;
}

/* Compares whole components: "down.weight" ends with "weight", but not with "eight". */
static bool ends_with(const char *name, const char *end)
{
    size_t all = strlen(name), length = strlen(end);
    return all >= length && !strcmp(name + all - length, end) &&
           (all == length || name[all - length - 1] == '.');
}

unsigned lab_cuts(const Lab *lab, const char *parameter)
{
    for (const Cut *cut = lab->cuts; cut->name; cut++)
        if (ends_with(parameter, cut->name))
            return cut->how;
    return CUT_NOT;
}

const char *next_layout(const char *at, int *world, int *tp)
{
    char *end;
    while (*at == ' ')
        at++;
    if (!*at)
        return NULL;
    *world = *tp = (int)strtol(at, &end, 10);
    if (*end == 'x')
        *tp = (int)strtol(end + 1, &end, 10);
    return end;
}

int lab_largest_world(const Lab *lab)
{
    int largest = 1, world, tp;
    for (const char *at = lab->layouts; (at = next_layout(at, &world, &tp));)
        largest = world > largest ? world : largest;
    return largest;
}
