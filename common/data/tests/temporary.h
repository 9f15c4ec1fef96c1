/** @file
 * A folder for each test, removed afterwards, and files in it.
 */
#pragma once

#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static inline void folder_up(void)
{
    strcpy(folder, "/tmp/balise-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_all(const char *path)
{
    DIR *entries = opendir(path);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char below[512];
        bool fits = snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below;
        if (fits && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_all(below);
    }
    if (entries)
        closedir(entries);
    remove(path);
}

static inline void folder_down(void)
{
    remove_all(folder);
}

/** The path of `name` in the folder; the last sixteen results stay valid. */
static inline char *path_of(const char *name)
{
    static char paths[16][256];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline char *write_bytes(const char *name, const void *bytes, size_t length)
{
    char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static inline char *write_text(const char *name, const char *text)
{
    return write_bytes(name, text, strlen(text));
}

#define ASSERT_CONTAINS(text, part)                                                                \
    ck_assert_msg(strstr((text), (part)) != NULL, "'%s' has no '%s'", (text), (part))
