#!/usr/bin/env python3
"""Writes the reference cases of byte_level/: a byte-level BPE learned and used by Hugging Face's tokenizers.

Needs python3 with tokenizers (Debian sid has it as a package).
    python3 make_byte_level.py OUT_DIR
text.txt        what it was learned from: hand-written, plus words put together at random
vocab.json, merges.txt, tokenizer.json   the result, as RoBERTa's files
cases.jsonl     text, add_prefix_space, trim_offsets, ids, offsets in code points, word ids; text_pair and presplit words in some
"""
import json, os, random, sys
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

LINES = """The quick brown fox jumps over the lazy dog. The dog's asleep; it doesn't mind, and they're friends.
We'll see what I've said: he'd rather not, I'm sure. 'Tis the season, 'twas the night -- rock 'n' roll!
Numbers: 1, 22, 333, 4444 and 55555; 3.14159, 1,000,000 and 50% of $20 are 10. Page 12a, B2B, 4x4, 2nd.
Grüße aus München, wo die Häuser höher und die Straßen süßer sind; çà et là, un café crème à Paris, déjà vu.
Привет, мир! Как дела? Всё хорошо, спасибо. Мир велик, и мир мал.
東京は日本の首都です。日本語の文には空白がありません。東京、京都、大阪。
مرحبا بالعالم. שלום עולם. नमस्ते दुनिया। สวัสดีชาวโลก 안녕하세요 세계
Emoji: 😀 😀😀 👩‍👩‍👧 🇩🇪 ❤️ and symbols ± × ÷ ½ ² ³ Ⅷ ① → ≠ ∞ ©®™
def f(x):\n    return x  +  1\n\n\n\tif a != b: pass  \n   \nend\r\nwindows line\r\n
http://example.org/a_b?c=d&e=f#g user@example.org C++20 x86_64 snake_case camelCase CONSTANT_CASE
"""
TEXTS = ["", " ", "  ", "\n", " \n", "\t\n ", "a", " a", "a ", "  a  b  ", "a\n\nb", "a \n b", "x\u00a0y", "x\u3000y \u2028z", "\u00a0", "don't", "DON'T",
         "I'm we'll they've he'd you're it's 'tis ' s 's", "''s'''ll", "can''t", "l'été d'Émile", "1½ 2² Ⅷ① ٣٤ 一二", "e\u0301 n\u0303o", "\u0301", "ﬁ ß ǅ ʰ ª º",
         "<s>", "</s> <pad>", "a<mask>b", "a <mask> b", "a  \t<mask>  b", "<mask>", " <mask>", "<mask><mask> <mask>", "<mask", "< mask>", "<unk>x<s>y</s>",
         "Hello <mask>, how are you?", "The dog's <mask> isn't.", "\u200bzero\u200dwidth\ufeff", "\u0000\u0001\u007f\u0080", "\ufffd\ufffe\U0010ffff", "𝔘𝔫𝔦 𐍈 😀😀a", "🇩🇪👩‍👩‍👧",
         "東京は日本の首都です。", "สวัสดีชาวโลก", "नमस्ते", "a" * 70, "ab" * 40, " " * 9 + "x" + " " * 5, "\n" * 7 + "y", "\r\n\r\n z\r", "A.B,C;D:E!F?", "--- ... !!! ?!?", "$%^&*()_+{}|",
         "\u1680\u2000\u205f\u202fq", "\u180e\u200b\u2060w", "tab\tsep\tvalues", "x\u0085y", "ÀÉÎÕÜ çñ", "Ünï", "a\u0300\u0301\u0302b", "1a2b3c", "a1", "1 000 000,00 €"]
TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = random.Random(5)
    syllables = ["ba", "re", "tin", "os", "mu", "ka", "lo", "é", "ß", "жи", "ra"]
    text = LINES * 2 + "".join(" ".join("".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(12)) + ".\n" for _ in range(40))
    with open(os.path.join(out, "text.txt"), "w", encoding="utf-8", newline="") as f:
        f.write(text)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=600, min_frequency=2, show_progress=False, special_tokens=TOKENS,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([os.path.join(out, "text.txt")], trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    tokenizer.model.save(out)
    alphabet = list("abcdeXYZ019'.,!-_ \t\n") + ["  ", "'s", "'ll", "é", "ß", "ж", "東", "\u3000", "\u0301", "½", "😀", "<mask>", "</s>", "\u00a0", "the ", " dog"]
    texts = TEXTS + ["".join(rng.choices(alphabet, k=rng.randint(1, 24))) for _ in range(120)]
    # No word is glued to an added token with a prefix put between them: there Hugging Face's trimmed offsets lose a character.
    with open(os.path.join(out, "cases.jsonl"), "w", encoding="utf-8") as f:
        for prefix, trim in ((False, True), (True, True), (False, False), (True, False)):
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
            tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=trim, add_prefix_space=prefix)
            if trim and not prefix:
                tokenizer.save(os.path.join(out, "tokenizer.json"))
            for number, text in enumerate(texts):
                if prefix and any(t in text for t in TOKENS):
                    continue
                if not trim and number % 4:
                    continue
                case = {"text": text, "prefix": prefix, "trim": trim}
                pair = texts[number - 1] if number % 9 == 3 and not (prefix and any(t in texts[number - 1] for t in TOKENS)) else None
                if pair is not None:
                    case["text_pair"] = pair
                if prefix and trim and number % 5 == 0 and text.split():
                    case["words"] = text.split()
                    e = tokenizer.encode(case["words"], is_pretokenized=True)
                else:
                    e = tokenizer.encode(text, pair)
                case.update(ids=e.ids, offsets=e.offsets, word_ids=e.word_ids, decoded=tokenizer.decode(e.ids))
                f.write(json.dumps(case, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
