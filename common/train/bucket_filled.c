/* The bucket_filled() of programs without lab 14: the last pass completes the gradients. In a file of
 * its own, so that the linker leads calls to lab 14's through the recorder (grader/grader.mk). */
#include "balise.h"

__attribute__((weak)) void bucket_filled(Bucket *bucket, int pass, int passes, const Mesh *mesh)
{
    const int passes_left = passes - 1 - pass;
    if (passes_left == 0)
        bucket_ready(bucket, mesh);
}
