/** @file
 * Source lines of addresses in the runner.
 */
#pragma once

/** The runner whose addresses are asked for from now on. */
void lines_of(const char *runner);

/** "attention.c:41", or an empty string. */
void line_of(const void *address, char line[64]);
