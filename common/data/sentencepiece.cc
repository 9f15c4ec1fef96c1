/* SentencePiece (LLaMA), by libsentencepiece. */
#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

using sentencepiece::SentencePieceProcessor;

static const char blank[] = "\xE2\x96\x81"; /* U+2581, which stands for a space */
static const size_t blank_size = sizeof blank - 1;

#define MODEL_HINT                                                                                 \
    N_("copy or download it again: a SentencePiece model is a file like LLaMA's tokenizer.model")

/* The library needs about 200 bytes of memory for each byte of a part. */
static const size_t part_max = 1 << 20;
/* If a part is longer, the last bytes in which to look for a place to cut it. */
static const size_t cut_window = 1 << 12;

struct Model {
    SentencePieceProcessor processor;
    bool by_words = false;      /* each word can be encoded alone */
    bool by_cuts = false;       /* words can be cut, too: see last_cut() */
    bool removes_space = false; /* only one space of several in a row counts */
    KnownWords *known = known_words_new();
    ~Model()
    {
        free(known);
    }
};

/* Appends the ids of a part, without the first `skipped` ids. */
static void encode_part(const Model *model, std::string_view part, size_t skipped, Ids *ids)
{
    if (skipped == 0 && known_word_put(model->known, part.data(), part.size(), ids))
        return;
    const std::vector<int> found = model->processor.EncodeAsIds({part.data(), part.size()});
    for (size_t i = skipped; i < found.size(); i++)
        ids_put(ids, found[i]);
    known_word_keep(model->known, part.data(), part.size(), found.data(), found.size());
}

static bool begins_character(std::string_view text, size_t at)
{
    return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

/* The last place after `begin`, up to `end`, where a cut changes no id; npos if there is none. There,
 * no piece has the two characters beside the cut side by side. Nor does a piece have the second one
 * after a space, so the space that the library adds to a part gets an id of its own. */
static size_t last_cut(const Tokenizer *tokenizer, std::string_view text, size_t begin, size_t end)
{
    const auto is_in_piece = [&](std::string_view part) {
        return memmem(tokenizer->bytes, size_t(tokenizer->begin[tokenizer->size]), part.data(),
                      part.size());
    };
    for (size_t cut = end; cut > begin && end - cut < cut_window; cut--) {
        size_t first = cut - 1, after = cut + 1;
        if (!begins_character(text, cut))
            continue;
        while (!begins_character(text, first))
            first--;
        while (!begins_character(text, after))
            after++;
        const std::string second(text.substr(cut, after - cut));
        if (!is_in_piece(text.substr(first, after - first)) && !is_in_piece(" " + second))
            return cut;
    }
    return text.npos;
}

static bool set_too_long(Text text, size_t begin, size_t end, Problem *problem)
{
    char place[PLACE_SIZE];
    place_in_text(place, &text, begin);
    return problem_set(problem, place,
                       "split the text into shorter documents with <|endoftext|>, or use the "
                       "tokenizer of GPT-2 or BERT, which has no such limit",
                       "SentencePiece must encode %zu bytes of the text at once; the limit is %zu",
                       end - begin, part_max);
}

/* The end of the word at `at`, which includes the spaces before it. Spaces at the end of the text
 * belong to the last word. */
static size_t word_end(std::string_view text, size_t at)
{
    const size_t end = std::min(text.find(' ', text.find_first_not_of(' ', at)), text.size());
    return text.find_first_not_of(' ', end) == text.npos ? text.size() : end;
}

/* A word is encoded without its first space, which the library adds, or without all its spaces. */
static bool encode(const Tokenizer *tokenizer, Text text, Ids *ids, Problem *problem)
{
    const Model *model = static_cast<const Model *>(tokenizer->model);
    const std::string_view all(text.bytes, text.length);
    const bool by_words = model->by_words && all.find(blank) == all.npos;
    bool was_cut = false, is_cut;
    for (size_t at = 0, end; at < all.size() && ids->count < ids->limit; at = end) {
        end = by_words ? word_end(all, at) : all.size();
        const size_t begin = by_words && model->removes_space
                                 ? std::min(all.find_first_not_of(' ', at), end)
                                 : at + (at > 0 && !was_cut);
        is_cut = end - begin > part_max;
        if (is_cut) {
            const size_t cut = by_words && model->by_cuts
                                   ? last_cut(tokenizer, all, begin, begin + part_max)
                                   : all.npos;
            if (cut == all.npos)
                return set_too_long(text, begin, end, problem);
            end = cut;
        }
        encode_part(model, all.substr(begin, end - begin), was_cut, ids);
        was_cut = is_cut;
    }
    return true;
}

static void free_model(void *model)
{
    delete static_cast<Model *>(model);
}

/* What a piece adds to the middle of a text. A byte piece, such as <0x0A>, adds its byte. */
static std::string text_of(const SentencePieceProcessor *processor, int id)
{
    std::string piece = processor->IdToPiece(id);
    if (processor->IsControl(id))
        return "";
    if (processor->IsUnknown(id))
        return processor->DecodeIds({id});
    if (processor->IsByte(id))
        return std::string(1, static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)));
    for (size_t at = 0; (at = piece.find(blank, at)) != std::string::npos; at++)
        piece.replace(at, blank_size, " ");
    return piece;
}

/* Does the model add a space before each text, and drop it in decoding? */
static bool drops_space(const SentencePieceProcessor *processor, int id, const std::string &text)
{
    return text.size() > 1 && text[0] == ' ' && !processor->IsUnknown(id) &&
           processor->DecodeIds({id}) == text.substr(1);
}

/* Do pieces have spaces only at their beginning? */
static bool pieces_are_words(const Tokenizer *tokenizer, const SentencePieceProcessor *processor)
{
    for (int32_t id = 0; id < tokenizer->size; id++) {
        const std::string_view piece(tokenizer->bytes + tokenizer->begin[id],
                                     size_t(tokenizer->begin[id + 1] - tokenizer->begin[id]));
        const size_t letter = piece.find_first_not_of(' ');
        if (!processor->IsUnknown(id) && letter != piece.npos &&
            piece.find(' ', letter) != piece.npos)
            return false;
    }
    return true;
}

static int32_t id_of(const SentencePieceProcessor *processor, const char *name)
{
    const int id = processor->PieceToId(name);
    return processor->IsUnknown(id) ? -1 : id;
}

/* Finds out how to cut a text. Words can be encoded alone if no piece has parts of two, and the
 * model changes no character, except that it may remove spaces. A word can be cut if the space that
 * the library adds is a piece, and bytes spell unknown characters: in a model without bytes,
 * several unknown characters in a row have one id. */
static void find_cuts(const Tokenizer *tokenizer, Model *model)
{
    const auto *processor = &model->processor;
    const std::string begin = "a  b", end = "\t\n c\u00A0\u3000\uFB01 \u00E9e\u0301\u0085";
    const std::string found = processor->DecodeIds(processor->EncodeAsIds(begin + end + " "));
    model->removes_space = found == "a b" + end;
    model->by_words = tokenizer->spaced && pieces_are_words(tokenizer, processor) &&
                      (model->removes_space || found == begin + end + " ");
    model->by_cuts =
        id_of(processor, blank) >= 0 && processor->IsByte(processor->PieceToId("<0x00>"));
}

static void fill(Tokenizer *tokenizer, const SentencePieceProcessor *processor)
{
    tokenizer->special[UNKNOWN_TOKEN] = processor->unk_id();
    tokenizer->special[BEGIN_TOKEN] = processor->bos_id();
    tokenizer->special[END_TOKEN] = processor->eos_id();
    tokenizer->special[PAD_TOKEN] = processor->pad_id();
    tokenizer->special[MASK_TOKEN] = id_of(processor, "<mask>");
    for (int id = 0; id < processor->GetPieceSize(); id++) {
        const std::string text = text_of(processor, id);
        if (!tokenizer->spaced)
            tokenizer->spaced = drops_space(processor, id, text);
        tokenizer_put(tokenizer, text.data(), text.size());
    }
}

/* Reports the library's message, unless it names the library's source code or quotes bytes of the
 * file. */
static bool set_damaged(const char *path, const std::string &message, Problem *problem)
{
    const bool is_clear = message.find('(') == std::string::npos &&
                          utf8_valid_length(message.data(), message.size()) == message.size();
    return problem_set(problem, path, MODEL_HINT, "the SentencePiece model is damaged: %s",
                       is_clear ? message.c_str() : _("it is not complete"));
}

extern "C" bool sentencepiece_read(Tokenizer *tokenizer, const char *path, FileBytes file,
                                   Problem *problem)
{
    static const TokenizerKind kind = {encode, free_model};
    auto *model = new Model;
    tokenizer->kind = &kind;
    tokenizer->model = model;
    try {
        const auto status = model->processor.LoadFromSerializedProto({file.bytes, file.length});
        if (!status.ok())
            return set_damaged(path, std::string(status.message()), problem);
        fill(tokenizer, &model->processor);
        find_cuts(tokenizer, model);
    } catch (const std::exception &error) {
        return set_damaged(path, error.what(), problem);
    }
    return true;
}
