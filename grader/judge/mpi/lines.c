/* Source lines of addresses in the runner. */

#include "grader/judge/mpi/recorded.h"

enum { KEPT = 256 }; /* a lab makes calls on fewer lines; more are nonsense in a record */

/* The lines found so far. The judge reads the calls of one runner at a time, in which the same
 * addresses occur again and again. */
static struct {
    char program[512]; /* "" before the first */
    const void *address[KEPT];
    char line[KEPT][64];
    int count;
} lines;

void lines_of(const char *runner)
{
    snprintf(lines.program, sizeof lines.program, "%s", runner);
    lines.count = 0;
}

static void ask(const void *address, char line[64])
{
    char command[1024], text[1024];
    line[0] = '\0';
    snprintf(command, sizeof command, "addr2line -e '%s' 0x%jx 2>/dev/null", lines.program,
             (uintmax_t)((uintptr_t)address - 1));
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return;
    if (fgets(text, sizeof text, pipe) && text[0] != '?') {
        const char *slash = strrchr(text, '/'),
                   *name = slash ? slash + 1 : text; /* folders may contain blanks */
        snprintf(line, 64, "%.*s", (int)strcspn(name, " \n"), name);
    }
    pclose(pipe);
}

const char *line_of(const void *address)
{
    if (!address || !lines.program[0])
        return "";
    for (int i = 0; i < lines.count; i++)
        if (lines.address[i] == address)
            return lines.line[i];
    if (lines.count == KEPT)
        return "";
    const int i = lines.count++;
    lines.address[i] = address;
    ask(address, lines.line[i]);
    return lines.line[i];
}
