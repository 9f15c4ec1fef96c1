/* The tensors of a folder in Hugging Face's format: one file, or several and an index. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/language.h"
#include "checkpoint/checkpoint.h"

static const char one_name[] = "model.safetensors", index_name[] = "model.safetensors.index.json";

/* Opens the file unless it is open. Returns NULL with `problem` on failure. */
static Safetensors *opened(SafetensorsFolder *all, const char *path, Problem *problem)
{
    for (int i = 0; i < all->count; i++)
        if (!strcmp(all->file[i]->path, path))
            return all->file[i];
    Safetensors *file = safetensors_open(path, problem);
    all->file = realloc(all->file, (size_t)(all->count + 1) * sizeof *all->file);
    if (file)
        all->file[all->count++] = file;
    return file;
}

static bool wrong_index(const char *path, Problem *problem, const char *why)
{
    return problem_set(problem, path,
                       "use another copy of the folder: the index and all files that it names",
                       "the index of the tensors' files cannot be used: %s", why);
}

/* Opens the file of each tensor of the index. */
static bool open_indexed(SafetensorsFolder *all, const char *folder, const char *path,
                         const json_t *index, Problem *problem)
{
    json_t *map = json_object_get(index, "weight_map"), *entry;
    const char *name;
    if (json_object_size(map) == 0)
        return wrong_index(path, problem, _("it has no weight_map"));
    json_object_foreach(map, name, entry)
    {
        const char *in = json_string_value(entry);
        if (!in || !*in || strchr(in, '/') || strcmp(in, clean_name(in).text) != 0)
            return wrong_index(
                path, problem,
                _("weight_map must give each tensor the name of a file in this folder"));
        const Safetensors *file = opened(all, path_in(folder, in).text, problem);
        if (!file)
            return false;
        if (!safetensors_find(file, name))
            return problem_set(problem, file->path,
                               "use another copy of the folder: the index and all files that it "
                               "names",
                               "%s is missing: the index says that this file has it",
                               clean_name(name).text);
    }
    return true;
}

static bool open_all(SafetensorsFolder *all, const char *folder, Problem *problem)
{
    const Path one = path_in(folder, one_name), path = path_in(folder, index_name);
    char reason[REASON_SIZE];
    if (access(one.text, F_OK) == 0)
        return opened(all, one.text, problem);
    if (access(path.text, F_OK))
        return problem_set(problem, folder,
                           N_("the kit reads only safetensors: write them with Hugging Face's "
                              "save_pretrained(FOLDER, safe_serialization=True)"),
                           "there is no model.safetensors in this folder");
    json_t *index = json_from_file(path.text, reason);
    const bool good = index ? open_indexed(all, folder, path.text, index, problem)
                            : wrong_index(path.text, problem, reason);
    json_decref(index);
    return good;
}

SafetensorsFolder *safetensors_folder_open(const char *folder, Problem *problem)
{
    SafetensorsFolder *all = calloc(1, sizeof *all);
    if (open_all(all, folder, problem))
        return all;
    safetensors_folder_close(all);
    return NULL;
}

void safetensors_folder_close(SafetensorsFolder *all)
{
    for (int i = 0; i < all->count; i++)
        safetensors_close(all->file[i]);
    free(all->file);
    free(all);
}

const SafeTensor *safetensors_folder_find(const SafetensorsFolder *all, const char *name,
                                          const Safetensors **file)
{
    for (int i = 0; i < all->count; i++) {
        const SafeTensor *tensor = safetensors_find(all->file[i], name);
        if (tensor) {
            *file = all->file[i];
            return tensor;
        }
    }
    return NULL;
}
