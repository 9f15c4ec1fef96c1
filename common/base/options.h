/** @file
 * The options of a program. make turns its variables NAME=VALUE into options --name VALUE.
 */
#pragma once

#include <stdint.h>

#include "base/problem.h"

/** The type of an option's value, and of the variable that `target` points to. */
typedef enum OptionKind {
    OPTION_TEXT,    /**< const char *: the argument itself */
    OPTION_INTEGER, /**< int */
    OPTION_LONG,    /**< int64_t */
    OPTION_SEED,    /**< uint64_t */
    OPTION_REAL,    /**< double */
    OPTION_BYTES,   /**< int64_t, written as 800M or 6G */
    OPTION_WORD,    /**< int or an enum: the position of the value among `words` */
    OPTION_FLAG,    /**< bool: true; a flag has no value */
    OPTION_READ,    /**< any type: `read` converts the value */
} OptionKind;

/** An option that a program accepts. */
typedef struct Option {
    const char *name; /**< "hidden-dim": --hidden-dim VALUE, make's HIDDEN_DIM=VALUE */
    OptionKind kind;  /**< the type of its value */
    void *target;     /**< where the value is stored */
    double low, high; /**< the allowed range of a number */
    /** for OPTION_READ: stores the value, or returns option_refused() */
    bool (*read)(const char *value, void *target, Problem *problem);
    const char *words; /**< for OPTION_WORD: "1f1b|gpipe" */
} Option;

/** A row of a table of options whose value is one of this kind. */
#define OPTION(name, kind, target, low, high, read, words)                                         \
    {                                                                                              \
        name, kind, target, low, high, read, words                                                 \
    }
/** A row: the text itself. */
#define TEXT_OPTION(name, target) OPTION(name, OPTION_TEXT, target, 0, 0, NULL, NULL)
/** A row: a number of bytes. */
#define BYTES_OPTION(name, target) OPTION(name, OPTION_BYTES, target, 0, 0, NULL, NULL)
/** A row: no value; the option sets a bool. */
#define FLAG_OPTION(name, target) OPTION(name, OPTION_FLAG, target, 0, 0, NULL, NULL)
/** A row: one of these words. */
#define WORD_OPTION(name, target, words) OPTION(name, OPTION_WORD, target, 0, 0, NULL, words)
/** A row: what this function reads. */
#define READ_OPTION(name, target, read) OPTION(name, OPTION_READ, target, 0, 0, read, NULL)
/** A row: a number from `low` to `high`, of the kind that follows from the target's type. */
#define NUMBER_OPTION(name, target, low, high)                                                     \
    OPTION(name,                                                                                   \
           _Generic(target, int *: OPTION_INTEGER, int64_t *: OPTION_LONG,                         \
                    uint64_t *: OPTION_SEED, double *: OPTION_REAL),                               \
           target, low, high, NULL, NULL)

/** The hint for the programs of make train, make story and make run. */
extern const char *const options_hint;

/** Reads the arguments after the program's name, --NAME VALUE or --NAME=VALUE. `known` ends with an
 *  option without a name; `hint` says how the program is called. Returns false with `problem` on an
 *  unknown option or an invalid value. */
bool options_read(const Option *known, int argc, char **argv, const char *hint, Problem *problem);

/** Sets a problem such as "LAYERS cannot be 'x'", and returns false. The hint says that the option
 *  takes `expected`, which the caller has translated. */
bool option_refused(Problem *problem, const char *name, const char *value, const char *expected);
