/** @file
 * Makes untrusted text printable: output of students' programs, and names from code or files.
 */
#pragma once

/** Makes a text printable, in place. Bytes that are not UTF-8, control characters and invisible
 *  characters, such as those that reverse the direction of text, become '?'. Messages of compilers
 *  need this too, because they quote the student's file. */
void clean_text(char *text);

/** Like clean_text(), for a text within a line: newlines and tabs become '?' too. */
void clean_line(char *text);

/** A name in a form that can be printed. */
typedef struct CleanName {
    char text[128]; /**< its beginning, with a zero byte at the end */
} CleanName;

/** A name from someone else's file, for a message: cut if it is long, and cleaned as by
 *  clean_line(). */
CleanName clean_name(const char *name);
