/* Which of the labs that a program may lack it has. */
#include "base/optional_labs.h"

bool has_lab(int lab)
{
    switch (lab) {
    case 15:
        return ring_reduce_scatter && ring_all_gather;
    case 16:
        return average_is_due && average_weights;
    case 17:
        return optimizer_part && sharded_step;
    case 18:
        return sequence_block_forward && sum_norm_gradients;
    default:
        return recompute_forward && recompute_backward;
    }
}
