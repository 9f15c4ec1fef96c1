/** @file
 * Makes what students' programs print and name printable.
 */
#pragma once

/** Makes a text printable, in place: bytes that are not UTF-8, control characters and invisible ones
 *  that turn the direction of text become '?'. Compilers quote what is in a student's file. */
void clean_text(char *text);

/** Like clean_text(), for a text within a line: newlines and tabs become '?' too. */
void clean_line(char *text);
