/* build/hand-in: packs a student's labs into one archive, with a manifest. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/language.h"
#include "base/options.h"
#include "base/replacement.h"
#include "grader/gradebook/manifest.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/tokens.h"

typedef struct HandIn {
    const char *name, *labs, *predictions, *out;
    Replacement *file;
    struct archive *archive; /* open for writing */
    json_t *files, *not_started, *missing;
} HandIn;

static _Noreturn void stop_packing(const HandIn *h, const Problem *problem)
{
    fflush(stdout);
    if (h->file)
        replacement_drop(h->file);
    problem_print(stderr, problem);
    exit(2);
}

static const char *const where_to = N_("name a file in an existing, writable folder (OUT=...)"),
                         *const not_written = N_("the archive cannot be written: %s");

/* "Ada " would be a different student from "Ada". */
static const char *without_blanks_around(const char *text)
{
    static char name[4 * NAME_BYTES];
    snprintf(name, sizeof name, "%s", text + strspn(text, " "));
    for (size_t length = strlen(name); length > 0 && name[length - 1] == ' ';)
        name[--length] = '\0';
    return name;
}

static HandIn options_of(int argc, char **argv)
{
    HandIn h = {.name = "", .labs = "labs", .predictions = "", .out = ""};
    const Option known[] = {
        TEXT_OPTION("name", &h.name),
        TEXT_OPTION("labs", &h.labs),
        TEXT_OPTION("predictions", &h.predictions),
        TEXT_OPTION("out", &h.out),
        {0},
    };
    Problem problem;
    if (!options_read(known, argc, argv, "make hand-in NAME=\"Ada Lovelace\"", &problem))
        stop_packing(&h, &problem);
    h.name = without_blanks_around(h.name);
    if (!*h.name) {
        problem_set(&problem, NULL, "make hand-in NAME=\"Ada Lovelace\"", "NAME is missing");
        stop_packing(&h, &problem);
    }
    if (!is_name(h.name)) {
        problem_set(&problem, NULL,
                    "letters, digits, spaces and - _ . ' between them, at most 64: make hand-in "
                    "NAME=\"Ada Lovelace\"",
                    "this is not a valid NAME");
        stop_packing(&h, &problem);
    }
    return h;
}

static void put_file(HandIn *h, const char *path, const char *bytes, size_t size)
{
    struct archive_entry *entry = archive_entry_new();
    Problem problem;
    archive_entry_set_pathname(entry, path);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, time(NULL), 0);
    if (archive_write_header(h->archive, entry) != ARCHIVE_OK ||
        archive_write_data(h->archive, bytes, size) != (la_ssize_t)size) {
        const char *why = archive_error_string(h->archive);
        problem_set(&problem, h->out, where_to, not_written, why ? why : _("unknown reason"));
        stop_packing(h, &problem);
    }
    archive_entry_free(entry);
}

/* The student's file of a lab, or NULL. Rejects a file that cannot be read, or that the gradebook
 * would refuse. */
static char *read_source(const HandIn *h, const char *path, size_t *size)
{
    Problem problem;
    const char *reason;
    if (access(path, F_OK) != 0)
        return NULL;
    const int fd = file_open(path, &reason);
    if (fd < 0) {
        problem_set(&problem, path, "a lab must be a file that you can read",
                    "it cannot be read: %s", reason);
        stop_packing(h, &problem);
    }
    FILE *file = fdopen(fd, "r");
    char *bytes = malloc(MOST_SOURCE + 1);
    *size = fread(bytes, 1, MOST_SOURCE + 1, file);
    fclose(file);
    if (*size > MOST_SOURCE) {
        problem_set(&problem, path, "a lab is a few lines", "the file is larger than %d KB",
                    MOST_SOURCE >> 10);
        stop_packing(h, &problem);
    }
    bytes[*size] = '\0';
    return bytes;
}

/* The gradebook compiles one file of each lab, without what this file includes from its folder. */
static void tell_what_is_left_out(const Lab *lab, const char *path, const char *bytes)
{
    static const char include[] = "#include \"";
    while ((bytes = strstr(bytes, include))) {
        char beside[2300];
        bytes += strlen(include);
        const int length = (int)strcspn(bytes, "\"\n"), folder = (int)(strrchr(path, '/') - path);
        snprintf(beside, sizeof beside, "%.*s/%.*s", folder, path, length, bytes);
        if (length < 200 && !memchr(bytes, '/', (size_t)length) && access(beside, F_OK) == 0)
            printf(
                _("      %.*s is not handed in, so the lab will not build: move its lines into %s\n"),
                length, bytes, lab->file);
    }
}

static bool is_started(const HandIn *h, const Lab *lab, const char *path)
{
    char start[2048];
    const Lab *from = lab->starts_from ? lab_of(lab->starts_from) : lab;
    snprintf(start, sizeof start, "%.1500s/%s/%s", from == lab ? "grader/start" : h->labs,
             from->folder, from->file);
    return !same_tokens(start, path);
}

static void put_lab(HandIn *h, const Lab *lab)
{
    char path[2048], inner[256], checksum[CHECKSUM_SIZE];
    size_t size = 0;
    snprintf(path, sizeof path, "%.1500s/%s/%s", h->labs, lab->folder, lab->file);
    snprintf(inner, sizeof inner, "labs/%s/%s", lab->folder, lab->file);
    char *bytes = read_source(h, path, &size);
    if (!bytes) {
        printf(_("  %2d  %-*s      no file\n"), lab->number, padded_to(_(lab->title), 29),
               _(lab->title));
        json_array_append_new(h->missing, json_integer(lab->number));
        return;
    }
    bool started = is_started(h, lab, path);
    if (!started)
        json_array_append_new(h->not_started, json_integer(lab->number));
    checksum_of(bytes, size, checksum);
    json_array_append_new(h->files, json_pack("{s:s, s:I, s:s}", "path", inner, "bytes",
                                              (json_int_t)size, "xxh3", checksum));
    printf(_("  %2d  %-*s %6zu bytes%s\n"), lab->number, padded_to(_(lab->title), 29),
           _(lab->title), size, started ? "" : _("  not started"));
    tell_what_is_left_out(lab, path, bytes);
    put_file(h, inner, bytes, size);
    free(bytes);
}

static void put_manifest(HandIn *h)
{
    char created[32];
    time_t now = time(NULL);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    json_t *predictions = json_load_file(h->predictions, 0, NULL);
    json_t *json = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o*}", "format",
                             "balise hand-in", "version", 1, "kit", BALISE_VERSION, "name", h->name,
                             "created", created, "files", h->files, "not started", h->not_started,
                             "missing", h->missing, "predictions", predictions);
    char *text = json_dumps(json, JSON_INDENT(2));
    put_file(h, MANIFEST_NAME, text, strlen(text));
    free(text);
    json_decref(json);
}

static bool is_hand_in(const char *path)
{
    static Files files;
    Problem problem;
    bool found = false;
    if (read_files(path, false, &files, &problem))
        for (int i = 0; i < files.count; i++)
            found |= !strcmp(files.file[i].path, MANIFEST_NAME);
    return found;
}

int main(int argc, char **argv)
{
    language_begin();
    problem_if_output_is_lost();
    setlocale(LC_CTYPE, "C.UTF-8");
    const OutputKind kind = {N_("a hand-in"), "\x1f\x8b", is_hand_in};
    HandIn h = options_of(argc, argv);
    Problem problem;
    h.files = json_array();
    h.not_started = json_array();
    h.missing = json_array();
    h.file = replacement_begin(h.out, &kind, where_to, not_written, &problem);
    if (!h.file)
        stop_packing(&h, &problem);
    h.archive = archive_write_new();
    archive_write_add_filter_gzip(h.archive);
    archive_write_set_format_pax_restricted(h.archive);
    archive_write_open_FILE(h.archive, h.file->stream);
    printf(_("hand-in of %s\n"), h.name);
    for (int i = 0; i < lab_count(); i++)
        put_lab(&h, lab_at(i));
    put_manifest(&h);
    if (archive_write_close(h.archive) != ARCHIVE_OK)
        h.file->error = errno;
    const bool good = replacement_end(h.file, where_to, not_written, &problem);
    h.file = NULL;
    if (!good)
        stop_packing(&h, &problem);
    archive_write_free(h.archive);
    printf("%s\n", h.out);
    return 0;
}
