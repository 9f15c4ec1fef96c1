/* The peak of a core. */
#include "backend/cpu/peak.h"

#include <math.h>

#include "backend/backend.h"
#include "base/clock.h"

double backend_peak(void)
{
    enum { TIMES = 31 }; /* of about 50 us: another program rarely interrupts all of them */
    static float numbers[CHAINS * LANES];
    double least = INFINITY;
    for (int i = 0; i < TIMES; i++) {
        const double begin = clock_now();
        multiply_add(numbers);
        least = fmin(least, clock_now() - begin);
    }
    return PEAK_OPERATIONS / least;
}
