/** @file
 * The type of a tensor's numbers: single precision in everything that trains and is graded; double precision
 * in the judge and in the tests, which are built with -DBALISE_DOUBLE and the reference backend.
 */
#ifndef BALISE_BASE_REAL_H
#define BALISE_BASE_REAL_H

#ifdef BALISE_DOUBLE
/** A number of a tensor. */
typedef double real;
#else
/** A number of a tensor. */
typedef float real;
#endif

#endif
