/** @file
 * Grading a class: submissions, the labs in them, and the results.
 *
 * The work is split into units: a lab with one source, or the sources of one training run.
 * Identical files of two students are one unit. Each verdict is stored under a key of everything it
 * depends on (the source, the seed, the kit, the language, the instructor's cases). So an interrupted run
 * continues where it stopped, and a changed submission is graded again.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "balise.h"
#include "base/replacement.h"
#include "grader/gradebook/manifest.h"
#include "grader/judge/compare/expected.h"

enum {
    MOST_SUBMISSIONS = 10000,  /**< per folder */
    REMARK_SIZE = 1200,        /**< bytes of a submission's remark */
    PLACE_SIZE = 4096,         /**< bytes of a path */
    LABS_SIZE = 4 * MOST_LABS, /**< bytes of a list of labs */
    MOST_JOBS = 256,           /**< units graded at a time */
};

/** Short pieces of a program without comments, white space and names; see alike.c. */
typedef struct Pieces {
    uint64_t *piece; /**< [count], sorted, each once */
    size_t count;    /**< length of the array */
} Pieces;

/** One thing to grade: a lab with one source. */
typedef struct Unit {
    char key[CHECKSUM_SIZE];    /**< a checksum of everything that the verdict depends on */
    char source[CHECKSUM_SIZE]; /**< a checksum of the lab's own file */
    int lab;                    /**< an index for lab_at() */
    int submission;             /**< a submission that has this source; -1: the reference */
    bool trains; /**< times a training run, with all labs that it needs, instead of grading */
    /** the lab's object in the verdict (see grader/README.md); NULL if it could not be graded */
    json_t *lab_verdict;
    char trouble[300];   /**< why it could not be graded */
    char isolation[320]; /**< how its ranks were isolated, as in the verdict */
    Pieces pieces;       /**< those that are not in the start file or the reference */
} Unit;

/** What one student handed in. */
typedef struct Submission {
    char *entry;                  /**< its name in the folder */
    char student[4 * NAME_BYTES]; /**< the name in its manifest, or else one derived from `entry` */
    char created[32];             /**< when it was packed, according to its manifest; or empty */
    char remark[REMARK_SIZE];     /**< for the table: sentences, or empty */
    char predictions[PREDICTIONS_SIZE]; /**< those of its manifest */
    int unit[MOST_LABS];                /**< -1: the lab was not handed in */
    int training;                       /**< its unit that trains; -1: it has none */
    int alias;                          /**< on the page of make board */
    bool refused;                       /**< nothing in it could be read */
    int pending;                        /**< units that have not ended */
    int points;                         /**< points earned */
} Submission;

/** One run of make gradebook or make board. */
typedef struct Book {
    /** DIR, OUT, the kit's build folder, the instructor's cases or NULL */
    const char *folder, *out, *build, *cases;
    bool board;               /**< for make board: OUT is the JSON for its page */
    bool names;               /**< progress shows the names of students */
    int sandbox;              /**< what was requested: Sandbox.wish */
    Range labs;               /**< of the part of the course that is graded, by lab_at() */
    int jobs;                 /**< units that are graded at a time */
    uint64_t seed;            /**< of all cases */
    bool has_seed;            /**< chosen by the instructor */
    char reports[PLACE_SIZE]; /**< OUT without .csv, and "-reports" */
    char state[PLACE_SIZE];   /**< a folder in `reports` */
    /** build areas below `build`, so that blanks in OUT cannot confuse the compiler */
    char work[PLACE_SIZE];
    /** a checksum of everything in the kit that verdicts depend on */
    char kit[2 * CHECKSUM_SIZE];
    char language[CHECKSUM_SIZE]; /**< a checksum that is another one for each language */
    Submission *submissions;      /**< [count], sorted by name */
    Unit *units;                  /**< [unit_count] */
    int count, unit_count;        /**< lengths of these arrays */
} Book;

/** Like give_up(), for a problem given as in problem_set(), with N_() around both strings. */
_Noreturn void give_up_at(const char *where, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Adds a sentence to a submission's remark. */
void add_remark(Submission *submission, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Turns a text into one printable line. */
void make_line(char *text);

/** Writes "FOLDER/NAME" to `place`, and creates the folders on the way. */
void place_in(const char *folder, char place[PLACE_SIZE], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Appends a file's contents to a stream. Returns the number of bytes, or -1 if the file cannot be
 *  read. */
int64_t put_contents(FILE *out, const char *path);
/** Writes the file, or gives up. */
void write_or_give_up(const char *path, const OutputKind *kind, const char *text);

/** Removes a folder and its contents. */
void remove_tree(const char *path);

/** Names the folders of the reports after OUT, or gives up. */
void name_reports(Book *book);
/** Creates the book's folders, takes its lock and determines the seed. */
void open_book(Book *book);

/** Lists the folder's submissions, without OUT and the reports, which may be there too. */
void list_submissions(Book *book);
/** Reads each submission, in a process of its own with limits. */
void take_in(Book *book);

/** Writes the path of a submission's source for a lab to `place`, or of the reference's if
 *  `submission` is -1. */
void source_place(const Book *book, int submission, int lab, char place[PLACE_SIZE]);

/** Makes the units, and finds verdicts that exist already. */
void make_units(Book *book);
/** Reads a unit's stored verdict, if one is acceptable: with SANDBOX=on, only one from a
 *  sandbox. */
bool find_verdict(const Book *book, Unit *unit);

/** Grades the units from `first` on that have no verdict, `most` at a time; continues after any
 *  failure. */
void run_units(Book *book, int first, int most);

/** Is this one of the labs that the timed training run uses? */
bool is_trained(int lab);
/** Makes a unit for each submission with full marks in all of these labs, and one for the
 *  reference; finds results that exist already. */
void make_training_runs(Book *book);
/** Writes OUT, for common/page/board.py. */
void write_board(Book *book);

/** Names the labs of this set, which is not empty: "lab 2", "labs 1, 3-7". */
void tell_labs(const Book *book, const bool listed[MOST_LABS], char text[LABS_SIZE]);
/** Adds up a submission's points and collects its remarks. */
void add_up(Book *book, Submission *submission);

/** Lists the started labs of a submission whose files other submissions also have, byte for byte:
 *  "ada.zip: labs 1, 2; bob: lab 1", or empty. */
void tell_identical(const Book *book, int submission, char text[REMARK_SIZE]);
/** Reads the pieces of all units, which tell_alike() needs. */
void find_pieces(Book *book);
/** Lists the labs of a submission that another submission also has, apart from comments, white
 *  space and names: "ada.zip: lab 15 (96%)", or empty. Leaves out identical files. */
void tell_alike(const Book *book, int submission, char text[REMARK_SIZE]);

/** Writes the table: a row per student, a column per lab. */
void write_table(const Book *book);
/** The kind of output that the table is: it replaces only an earlier table. */
extern const OutputKind table_kind;
/** Writes a submission's report, as make grade would print it. */
void write_report(const Book *book, int submission);
/** Removes reports of submissions that no longer exist. */
void remove_old_reports(const Book *book);
/** Writes the commonest causes per lab, to a file beside the reports and to stdout. */
void write_summary(const Book *book);
