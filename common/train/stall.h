/** @file
 * A run in which nothing moves says so: ranks that wait for each other for ever are silent by themselves.
 */
#pragma once

/** Something has come to its end: a step, a batch of an evaluation. If nothing else does for `patience` seconds, or ten times as long
 *  as the longest took so far, stderr has a line about it, once. The run goes on: it may just be slow. */
void stall_moved(int patience);

/** Nothing is expected from here on. */
void stall_end(void);
