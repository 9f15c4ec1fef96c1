/* The json format, which build/gradebook reads and grader/README.md describes. */
#include <math.h>

#include "grader/judge/report/formats/formats.h"

json_t *check_json(const Verdict *verdict, const LabResult *lab, Check check)
{
    char diagnosis[REASON_SIZE], again[160];
    const CheckResult *r = &lab->check[check];
    check_reason(lab, check, diagnosis, sizeof diagnosis);
    repeat_check(verdict, lab, check, "grade", again);
    json_t *json = json_pack("{s:s, s:s, s:i, s:i}", "name", check_names[check], "status",
                             status_names[check_status(lab, check)], "points",
                             check_score(lab, check), "of", lab_points(lab->lab, check));
    if (r->failed)
        json_object_update_new(json,
                               json_pack("{s:s, s:b, s:i, s:s}", "reason", diagnosis, "explained",
                                         r->explained, "case", r->case_index, "again", again));
    else if (check_status(lab, check) == HELD_BACK)
        json_object_set_new(json, "reason", json_string(diagnosis));
    return json;
}

/* null if no pass was counted, as in a lab that does not build. */
static json_t *bytes_json(Bytes bytes)
{
    return bytes.counted ? json_integer((json_int_t)llround(bytes.count)) : json_null();
}

static json_t *lab_json(const Verdict *verdict, const LabResult *lab)
{
    char path[160];
    json_t *checks = json_array();
    lab_path(lab, path);
    for (int check = -1; (check = next_check(lab, check)) >= 0;)
        json_array_append_new(checks, check_json(verdict, lab, (Check)check));
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:o, s:o, s:o}", "number",
                     lab->lab->number, "title", lab->lab->title, "file", path, "state",
                     state_names[lab->state], "remark", lab->remark, "stack", lab->stack, "points",
                     lab->points, "of", lab->of, "cases", lab->cases, "seconds", lab->seconds,
                     "sent", bytes_json(lab->sent), "kept", bytes_json(lab->kept), "checks",
                     checks);
}

char *json_text(const Verdict *verdict)
{
    char isolation[ISOLATION_SIZE];
    json_t *labs = json_array();
    tell_isolation(verdict, isolation);
    for (int i = 0; i < verdict->count; i++)
        json_array_append_new(labs, lab_json(verdict, &verdict->labs[i]));
    return json_file(json_pack("{s:s, s:i, s:I, s:s, s:b, s:i, s:i, s:f, s:s, s:o}", "format",
                               "balise verdict", "version", 1, "seed", (json_int_t)verdict->seed,
                               "author", verdict->author, "complete", verdict_is_complete(verdict),
                               "points", verdict_points(verdict), "of", verdict_of(verdict),
                               "seconds", verdict->seconds, "isolation", isolation, "labs", labs));
}
