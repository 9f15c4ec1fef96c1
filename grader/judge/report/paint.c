/* The medium of a report: how wide it is, and what colours it has. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "grader/judge/report/verdict.h"

enum { NARROWEST = 40, WIDEST = 100 };
const Page plain_page = {.columns = WIDEST};

Page page_of(FILE *out)
{
    Page page = plain_page;
    struct winsize size = {0};
    if (!isatty(fileno(out)))
        return page;
    page.colour = !getenv("NO_COLOR");
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0) /* NOLINT(cppcoreguidelines-pro-type-vararg) */
        page.columns = size.ws_col < NARROWEST ? NARROWEST
                       : size.ws_col > WIDEST  ? WIDEST
                                               : size.ws_col;
    return page;
}

Paint paint_of(Page page)
{
    return page.colour
               ? (Paint){"\033[32m", "\033[31m", "\033[33m", "\033[2m", "\033[1m", "\033[0m"}
               : (Paint){"", "", "", "", "", ""};
}
