/** @file
 * Checks and opens regular files. Devices, FIFOs, sockets and folders are rejected: they have no
 * end, or no contents.
 */
#pragma once

/** Returns why no file can be read from this path or written to it, in the reader's language: the
 *  path has no file name, or names a folder, a device, a FIFO or a socket. Returns NULL if there is
 *  a regular file, or nothing yet. */
const char *file_obstacle(const char *path);

/** Opens a regular file for reading. Never blocks, even on a FIFO.
 *  @return its descriptor, which the caller closes; or -1 with `reason`, in the reader's
 *  language */
int file_open(const char *path, const char **reason);
/** Like file_open(), but reading begins after a byte order mark, if the file has one. */
int file_open_text(const char *path, const char **reason);
