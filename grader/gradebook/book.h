/** @file
 * Grading many: submissions, the labs in them, and what came out.
 *
 * The work is cut into units: a lab with its source. What two students handed in alike is graded once, and a verdict is kept
 * under a key of all that it depends on (the source, the seed, the kit, the instructor's cases), so that a run that was
 * stopped goes on where it was, and a submission that changed is graded again.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "balise.h"
#include "grader/gradebook/manifest.h"

enum {
    MOST_SUBMISSIONS = 10000, /**< of one folder */
    REMARK_SIZE = 1200,       /**< bytes of a submission's remark */
    PLACE_SIZE = 4096,        /**< bytes of a path */
    MOST_JOBS = 256,          /**< units that are graded at a time */
};

/** What is graded once: a lab with a source. */
typedef struct Unit {
    char key[CHECKSUM_SIZE]; /**< a checksum of all that its verdict depends on */
    int lab;                 /**< lab_at() */
    int submission;          /**< one that has it: where the source is */
    /** the lab's object of the verdict (see grader/README.md); NULL where it could not be graded */
    json_t *lab_verdict;
    char trouble[300];   /**< why it could not */
    char isolation[320]; /**< how its ranks were isolated, in the verdict's words */
} Unit;

/** What one student has handed in. */
typedef struct Submission {
    char *entry;                  /**< its name in the folder */
    char student[4 * NAME_BYTES]; /**< the name in its manifest, or else made of `entry` */
    char created[32];         /**< when it was packed, as its manifest says; empty: it does not */
    char remark[REMARK_SIZE]; /**< for the table: sentences, or empty */
    char predictions[PREDICTIONS_SIZE]; /**< those of its manifest */
    int unit[MOST_LABS];                /**< -1: the lab was not handed in */
    bool refused;                       /**< nothing in it could be read */
    int pending;                        /**< units that have not ended */
    int points, of;                     /**< earned, and what there was to earn */
} Submission;

/** One run of make gradebook. */
typedef struct Book {
    /** DIR, OUT, the kit's build folder, the instructor's cases or NULL */
    const char *folder, *out, *build, *cases;
    const char *sandbox;      /**< "on", "off", or "": where the system allows one */
    Range labs;               /**< of the part of the course that is graded, by lab_at() */
    int jobs;                 /**< units that are graded at a time */
    uint64_t seed;            /**< of all cases */
    bool has_seed;            /**< chosen by the instructor */
    char reports[PLACE_SIZE]; /**< OUT without .csv, and "-reports" */
    char state[PLACE_SIZE];   /**< a folder in it */
    /** the build areas, below `build`: no blank in OUT is a compiler's business */
    char work[PLACE_SIZE];
    /** a checksum of all of the kit that a verdict depends on */
    char kit[2 * CHECKSUM_SIZE];
    Submission *submissions; /**< [count], in the order of their names */
    Unit *units;             /**< [unit_count] */
    int count, unit_count;   /**< of these two arrays */
} Book;

/** Prints the problem and ends with 2. */
_Noreturn void give_up_on(const Problem *problem);
/** The same, of a problem that is said here: as problem_set(), with N_() around both sentences. */
_Noreturn void give_up(const char *where, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Adds a sentence to a submission's remark. */
void add_remark(Submission *submission, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Makes a text one printable line. */
void make_line(char *text);

/** "FOLDER/NAME", with folders made up to it. */
void place_in(const char *folder, char place[PLACE_SIZE], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Appends what a file holds to a stream. Returns how many bytes that were, or -1 where it cannot be read. */
int64_t put_contents(FILE *out, const char *path);
/** Writes the file, or gives up. */
void write_or_give_up(const char *path, const char *text);

/** Removes a folder with all that is in it. */
void remove_tree(const char *path);

/** Makes the folders of the book, takes its lock, and settles the seed. */
void open_book(Book *book);

/** Lists the folder's submissions. */
void list_submissions(Book *book);
/** Takes each of them in, in a process of its own with limits. */
void take_in(Book *book);

/** Where the source of a submission's lab was put. */
void source_place(const Book *book, int submission, int lab, char place[PLACE_SIZE]);

/** Makes the units, and finds the verdicts that are there already. */
void make_units(Book *book);
/** Reads the verdict of a unit, if there is one that will do: with SANDBOX=on, only one from a sandbox. */
bool find_verdict(const Book *book, Unit *unit);

/** Grades what has no verdict, `jobs` at a time; goes on after any failure. */
void run_units(Book *book);

/** The points of a submission, and its remarks. */
void add_up(Book *book, Submission *submission);

/** A row a student, a column a lab. */
void write_table(const Book *book);
/** The report of a submission, as make grade prints it. */
void write_report(const Book *book, int submission);
/** Removes the reports of submissions that an earlier run had and this one has not. */
void remove_old_reports(const Book *book);
/** The commonest causes a lab: to a file beside the reports, and to stdout. */
void write_summary(const Book *book);
