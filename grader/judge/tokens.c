#include "grader/judge/tokens.h"

#include <ctype.h>
#include <stdio.h>

/* The next character that is neither in a comment nor white space. */
static int next_character(FILE *file)
{
    for (;;) {
        int c = getc(file);
        if (c == '/') {
            int next = getc(file);
            if (next == '/') {
                while (next != '\n' && next != EOF)
                    next = getc(file);
            } else if (next == '*') {
                int before = 0;
                while ((next = getc(file)) != EOF && !(before == '*' && next == '/'))
                    before = next;
            } else {
                ungetc(next, file);
                return c;
            }
        } else if (c == EOF || !isspace(c)) {
            return c;
        }
    }
}

bool same_tokens(const char *path_a, const char *path_b)
{
    FILE *a = fopen(path_a, "r"), *b = fopen(path_b, "r");
    bool same = a && b;
    for (int c = 0; same && c != EOF;) {
        c = next_character(a);
        same = c == next_character(b);
    }
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    return same;
}
