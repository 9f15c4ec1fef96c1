/** @file
 * Where in a submission the labs are.
 */
#pragma once

#include "grader/gradebook/files.h"

enum { MOST_LABS = 64 }; /**< that a kit can have */

/** Which file of a submission is which lab. */
typedef struct Layout {
    const File *lab[MOST_LABS]; /**< by lab_at(); NULL where there is none */
    char root
        [PATH_SIZE]; /**< the folder that labs/ stands in, "" or "ada/": where a manifest would be */
} Layout;

/** Finds labs/NN-slug/FILE.c, also with folders around labs/, and NN-slug/FILE.c without labs/.
 *  @return false with the reason in `problem->what` where that is not unambiguous */
bool find_labs(const Files *files, Layout *layout, Problem *problem);
