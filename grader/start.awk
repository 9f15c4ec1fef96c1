# The start file of a lab, out of its solution. In a solution,
#     /// the line of the start file
#     the line of the solution
#     ///
# stands for "the start file has this, the solution that"; several lines may stand in either part.
{
    text = $0
    sub(/^[ \t]*/, "", text)
    indent = substr($0, 1, length($0) - length(text))
}
text == "///" && inside { inside = 0; next }
text ~ /^\/\/\/( |$)/ { inside = 1; print indent substr(text, 5); next }
!inside
