/** @file
 * A folder for a test, and the models that come with the tests.
 */
#pragma once

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pretrained/hugging_face.h"

/** The folder of the test that runs. */
static char folder[64];

/** A file of one of the models. */
static Path model_path(const char *model, const char *file)
{
    const char *root = getenv("ROOT");
    const Path models = path_in(root ? root : ".", "common/pretrained/tests/models");
    return path_in(path_in(models.text, model).text, file);
}

/** Before each test. */
static void begin(void)
{
    strcpy(folder, "/tmp/balise-hugging-face-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/** After each test. */
static void end(void)
{
    unlink(path_in(folder, "config.json").text);
    unlink(path_in(folder, "model.safetensors").text);
    rmdir(folder);
}
