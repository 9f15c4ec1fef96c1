/** @file
 * The type of a tensor's numbers: single precision in everything that trains and is graded; double precision
 * in the judge and in the tests, which are built with -DBALISE_DOUBLE and the reference backend.
 */
#pragma once

#ifdef BALISE_DOUBLE
/** A number of a tensor. */
typedef double real;
#else
/** A number of a tensor. */
typedef float real;
#endif
