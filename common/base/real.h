/** @file
 * The type of a tensor's numbers: single precision for training and grading; double precision for
 * the judge and some tests, which are built with -DBALISE_DOUBLE and the reference backend.
 */
#pragma once

#ifdef BALISE_DOUBLE
/** An element of a tensor. */
typedef double real;
#else
/** An element of a tensor. */
typedef float real;
#endif
