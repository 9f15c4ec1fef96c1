#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/judge/judge.h"

#include "labs.h" /* generated */

const char *const check_names[CHECKS] = {N_("forward"),
                                         N_("input gradient"),
                                         N_("weight gradient"),
                                         N_("step"),
                                         N_("initial values"),
                                         N_("sharding"),
                                         N_("arithmetic and memory"),
                                         N_("communication"),
                                         N_("groups"),
                                         N_("rows"),
                                         N_("gradient"),
                                         N_("metrics"),
                                         N_("layout")};

static const char *const check_keys[CHECKS] = {
    "forward",  "input_gradient", "weight_gradient", "step",   "initial_values",
    "sharding", "arithmetic",     "communication",   "groups", "rows",
    "gradient", "metrics",        "layout"};

int lab_count(void)
{
    return (int)(sizeof all_labs / sizeof *all_labs);
}

const Lab *lab_at(int i)
{
    return &all_labs[i];
}

bool lab_is_bonus(const Lab *lab)
{
    enum { LAST_OF_THE_HUNDRED = 11 };
    return lab->number > LAST_OF_THE_HUNDRED;
}

const Lab *lab_of(int number)
{
    for (int i = 0; i < lab_count(); i++)
        if (all_labs[i].number == number)
            return &all_labs[i];
    return NULL;
}

Check check_of_key(const char *key, size_t length)
{
    int check = 0;
    while (check < CHECKS && (strlen(check_keys[check]) != length || strncmp(check_keys[check], key, length)))
        check++;
    return (Check)check;
}

void lab_amend(int number, const char *layouts, const char *checks)
{
    Lab *lab = (Lab *)lab_of(number);
    if (layouts)
        lab->layouts = strdup(layouts);
    if (checks)
        lab->checks = strdup(checks);
}

void lab_set_points(int number, const char *key, int points)
{
    char checks[512] = "";
    for (const char *at = lab_of(number)->checks; *at;) {
        size_t name = strcspn(at, ":"), all = strcspn(at, " "), used = strlen(checks);
        if (strlen(key) == name && !strncmp(at, key, name))
            snprintf(checks + used, sizeof checks - used, "%s%s:%d", used ? " " : "", key, points);
        else
            snprintf(checks + used, sizeof checks - used, "%s%.*s", used ? " " : "", (int)all, at);
        at += all + strspn(at + all, " ");
    }
    lab_amend(number, NULL, checks);
}

int lab_points(const Lab *lab, Check check)
{
    if (check >= CHECKS)
        return 0;
    size_t length = strlen(check_keys[check]);
    for (const char *at = lab->checks; (at = strstr(at, check_keys[check])); at += length)
        if ((at == lab->checks || at[-1] == ' ') && at[length] == ':')
            return atoi(at + length + 1);
    return 0;
}

static bool ends_with(const char *name, const char *end, size_t length)
{
    size_t all = strlen(name);
    return all >= length && !strncmp(name + all - length, end, length) &&
           (all == length || name[all - length - 1] == '.');
}

int lab_cuts(const Lab *lab, const char *parameter)
{
    for (const char *at = lab->cuts; *at;) {
        size_t name = strcspn(at, ":"), rest = strcspn(at + name, " ");
        if (ends_with(parameter, at, name)) {
            int set = 0;
            for (const char *digit = at + name; digit < at + name + rest; digit++)
                set |= *digit == '0' ? CUT_0 : *digit == '1' ? CUT_1 : 0;
            return set;
        }
        at += name + rest + (at[name + rest] == ' ');
    }
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
