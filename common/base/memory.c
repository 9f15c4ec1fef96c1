/* Counts the memory of this process's tensors, and prints the error when no more is available. */
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"

static MemoryUse use;
static int64_t rounded;

void memory_begin(void)
{
    use = (MemoryUse){0};
    rounded = 0;
}

void memory_begin_peak(void)
{
    use.peak_total = use.total;
    memcpy(use.peak, use.now, sizeof use.peak);
}

void memory_holds(Category category, int64_t bytes)
{
    use.now[category] += bytes;
    use.total += bytes;
    if (use.total > use.peak_total)
        memory_begin_peak();
}

MemoryUse memory_use(void)
{
    return use;
}

void memory_holds_rounded(int64_t bytes)
{
    rounded += bytes;
}

/* Shows tenths below 1 MB. */
static const char *megabytes(int64_t bytes, char text[32])
{
    const double mb = (double)bytes / 1e6;
    snprintf(text, 32, mb > 0 && mb < 1 ? _("%.1f MB") : _("%.0f MB"), mb);
    return text;
}

_Noreturn void memory_refuse(const char *place, int64_t bytes, Category category, const char *which,
                             const char *more)
{
    static const char *const names[] = {N_("weights"), N_("gradients"), N_("optimiser state"),
                                        N_("activations")};
    char text[CATEGORIES + 1][32], hint[384];
    snprintf(hint, sizeof hint, "%s%s%s%s", _("split the model over more ranks (TP)"),
             category == ACTIVATIONS || use.now[ACTIVATIONS] > 0
                 ? _(", choose a smaller BATCH_SIZE or SEQ")
                 : "",
             rounded > 0 ? _(", or AMP=off, which keeps no copy of the weights in 16 bits") : "",
             more);
    misuse(hint,
           "this rank's tensors do not fit in %s: %s more were requested (%s%s%s) in addition to "
           "weights %s, gradients %s, optimiser state %s, activations %s",
           place, megabytes(bytes, text[CATEGORIES]), _(names[category]), which[0] ? _(": ") : "",
           which, megabytes(use.now[WEIGHTS], text[0]), megabytes(use.now[GRADIENTS], text[1]),
           megabytes(use.now[OPTIMISER], text[2]), megabytes(use.now[ACTIVATIONS], text[3]));
}
