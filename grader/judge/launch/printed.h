/** @file
 * What the ranks of a lab print: kept beside its runner, and shown as what it is, never as words of the grader's.
 */
#pragma once

enum { LOG_PATH = 600 }; /**< bytes of its path */

/** Where it is kept. All launches of a lab print into one file. */
void printed_path(const char *runner, char path[LOG_PATH]);

/** To be called before the first launch of a lab. */
void printed_forget(const char *runner);
