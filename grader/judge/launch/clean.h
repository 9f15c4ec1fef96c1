/** @file
 * Makes what students' programs print and name printable.
 */
#pragma once

/** Makes a text printable, in place. Bytes that are not UTF-8, control characters and invisible
 *  characters, such as those that reverse the direction of text, become '?'. Messages of compilers
 *  need this too, because they quote the student's file. */
void clean_text(char *text);

/** Like clean_text(), for a text within a line: newlines and tabs become '?' too. */
void clean_line(char *text);
