# labs.mk -> the same as C: a table of labs, and their budget formulas as functions.
/^LABS = /        { labs = substr($0, 8) }
/^LAB_[0-9]+_/    {
    key = $1; sub(/^LAB_/, "", key)
    value = $0; sub(/^[^=]*= */, "", value)
    of[key] = value
}
function formula(lab, name) {
    printf "static int64_t lab%s_%s(int64_t n, const Sizes *z)\n{\n", lab, tolower(name)
    printf "    const int64_t B = z->B, S = z->S, H = z->H, F = z->F, OUT = z->OUT, C = z->C, N = z->N;\n"
    printf "    const int PART = z->part, VOCABULARY = z->vocabulary;\n"
    printf "    (void)B, (void)S, (void)H, (void)F, (void)OUT, (void)C, (void)N, (void)PART, (void)VOCABULARY, (void)n;\n"
    printf "    return %s;\n}\n\n", of[lab "_" name]
}
END {
    print "/* Made from grader/labs.mk. */"
    count = split(labs, lab, " ")
    split("FORWARD BACKWARD FORWARD_CALLS BACKWARD_CALLS", names, " ")
    for (i = 1; i <= count; i++)
        for (k = 1; k <= 4; k++)
            formula(lab[i], names[k])
    print "static Lab all_labs[] = {"
    for (i = 1; i <= count; i++) {
        l = lab[i]
        printf "    {%s, \"%s\", \"%s\", \"%s\", \"%s\", \"%s\", \"%s\", \"%s\", \"%s\", %s, {lab%s_forward, lab%s_backward}, {lab%s_forward_calls, lab%s_backward_calls}},\n", \
            l, of[l "_FOLDER"], of[l "_FILE"], of[l "_TITLE"], of[l "_LAYOUTS"], of[l "_CHECKS"], of[l "_CUTS"], of[l "_NEEDS"], of[l "_WRITES"], \
            of[l "_START"] == "working" ? "WORKING" : of[l "_START"] ~ /^lab / ? "FROM_LAB_1" : "EMPTY", l, l, l, l
    }
    print "};"
}
