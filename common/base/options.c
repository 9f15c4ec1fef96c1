/* The options of a program, parsed. */
#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"

const char *const options_hint = N_("make help lists the variables of make train and make story");

bool option_refused(Problem *problem, const char *name, const char *value, const char *expected)
{
    char hint[256], setting[64]; /* make train HIDDEN_DIM=... means --hidden-dim */
    size_t length = 0;
    for (; name[length] && length < sizeof setting - 1; length++)
        setting[length] = name[length] == '-' ? '_' : (char)toupper((unsigned char)name[length]);
    setting[length] = '\0';
    snprintf(hint, sizeof hint, _("it takes %s"), expected);
    return problem_set(problem, NULL, hint, "%s cannot be '%.100s'", setting, value);
}

static bool read_number(const Option *option, const char *value, double *number, Problem *problem)
{
    char *end, expected[128];
    bool real_number = option->kind == OPTION_REAL;
    errno = 0;
    *number = strtod(value, &end);
    bool good = *value && !*end && !errno && *number >= option->low && *number <= option->high &&
                (real_number || *number == floor(*number));
    snprintf(expected, sizeof expected,
             real_number ? _("a number from %.15g to %.15g")
                         : _("a whole number from %.0f to %.0f"),
             option->low, option->high);
    return good || option_refused(problem, option->name, value, expected);
}

static bool read_bytes(const char *name, const char *value, int64_t *bytes, Problem *problem)
{
    char *end;
    double number = strtod(value, &end);
    const char *units = "KMGT", *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    bool good =
        end != value && number > 0 && (!*end || (isalpha((unsigned char)*end) && unit && !end[1]));
    for (const char *u = units; good && unit && u <= unit; u++)
        number *= 1024;
    good = good && number >= 1 && number < 0x1p63;
    *bytes = good ? (int64_t)number : 0;
    return good || option_refused(problem, name, value, _("a size such as 800M or 6G"));
}

static bool read_seed(const Option *option, const char *value, Problem *problem)
{
    char *end, expected[128];
    errno = 0;
    const unsigned long long seed = strtoull(value, &end, 10);
    *(uint64_t *)option->target = seed;
    snprintf(expected, sizeof expected, _("a whole number from %.0f to %.0f"), option->low,
             option->high);
    return (isdigit((unsigned char)*value) && !*end && !errno && (double)seed <= option->high) ||
           option_refused(problem, option->name, value, expected);
}

static bool read_word(const Option *option, const char *value, Problem *problem)
{
    char expected[256] = "";
    int position = 0;
    for (const char *word = option->words; *word; position++) {
        const size_t length = strcspn(word, "|"), used = strlen(expected);
        if (strlen(value) == length && !strncmp(word, value, length)) {
            *(int *)option->target = position;
            return true;
        }
        const char *next = word + length + (word[length] == '|');
        snprintf(expected + used, sizeof expected - used, "%s%.*s",
                 position == 0 ? ""
                 : *next       ? ", "
                               : _(" or "),
                 (int)length, word);
        word = next;
    }
    return option_refused(problem, option->name, value, expected);
}

static bool read_option(const Option *option, const char *value, Problem *problem)
{
    double number = 0;
    switch (option->kind) {
    case OPTION_TEXT:
        *(const char **)option->target = value;
        return true;
    case OPTION_BYTES:
        return read_bytes(option->name, value, option->target, problem);
    case OPTION_SEED:
        return read_seed(option, value, problem);
    case OPTION_WORD:
        return read_word(option, value, problem);
    case OPTION_READ:
        return option->read(value, option->target, problem);
    default:
        break;
    }
    if (!read_number(option, value, &number, problem))
        return false;
    if (option->kind == OPTION_INTEGER)
        *(int *)option->target = (int)number;
    else if (option->kind == OPTION_LONG)
        *(int64_t *)option->target = (int64_t)number;
    else
        *(double *)option->target = number;
    return true;
}

/* The option that the argument --NAME or --NAME=VALUE names. */
static const Option *find(const Option *known, const char *argument)
{
    const char *name = argument + 2;
    const size_t length = strcspn(name, "=");
    while (known->name && (strncmp(known->name, name, length) != 0 || known->name[length]))
        known++;
    return known->name ? known : NULL;
}

bool options_read(const Option *known, int argc, char **argv, const char *hint, Problem *problem)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            return problem_set(problem, NULL, hint, "'%.100s' is not an option", argv[i]);
        const Option *option = find(known, argv[i]);
        if (!option)
            return problem_set(problem, NULL, hint, "unknown option '%.100s'", argv[i]);
        const char *value = strchr(argv[i], '=');
        if (option->kind == OPTION_FLAG) {
            *(bool *)option->target = true;
            continue;
        }
        if (!value && i + 1 == argc)
            return problem_set(problem, NULL, hint, "%s needs a value", argv[i]);
        if (!read_option(option, value ? value + 1 : argv[++i], problem))
            return false;
    }
    return true;
}
