#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits)
{
    const Order order = reference_order(classes);
    for (int64_t r = 0; r < rows; r++, logits += classes, dlogits += classes) {
        real highest = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            if (logits[c] > highest)
                highest = logits[c];
        for (int64_t n = 0, c = order.first; n < classes; n++, c = order_next(order, c))
            sum = rounded(sum + reference_inexact(exp(rounded(logits[c] - highest))));
        losses[r] = rounded(reference_inexact(log(sum)) - rounded(logits[labels[r]] - highest));
        for (int64_t c = 0; c < classes; c++) {
            real probability = rounded(reference_inexact(exp(rounded(logits[c] - highest))) / sum);
            dlogits[c] = c == labels[r] ? rounded(probability - 1) : probability;
        }
    }
}
