/* A hand-in's manifest, student names and checksums. */
#include "grader/gradebook/manifest.h"

#include <string.h>
#include <utf8proc.h>
#include <xxhash.h>

#include "base/language.h"
#include "grader/judge/report/verdict.h"

void checksum_of(const void *bytes, size_t size, char text[CHECKSUM_SIZE])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    snprintf(text, CHECKSUM_SIZE, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

static bool is_letter_or_digit(utf8proc_int32_t c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           category == UTF8PROC_CATEGORY_ND;
}

static bool may_stand_between(utf8proc_int32_t c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || c == 0x2019 ||
           (c < 128 && strchr(" -_.'", (int)c));
}

bool is_name(const char *name)
{
    int characters = 0;
    if (strlen(name) >= NAME_BYTES)
        return false;
    for (const char *at = name; *at; characters++) {
        utf8proc_int32_t c;
        utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &c);
        if (length <= 0 || (!is_letter_or_digit(c) && (characters == 0 || !may_stand_between(c))))
            return false;
        at += length;
    }
    return characters > 0 && characters <= 64;
}

static const File *find(const Files *files, const char *prefix, const char *path)
{
    char whole[2 * PATH_SIZE];
    snprintf(whole, sizeof whole, "%s%s", prefix, path);
    for (int i = 0; i < files->count; i++)
        if (!strcmp(files->file[i].path, whole))
            return &files->file[i];
    return NULL;
}

static void note_what_differs(const Files *files, const char *prefix, json_t *listed,
                              Manifest *manifest)
{
    size_t i;
    json_t *item;
    json_array_foreach(listed, i, item)
    {
        char checksum[CHECKSUM_SIZE];
        const char *path = json_string_value(json_object_get(item, "path"));
        const char *expected = json_string_value(json_object_get(item, "xxh3"));
        const File *file = path ? find(files, prefix, path) : NULL;
        if (!file || !file->bytes || !expected)
            continue;
        checksum_of(file->bytes, file->size, checksum);
        size_t used = strlen(manifest->remark);
        if (strcmp(checksum, expected) && used < sizeof manifest->remark - 100)
            snprintf(manifest->remark + used, sizeof manifest->remark - used,
                     _("%s%.80s does not match its checksum in the manifest"), used ? _("; ") : "",
                     path);
    }
}

static void put_number(FILE *out, const json_t *number)
{
    if (json_is_number(number))
        fprintf(out, "%.15g", json_number_value(number));
}

/* Reads only numbers, and only for existing labs, because anybody may have written the manifest.
 * `text` is all zeros on entry. */
static void read_predictions(const json_t *predictions, char text[PREDICTIONS_SIZE])
{
    FILE *out = fmemopen(text, PREDICTIONS_SIZE - 1, "w");
    for (int i = 0; i < lab_count(); i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", lab_at(i)->number);
        const json_t *lab = json_object_get(predictions, number);
        const json_t *predicted = json_object_get(lab, "predicted");
        const json_t *measured = json_object_get(lab, "measured");
        if (!json_is_number(predicted) && !json_is_number(measured))
            continue;
        fprintf(out, "%s%s=", ftell(out) ? " " : "", number);
        put_number(out, predicted);
        fputc('/', out);
        put_number(out, measured);
        fputs(json_is_true(json_object_get(lab, "late")) ? "*" : "", out);
    }
    fclose(out);
}

Manifest manifest_of(const Files *files, const char *prefix)
{
    Manifest manifest = {0};
    const File *file = find(files, prefix, MANIFEST_NAME);
    if (!file || !file->bytes)
        return manifest;
    json_t *json = json_loadb(file->bytes, file->size, JSON_REJECT_DUPLICATES, NULL);
    const char *name = "", *kit = "", *created = "";
    if (json_unpack(json, "{s:s, s:s, s?s}", "name", &name, "kit", &kit, "created", &created) !=
            0 ||
        !is_name(name))
        snprintf(manifest.remark, sizeof manifest.remark, "%s", _("its manifest is invalid"));
    else {
        snprintf(manifest.name, sizeof manifest.name, "%s", name);
        snprintf(manifest.created, sizeof manifest.created, "%s", created);
        if (strcmp(kit, BALISE_VERSION))
            snprintf(manifest.remark, sizeof manifest.remark,
                     _("made with version %.20s of the kit, graded with %s: points, start files or "
                       "balise.h differ"),
                     kit, BALISE_VERSION);
        note_what_differs(files, prefix, json_object_get(json, "files"), &manifest);
        read_predictions(json_object_get(json, "predictions"), manifest.predictions);
    }
    clean_text(manifest.remark);
    clean_text(manifest.created);
    json_decref(json);
    return manifest;
}
