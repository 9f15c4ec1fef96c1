/** @file
 * The device files of GPUs: those of NVIDIA's driver, and under WSL2 the one of Windows' driver.
 */
#pragma once

#include <sys/types.h>

enum {
    MAX_GPU_FILES = 48, /**< device files of a machine */
    MAX_GPU_GROUPS = 8, /**< groups that they belong to */
};

/** What a process needs to see of a machine's GPUs. */
typedef struct Gpus {
    char path[MAX_GPU_FILES][64];  /**< where they are */
    char shown[MAX_GPU_FILES][64]; /**< where a driver looks for them: in /dev */
    int count;                     /**< of the files */
    gid_t group
        [MAX_GPU_GROUPS]; /**< those whom files that are not everybody's belong to: video, render */
    int groups;           /**< how many there are */
} Gpus;

/** The device files in `folder`: "/dev", or in tests another one. */
Gpus gpus_of(const char *folder);
