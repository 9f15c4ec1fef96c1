/* Do two C files, or a function in both, have the same tokens? */
#include "grader/judge/tokens.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The text from the function's name to the end of its body, without comments and white space; NULL
 * if it is not defined. After the parameters of a call or a declaration there is no brace. */
static char *definition(const char *path, const char *name)
{
    char *text = NULL, *found = NULL;
    size_t size = 0, length = strlen(name);
    FILE *file = fopen(path, "r"), *stripped = file ? open_memstream(&text, &size) : NULL;
    for (int c = 0; stripped && (c = next_character(file)) != EOF;)
        putc(c, stripped);
    if (stripped)
        fclose(stripped);
    if (file)
        fclose(file);
    for (char *at = text; !found && at && (at = strstr(at, name)); at += length) {
        size_t parameters = at[length] == '(' ? strcspn(at + length, ")") : 0;
        char *end = at + length + parameters;
        if (!parameters || strncmp(end, "){", 2) != 0)
            continue;
        int depth = 0;
        while (*++end && (depth += (*end == '{') - (*end == '}')))
            ;
        found = strndup(at, (size_t)(end - at));
    }
    free(text);
    return found;
}

bool same_function(const char *path_a, const char *path_b, const char *name)
{
    char *a = definition(path_a, name), *b = definition(path_b, name);
    bool same = a && b && !strcmp(a, b);
    free(a);
    free(b);
    return same;
}
