/* JUnit's XML, as Jenkins and GitLab read it: a suite per lab, a case per check. A check that is
 * wrong or held back is a failure. One that crashes, hangs, does not build or is refused is an
 * error. One that was not started or not reached is skipped. libxml2 escapes the text. */
#include <libxml/xmlwriter.h>
#include <stdarg.h>
#include <stdlib.h>

#include "grader/judge/report/formats/formats.h"

typedef struct Counts {
    int tests, failures, errors, skipped;
} Counts;

static const char *element_of(Status status)
{
    static const char *const elements[STATUSES] = {
        [RIGHT] = NULL,          [HELD_BACK] = "failure", [WRONG] = "failure",
        [CRASHES] = "error",     [HANGS] = "error",       [NOT_BUILT] = "error",
        [NOT_ALLOWED] = "error", [NOT_BEGUN] = "skipped", [UNDONE] = "skipped",
        [NOT_JUDGED] = "skipped"};
    return elements[status];
}

static Counts counts_of(const LabResult *lab)
{
    Counts counts = {0};
    for (int check = -1; (check = next_check(lab, check)) >= 0;) {
        const char *element = element_of(check_status(lab, (Check)check));
        counts.tests++;
        counts.failures += element && !strcmp(element, "failure");
        counts.errors += element && !strcmp(element, "error");
        counts.skipped += element && !strcmp(element, "skipped");
    }
    return counts;
}

__attribute__((format(printf, 3, 4))) static void put(xmlTextWriter *xml, const char *name,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    xmlTextWriterWriteVFormatAttribute(xml, BAD_CAST name, format, args);
    va_end(args);
}

static void put_counts(xmlTextWriter *xml, const Counts *counts, double seconds)
{
    put(xml, "tests", "%d", counts->tests);
    put(xml, "failures", "%d", counts->failures);
    put(xml, "errors", "%d", counts->errors);
    put(xml, "time", "%.3f", seconds);
}

static void put_check(xmlTextWriter *xml, const Verdict *verdict, const LabResult *lab, Check check,
                      double seconds)
{
    char output[OUTPUT_SIZE], first[256];
    Status status = check_status(lab, check);
    xmlTextWriterStartElement(xml, BAD_CAST "testcase");
    put(xml, "classname", "%s", lab->lab->folder);
    put(xml, "name", "%s", check_names[check]);
    put(xml, "time", "%.3f", seconds);
    if (status != RIGHT) {
        check_output(verdict, lab, check, output, sizeof output);
        snprintf(first, sizeof first, "%.*s", (int)strcspn(output, "\n"), output);
        clean_text(first); /* it may have been truncated within a character */
        xmlTextWriterStartElement(xml, BAD_CAST element_of(status));
        put(xml, "message", "%s", first);
        put(xml, "type", "%s", status_names[status]);
        xmlTextWriterWriteString(xml, BAD_CAST output);
        xmlTextWriterEndElement(xml);
    }
    xmlTextWriterEndElement(xml);
}

/* The schema allows properties only in a suite. */
static void put_isolation(xmlTextWriter *xml, const Verdict *verdict)
{
    char isolation[ISOLATION_SIZE];
    tell_isolation(verdict, isolation);
    xmlTextWriterStartElement(xml, BAD_CAST "properties");
    xmlTextWriterStartElement(xml, BAD_CAST "property");
    put(xml, "name", "isolation");
    put(xml, "value", "%s", isolation);
    xmlTextWriterEndElement(xml);
    xmlTextWriterEndElement(xml);
}

static void put_lab(xmlTextWriter *xml, const Verdict *verdict, const LabResult *lab)
{
    char path[160];
    Counts counts = counts_of(lab);
    lab_path(lab, path);
    xmlTextWriterStartElement(xml, BAD_CAST "testsuite");
    put(xml, "name", "Lab %d %s", lab->lab->number, lab->lab->title);
    put(xml, "id", "%d", lab->lab->number);
    put(xml, "file", "%s", path);
    put(xml, "skipped", "%d", counts.skipped);
    put_counts(xml, &counts, lab->seconds);
    if (lab->state == GRADED)
        put_isolation(xml, verdict);
    for (int check = -1; (check = next_check(lab, check)) >= 0;)
        put_check(xml, verdict, lab, (Check)check, lab->seconds / counts.tests);
    xmlTextWriterEndElement(xml);
}

char *junit_text(const Verdict *verdict)
{
    Counts all = {0};
    xmlBuffer *buffer = xmlBufferCreate();
    xmlTextWriter *xml = xmlNewTextWriterMemory(buffer, 0);
    for (int i = 0; i < verdict->count; i++) {
        Counts counts = counts_of(&verdict->labs[i]);
        all.tests += counts.tests;
        all.failures += counts.failures;
        all.errors += counts.errors;
    }
    xmlTextWriterSetIndent(xml, 1);
    xmlTextWriterStartDocument(xml, NULL, "UTF-8", NULL);
    xmlTextWriterStartElement(xml, BAD_CAST "testsuites");
    put(xml, "name", "Balise");
    put_counts(xml, &all, verdict->seconds);
    for (int i = 0; i < verdict->count; i++)
        put_lab(xml, verdict, &verdict->labs[i]);
    xmlTextWriterEndDocument(xml);
    xmlFreeTextWriter(xml);
    char *text = strdup((const char *)xmlBufferContent(buffer));
    xmlBufferFree(buffer);
    return text;
}
