# Writes the kernels of a dry run from their declarations in backend.h and attention.h. Each counts its
# multiply-adds, and the bytes of its arguments: a matrix has as many numbers as the product of the
# kernel's dimensions, or as the factors of a linear layer have.
/^void kernel_/ { text = ""; on = 1 }
on { sub(/ *\/\*.*/, ""); text = text $0 "\n" }
on && /;/ { on = 0; sub(/;\n/, "\n", text); printf "%s{\n%s}\n", text, body(text) }

function body(text,    of, is_linear, all, code, i, count, argument, name, numbers) {
    gsub(/[ \n]+/, " ", text)
    if (text ~ /AttentionShape/)
        return "    counted.multiply_adds += " (text ~ /_forward/ ? 2 : 4) " * of_attention(shape);\n"
    if (text ~ /row_pick/) # reads a number of each row
        return ""
    is_linear = text ~ /int64_t rows, int64_t in, int64_t out/
    all = text ~ /const Rotary/ ? "rotary->batch * rotary->positions * rotary->heads * rotary->head_size" : ""
    count = split(substr(text, index(text, "(") + 1), argument, /, |\) $/)
    for (i = 1; i <= count; i++)
        if (argument[i] ~ /^int64_t (count|rows|columns|classes|out)$/)
            all = all (all ? " * " : "") substr(argument[i], 9)
    code = is_linear ? "    counted.multiply_adds += rows * in * out;\n" : ""
    for (i = 1; i <= count; i++) {
        name = argument[i]
        sub(/.*[ *]/, "", name)
        if (argument[i] !~ /^Numbers|(real|uint16_t) \*/ || name ~ /bias|mean|rstd|most|sums|losses/ || (name ~ /weight/ && !is_linear))
            continue
        numbers = !is_linear ? all : name ~ /x$/ ? "rows * in" : name ~ /weight$/ ? "in * out" : "rows * out"
        if (argument[i] !~ /^const/ && text ~ /accumulate\(|scale|_step|lookup_backward/)
            numbers = numbers " * 2"
        if (text ~ /bool accumulate/ && name ~ /^d(x|weight)$/)
            numbers = numbers " * (1 + accumulate)"
        code = code "    counted.bytes += " numbers " * " (argument[i] ~ /^Numbers/ ? "width_of(" name ")" : "(int64_t)sizeof *" name) ";\n"
    }
    return code
}
