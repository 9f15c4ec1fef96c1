/* Finds which parts of a student's file are as handed out. */
#include "grader/judge/grade.h"

#include <unistd.h>

#include "grader/judge/tokens.h"

static bool is_students(const Options *o)
{
    return !strcmp(o->author, "student") || !strcmp(o->author, "mine");
}

static void lab_paths(const Lab *lab, const Options *o, char start[600], char file[600])
{
    const Lab *from = lab->starts_from ? lab_of(lab->starts_from) : lab;
    snprintf(start, 600, "%s/%s/%s", from == lab ? o->start : o->labs, from->folder, from->file);
    snprintf(file, 600, "%s/%s/%s", o->labs, lab->folder, lab->file);
}

bool is_untouched(LabResult *result, const Options *o)
{
    char start[600], file[600];
    const Lab *lab = result->lab, *from = lab->starts_from ? lab_of(lab->starts_from) : lab;
    if (!is_students(o))
        return false;
    lab_paths(lab, o, start, file);
    bool missing = from != lab && access(file, F_OK) != 0;
    if (!missing && !same_tokens(start, file))
        return false;
    result->untouched = true;
    if (!lab->starts_working) /* grading it shows its first TODO */
        return false;
    result->state = NOT_STARTED_YET;
    snprintf(result->remark, sizeof result->remark, "%s",
             missing       ? _("it starts from your own lab 1: make start LAB=9 copies it")
             : from != lab ? _("it is your unchanged lab 1: replace the world with the tp group")
                           : _("the start file is unchanged: it works, but nothing is split yet"));
    return true;
}

/* Marks a failed check as "to do", not wrong, if all of its functions ("a+b") are as in the working
 * start file. */
static void look_at_check(LabResult *result, const Options *o, Check check, const char *functions)
{
    char start[600], file[600], name[64], first[64] = "";
    CheckResult *r = &result->check[check];
    lab_paths(result->lab, o, start, file);
    for (const char *at = functions; *at;) {
        size_t length = strcspn(at, "+");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (!same_function(start, file, name))
            return;
        if (!first[0])
            snprintf(first, sizeof first, "%s", name);
        at += length + (at[length] == '+');
    }
    if (!r->failed || r->ending != COMPLETE || !first[0])
        return;
    r->failed = false;
    r->to_do = true;
    if (!result->remark[0])
        snprintf(result->remark, sizeof result->remark, _("TODO(%d) in %.63s%s%s"),
                 result->lab->number, first, "", "");
}

void look_for_handed_out(LabResult *result, const Options *o)
{
    if (!is_students(o) || result->state != GRADED)
        return;
    for (int check = 0; check < CHECKS; check++)
        if (result->lab->written[check])
            look_at_check(result, o, (Check)check, result->lab->written[check]);
}
