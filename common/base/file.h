/** @file
 * Is it a file that stands at a path? Devices, FIFOs and folders are none: they have no end, or no contents.
 */
#pragma once

/** Why no file can be read from this path or put there, in the reader's language: it has no name, a folder stands there, or a
 *  device, a FIFO or a socket. NULL where there is a file, or nothing yet. */
const char *file_obstacle(const char *path);

/** Opens a file for reading, and waits for nobody.
 *  @return its descriptor, the caller's; or -1 with `reason`, in the reader's language */
int file_open(const char *path, const char **reason);
