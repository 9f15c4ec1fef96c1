/* The exact run of a case, and the distance of single-precision runs from it. Two processes share
 * the runs: the judge, and a second one that waits for the judge's requests. The ranks have ended,
 * so both cores are free. Results can be stored in files, for other runs of the judge on the same
 * cases. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/reference/rounding.h"
#include "grader/judge/compare/expected.h"

enum { WORKERS = 2, JUDGE = 0, SECOND = 1, SLOTS = STREAM_BYTES / sizeof(Entry) };

/* Memory shared by the two processes. The spread of an entry is in the slot in which the entry
 * begins. No two entries begin in the same slot. */
typedef struct Desk {
    Case c;
    int rank, rounded;
    _Atomic int64_t used;
    double spread[WORKERS][SLOTS];
    char exact[STREAM_BYTES];
} Desk;

static Desk *desk;
/* The socket to the other process: each byte says that something is ready. */
static int second = -1;
static pid_t second_id;

static void *reserve(size_t bytes, int sharing)
{
    void *room =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        give_up_with(N_("raise the limit on address space (ulimit -v)"),
                     _("the grader ran out of memory for the expected results"));
    return room;
}

static double *spread_of(int worker, const Entry *exact)
{
    return &desk->spread[worker][(size_t)((const char *)exact - desk->exact) / sizeof(Entry)];
}

static double largest_distance(const double *a, const double *b, int64_t count)
{
    double largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; i++) {
        double distance = fabs(a[i] - b[i]);
        largest = distance > largest ? distance : largest;
    }
    return largest;
}

static Entries exact_entries(void)
{
    return (Entries){desk->exact, 0, desk->used};
}

static void clear_spread(int worker)
{
    for (const Entry *exact = NULL; (exact = next_entry(exact_entries(), exact));)
        *spread_of(worker, exact) = 0;
}

/* All runs of a case write the same entries. */
static void widen_spread(int worker, const char *emulated)
{
    for (const Entry *exact = NULL; (exact = next_entry(exact_entries(), exact));) {
        const Entry *other = (const Entry *)(emulated + ((const char *)exact - desk->exact));
        double *spread = spread_of(worker, exact);
        *spread =
            fmax(*spread, largest_distance(numbers_of(other), numbers_of(exact), exact->count));
    }
}

static const char *kept_in;

void keep_expected(const char *folder)
{
    kept_in = folder;
}

/* Names the file of a request by an FNV-1a hash of the request and of what tells one build of the
 * judge from others. */
static void name_kept(char path[600], const Case *c, int rank, Expectation what, int rounded)
{
    struct {
        Case c;
        int rank, rounded;
        Expectation what;
        struct timespec built;
    } question;
    struct stat judge = {0};
    memset(&question, 0, sizeof question);
    stat("/proc/self/exe", &judge);
    question.built = judge.st_mtim;
    memcpy(&question.c, c, sizeof *c);
    question.rank = rank;
    question.what = what;
    question.rounded = rounded;
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < sizeof question; i++)
        sum = (sum ^ ((const unsigned char *)&question)[i]) * 0x100000001b3;
    snprintf(path, 600, "%.500s/%016llx", kept_in, (unsigned long long)sum);
}

/* Reads the stream from its file, and with it the spreads of its entries. */
static bool take_kept(const char *path, Expected *e)
{
    int64_t size = 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool whole = fread(&size, sizeof size, 1, file) == 1 && size <= STREAM_BYTES &&
                 fread(e->all.base, (size_t)size, 1, file) == 1;
    e->all.end = whole ? size : 0;
    for (const Entry *exact = NULL;
         whole && e->has_spread && (exact = next_entry(e->all, exact));) {
        *spread_of(SECOND, exact) = 0;
        whole = fread(spread_of(JUDGE, exact), sizeof(double), 1, file) == 1;
    }
    fclose(file);
    return whole;
}

/* Another process may look for the file, so the file gets its name only when it is complete. */
static void keep(const char *path, const Expected *e)
{
    char unfinished[620];
    snprintf(unfinished, sizeof unfinished, "%s.%d", path, (int)getpid());
    FILE *file = fopen(unfinished, "wb");
    if (!file)
        return;
    fwrite(&e->all.end, sizeof e->all.end, 1, file);
    fwrite(e->all.base, (size_t)e->all.end, 1, file);
    for (const Entry *exact = NULL; e->has_spread && (exact = next_entry(e->all, exact));) {
        double spread = expected_spread(e, exact);
        fwrite(&spread, sizeof spread, 1, file);
    }
    bool written = !ferror(file);
    if (fclose(file) != 0 || !written || rename(unfinished, path) != 0)
        unlink(unfinished);
}

static bool hear(void)
{
    char byte;
    return read(second, &byte, 1) == 1;
}

static void say(void)
{
    send(second, "", 1, MSG_NOSIGNAL);
}

static void play_exactly(void)
{
    desk->used = 0;
    write_expected(&desk->c, desk->rank, THE_NUMBERS,
                   (Stream){desk->exact, STREAM_BYTES, &desk->used});
    clear_spread(JUDGE);
}

/* Makes every second emulated run, from run `first` on. */
static void emulate(int worker, int first, bool exact_is_there)
{
    static char *room;
    if (!room)
        room = reserve(STREAM_BYTES, MAP_PRIVATE);
    for (int i = first; i <= desk->rounded; i += WORKERS) {
        _Atomic int64_t used = 0;
        reference_round_like_fp32(desk->c.key + (uint64_t)i);
        write_expected(&desk->c, desk->rank, THE_NUMBERS, (Stream){room, STREAM_BYTES, &used});
        reference_round_like_fp32(0);
        exact_is_there = exact_is_there || hear();
        if (i == first)
            clear_spread(worker);
        widen_spread(worker, room);
    }
}

static _Noreturn void be_second(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* NOLINT(cppcoreguidelines-pro-type-vararg) */
    while (hear()) {
        emulate(SECOND, 1, false);
        say();
    }
    _exit(0);
}

static void start_second(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    second_id = fork();
    second = ends[second_id == 0];
    close(ends[second_id != 0]);
    if (second_id == 0)
        be_second();
}

void expect_ranks(void)
{
    if (second < 0)
        return;
    close(second);
    if (second_id > 0)
        waitpid(second_id, NULL, 0);
    second = -1;
}

static void compute_spread(const Case *c, int rank, int rounded)
{
    if (second < 0)
        start_second();
    desk->c = *c;
    desk->rank = rank;
    desk->rounded = rounded;
    say();
    play_exactly();
    say();
    emulate(JUDGE, 2, true);
    if (!hear()) /* the second process has ended, or never existed */
        emulate(SECOND, 1, true);
}

/* The memory of freed streams, kept for new ones because its pages are already mapped. */
static struct {
    char *base[32];
    int count;
} spare;

Expected expect(const Case *c, int rank, Expectation what, int rounded)
{
    char path[600];
    bool spreads = rounded > 0;
    if (spreads && !desk)
        desk = reserve(sizeof *desk, MAP_SHARED);
    Expected e = {.has_spread = spreads};
    e.all.base = spreads           ? desk->exact
                 : spare.count > 0 ? spare.base[--spare.count]
                                   : reserve(STREAM_BYTES, MAP_PRIVATE);
    _Atomic int64_t used = 0;
    if (kept_in)
        name_kept(path, c, rank, what, rounded);
    if (kept_in && take_kept(path, &e))
        return e;
    if (spreads)
        compute_spread(c, rank, rounded);
    else
        write_expected(c, rank, what, (Stream){e.all.base, STREAM_BYTES, &used});
    e.all.end = spreads ? desk->used : used;
    if (kept_in)
        keep(path, &e);
    return e;
}

void expected_free(Expected *expected)
{
    if (expected->has_spread)
        return;
    if (spare.count < (int)(sizeof spare.base / sizeof *spare.base))
        spare.base[spare.count++] = expected->all.base;
    else
        munmap(expected->all.base, STREAM_BYTES);
}

double expected_spread(const Expected *expected, const Entry *exact)
{
    return expected->has_spread ? fmax(*spread_of(JUDGE, exact), *spread_of(SECOND, exact)) : 0;
}

bool expected_fits(const Case *c)
{
    int status = 1;
    const pid_t player = fork();
    if (player == 0) {
        char *room = reserve(STREAM_BYTES, MAP_PRIVATE);
        _Atomic int64_t used = 0;
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        write_expected(c, c->world - 1, THE_NUMBERS, (Stream){room, STREAM_BYTES / 2, &used});
        _exit(0);
    }
    return player > 0 && waitpid(player, &status, 0) == player && status == 0;
}
