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
} Option;

/** Reads the arguments after the program's name. `known` ends with an option without a name.
 *  Returns false with `problem` on an unknown option or an invalid value. */
bool options_read(const Option *known, int argc, char **argv, Problem *problem);

/** Sets a problem such as "LAYERS cannot be 'x'", and returns false. The hint says that the option
 *  takes `expected`, which the caller has translated. */
bool option_refused(Problem *problem, const char *name, const char *value, const char *expected);
