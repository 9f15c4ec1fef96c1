/* Unicode as in BERT's tokenizer, with utf8proc. */
#include "data/internal.h"

#include <ctype.h>
#include <string.h>
#include <utf8proc.h>

typedef struct Range {
    int32_t first, last;
} Range;

/* Hugging Face uses the categories of Unicode 8 and the decompositions of Unicode 9. It treats
 * accents, punctuation, format characters and compositions that were added later as plain letters.
 * These ranges contain them. */
static const Range plain[] = {
    {0x5C8, 0x5C9},     {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},
    {0x9FD, 0x9FE},     {0xA76, 0xA76},     {0xAFA, 0xAFF},     {0xB53, 0xB55},
    {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},     {0xD00, 0xD00},
    {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x180F, 0x1886},   {0x1ABF, 0x1AF0},   {0x1B4E, 0x1B4F},   {0x1B7D, 0x1B7F},
    {0x1DF6, 0x1DFB},   {0x2E43, 0x2E63},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},
    {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x105C9, 0x105E4}, {0x10D24, 0x10F89},
    {0x11070, 0x11074}, {0x110C2, 0x110CD}, {0x111CF, 0x111CF}, {0x1123E, 0x11241},
    {0x1133B, 0x1133B}, {0x11383, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
    {0x1182F, 0x11FFF}, {0x12FF1, 0x1612F}, {0x16D68, 0x16F4F}, {0x16FE2, 0x16FE4},
    {0x1CF00, 0x1D128}, {0x1D25B, 0x1D25C}, {0x1E000, 0x1E6F5}, {0x1E944, 0x1E95F}};

/* The same for combining classes: characters in these ranges have none. */
static const Range plain_combining[] = {{0x5C8, 0x8D3},     {0x9FE, 0x1AF0},    {0x1DF6, 0x1DFA},
                                        {0xA82C, 0xA82C},   {0x10D24, 0x11070}, {0x1133B, 0x1133B},
                                        {0x113CE, 0x113D0}, {0x1145E, 0x1145E}, {0x11839, 0x11A99},
                                        {0x11D42, 0x1D128}, {0x1D250, 0x1D281}, {0x1E08F, 0x1E6F5}};

/* BERT's own list of "Chinese characters": the blocks of CJK ideographs. */
static const Range ideographs[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
    {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F},
};

#define IN(ranges, c) in_ranges((ranges), sizeof(ranges) / sizeof(Range), (c))

static bool in_ranges(const Range *ranges, size_t count, int32_t c)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && c >= ranges[low].first;
}

static CharacterClass class_of_category(int32_t c)
{
    const char *category = utf8proc_category_string(c); /* "Lu", "Po", ... */
    if (!strcmp(category, "Cc"))
        return c == '\t' || c == '\n' || c == '\r' ? SPACE : REMOVED;
    if (!strcmp(category, "Cf") || !strcmp(category, "Co"))
        return REMOVED;
    if (category[0] == 'Z')
        return SPACE;
    if (!strcmp(category, "Mn"))
        return ACCENT;
    /* BERT treats all other visible ASCII as punctuation: $ + < = > ^ ` | ~ */
    const bool other = c < 0x80 && !isalnum(c);
    return category[0] == 'P' || other ? PUNCTUATION : LETTER;
}

CharacterClass character_class(int32_t c)
{
    switch (c) {
    case 0xFFFD: /* the replacement character */
        return REMOVED;
    case 0x166D: /* these four changed category after Unicode 8 */
    case 0x111C9:
        return PUNCTUATION;
    case 0x1734:
    case 0x1171E:
        return ACCENT;
    default:
        break;
    }
    if (c >= ideographs[0].first && IN(ideographs, c))
        return IDEOGRAPH;
    CharacterClass class = class_of_category(c);
    bool doubtful = class == REMOVED || class == ACCENT || class == PUNCTUATION;
    return doubtful && IN(plain, c) ? LETTER : class;
}

int character_decompose(int32_t c, int32_t *parts)
{
    int boundary;
    parts[0] = c;
    if (IN(plain, c))
        return 1;
    return (int)utf8proc_decompose_char(c, parts, DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, &boundary);
}

int32_t character_lower(int32_t c)
{
    /* Hugging Face lower-cases with Rust's standard library, which uses Unicode 17. */
    static const struct {
        int32_t upper, lower;
    } late[] = {{0x1C89, 0x1C8A}, {0xA7CB, 0x264},  {0xA7CC, 0xA7CD}, {0xA7CE, 0xA7CF},
                {0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D5}, {0xA7DA, 0xA7DB}, {0xA7DC, 0x19B}};
    if (c >= 0x10D50 && c <= 0x10D65)
        return c + 0x20;
    if (c >= 0x16EA0 && c <= 0x16EB8)
        return c + 0x1B;
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        if (late[i].upper == c)
            return late[i].lower;
    return utf8proc_tolower(c);
}

int character_combining(int32_t c)
{
    int combining = utf8proc_get_property(c)->combining_class;
    return combining != 0 && character_class(c) == LETTER && IN(plain_combining, c) ? 0 : combining;
}

/* Eight bytes at once, because most text is ASCII. */
static size_t ascii_length(const char *text, size_t length)
{
    size_t at = 0;
    for (uint64_t eight; at + sizeof eight <= length; at += sizeof eight) {
        memcpy(&eight, text + at, sizeof eight);
        if (eight & 0x8080808080808080u)
            break;
    }
    while (at < length && !(text[at] & 0x80))
        at++;
    return at;
}

size_t utf8_valid_length(const char *text, size_t length)
{
    for (size_t at = 0;;) {
        at += ascii_length(text + at, length - at);
        if (at == length)
            return length;
        utf8proc_int32_t c;
        utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                 (utf8proc_ssize_t)(length - at), &c);
        if (size <= 0)
            return at;
        at += (size_t)size;
    }
}
