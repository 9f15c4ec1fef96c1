/** @file
 * The type of a tensor's numbers: single precision for training and grading; double precision for
 * the judge and some tests, which are built with -DBALISE_DOUBLE and the reference backend.
 */
#pragma once

#ifdef BALISE_DOUBLE
/** A number of a tensor. */
typedef double real;
#else
/** A number of a tensor. */
typedef float real;
#endif
