/* SentencePiece (LLaMA), by libsentencepiece. */
#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

using sentencepiece::SentencePieceProcessor;

static const char blank[] = "\xE2\x96\x81"; /* U+2581, which stands for a space */
static const size_t blank_size = sizeof blank - 1;

#define MODEL_HINT                                                                                 \
    N_("copy or download it again: a SentencePiece model is a file like LLaMA's tokenizer.model")

struct Model {
    SentencePieceProcessor processor;
    bool by_words = false; /* each word can be encoded alone */
    KnownWords *known = known_words_new();
    ~Model()
    {
        free(known);
    }
};

static void encode_part(const Model *model, const char *text, size_t length, Ids *ids)
{
    if (known_word_put(model->known, text, length, ids))
        return;
    const std::vector<int> found = model->processor.EncodeAsIds({text, length});
    for (int id : found)
        ids_put(ids, id);
    known_word_keep(model->known, text, length, found.data(), found.size());
}

/* Each word includes the spaces before it, without the first one, which the library adds. Spaces at
 * the end of the text belong to the last word. */
static void encode(const Tokenizer *tokenizer, const char *text, size_t length, Ids *ids)
{
    const Model *model = static_cast<const Model *>(tokenizer->model);
    const std::string_view all(text, length);
    if (!model->by_words || all.find(blank) != all.npos) {
        encode_part(model, text, length, ids);
        return;
    }
    for (size_t at = 0, end; at < length && ids->count < ids->limit; at = end) {
        end = std::min(all.find(' ', all.find_first_not_of(' ', at)), length);
        if (all.find_first_not_of(' ', end) == all.npos)
            end = length;
        const size_t begin = at + (at > 0);
        encode_part(model, text + begin, end - begin, ids);
    }
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

/* Can each word be encoded alone? Yes, if the model changes no character and has no piece with a
 * space after another character. */
static bool is_by_words(const Tokenizer *tokenizer, const SentencePieceProcessor *processor)
{
    const std::string probe = "a  b\t\n c\u00A0\u3000\uFB01 \u00E9e\u0301\u0085 ";
    for (int32_t id = 0; id < tokenizer->size; id++) {
        const std::string_view piece(tokenizer->bytes + tokenizer->begin[id],
                                     size_t(tokenizer->begin[id + 1] - tokenizer->begin[id]));
        const size_t letter = piece.find_first_not_of(' ');
        if (!processor->IsUnknown(id) && letter != piece.npos &&
            piece.find(' ', letter) != piece.npos)
            return false;
    }
    return tokenizer->spaced && processor->DecodeIds(processor->EncodeAsIds(probe)) == probe;
}

static int32_t id_of(const SentencePieceProcessor *processor, const char *name)
{
    const int id = processor->PieceToId(name);
    return processor->IsUnknown(id) ? -1 : id;
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
            return set_damaged(path, status.message(), problem);
        fill(tokenizer, &model->processor);
        model->by_words = is_by_words(tokenizer, &model->processor);
    } catch (const std::exception &error) {
        return set_damaged(path, error.what(), problem);
    }
    return true;
}
