#!/usr/bin/env python3
"""Writes the reference cases of wordpiece/: WordPiece vocabularies learned and used by Hugging Face's tokenizers, with and without case.

Needs python3 with tokenizers (Debian sid has it as a package). The texts are those of make_byte_level.py and more.
    python3 make_wordpiece.py OUT_DIR
vocab/cased, vocab/uncased    vocab.txt and tokenizer.json, as BERT's
cased.cases.jsonl, uncased.cases.jsonl    text, ids, tokens, offsets in code points and in bytes, word ids
pairs_truncation.jsonl    pairs and single texts, some truncated (longest first), some padded
presplit_words.jsonl      lists of words
invalid_utf8.jsonl        bytes that are not UTF-8, and the text that they are read as
"""
import base64, json, os, random, sys
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from make_byte_level import LINES, TEXTS

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MORE = ["[MASK]", "a[MASK]b", "a [MASK] b", "[CLS] x [SEP]", "[mask] [Mask]", "[PAD][UNK]", "[MASK", "x" * 100, "x" * 101, "é" * 100, "die Größe " * 20,
        "ÀÉÎÕÜ àéîõü ĄĘŚ ąęś ÅÄÖ", "İstanbul ıI ẞß ŉ ĳ Ǆǅǆ", "ΑΣ ΣΑΣ ὈΔΥΣΣΕΎΣ", "ＡＢＣ　ｄｅｆ１２３", "ﬁne ﬂuﬀ ①②③ Ⅳ ㎏", "한국어 한국어", "カタカナ ｶﾞｷﾞ ひらがな", "a\u0300bc\u0301d",
        "soft\u00adhyphen", "\ufeffbom \u200e\u200fmarks", "\u0000\ufffd", "a\u0000b", "tab\u000bvertical\u000cfeed", "\u0085next\u2028line\u2029paragraph", "₤€£¥ ¢", "don't—stop…now", "“quoted” ‘words’ «ici»",
        "`code` ^caret ~tilde |bar", "3.14e-10 0x1F 1,234,567.89", "𠀀𠀁 㐀㐁 豈更 ｱ", "नमस्ते दुनिया", "ภาษาไทย", "שָׁלוֹם", "العَرَبِيَّة", "Ελληνικά ά", "ё й Й Ё", "👍🏽 👩‍👩‍👧 🇩🇪 x❤️y", "\U000f0000 \ue000 private"]
BYTES = [b"abc\xff def", b"\xff", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82(", b"\xe2(\xa1", b"\xf0\x9f\x98", b"\xf0\x9f\x98 x", b"\xf0(\x8c\xbc", b"\xed\xa0\x80", b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\xaf",
         b"\xe0\x80\xaf", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"the \x80\x81\x82 dog", b"caf\xe9 noir", b"\xfe\xff\x00t", b"cut \xe2\x99 New"]


def make(out, lower, text):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(text.split("\n"), trainers.WordPieceTrainer(vocab_size=700, min_frequency=2, special_tokens=SPECIAL, show_progress=False))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    folder = os.path.join(out, "vocab", "uncased" if lower else "cased")
    os.makedirs(folder, exist_ok=True)
    tokenizer.model.save(folder)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    return tokenizer


def write(out, name, rows):
    with open(os.path.join(out, name), "w", encoding="utf-8") as f:
        for number, row in enumerate(rows):
            f.write(json.dumps({"id": number, **row}, ensure_ascii=True) + "\n")


def bytes_of(text, offsets):
    return [[len(text[:at].encode()) for at in span] for span in offsets]


def pairs(tokenizers, texts, rng):
    for number in range(60):
        name = rng.choice(["cased", "uncased"])
        first, second = rng.choice(texts), rng.choice(texts) if number % 4 else None
        limit = rng.choice([None, 5, 8, 16, 24]) if number > 9 else None
        padded = limit is not None and number % 3 == 0
        tokenizer = tokenizers[name]
        tokenizer.no_truncation(), tokenizer.no_padding()
        if limit:
            tokenizer.enable_truncation(limit, strategy="longest_first")
        if padded:
            tokenizer.enable_padding(length=limit)
        e = tokenizer.encode(first, second)
        tokenizer.no_truncation(), tokenizer.no_padding()
        yield {"vocab": name, "text": first, "text_pair": second, "max_length": limit, "truncation": "longest_first" if limit else False,
               "pad_to_max_length": padded, "ids": e.ids, "token_type_ids": e.type_ids, "offsets": e.offsets}


def words(tokenizers, texts, rng):
    for number in range(40):
        name = rng.choice(["cased", "uncased"])
        some = rng.choice([t for t in texts if t.split()]).split() if number % 2 else [w for t in rng.choices(texts, k=3) for w in t.split()[:4]]
        e = tokenizers[name].encode(some, is_pretokenized=True)
        yield {"vocab": name, "words": some, "ids": e.ids, "word_ids": e.word_ids, "offsets": e.offsets}


def main(out):
    rng = random.Random(6)
    syllables = ["ba", "re", "tin", "os", "mu", "ka", "lo", "é", "ß", "жи", "ra", "Ke", "No"]
    text = LINES * 2 + "".join(" ".join("".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(12)) + ".\n" for _ in range(60))
    tokenizers = {"cased": make(out, False, text), "uncased": make(out, True, text)}
    alphabet = list("abcdeXYZ019'.,!-_ \t\n") + ["  ", "'s", "é", "É", "ß", "ж", "Ж", "東", "\u3000", "\u0301", "½", "😀", "[MASK]", "[SEP]", "\u00a0", "the ", " dog", "ing "]
    texts = TEXTS + MORE + LINES.split("\n") + ["".join(rng.choices(alphabet, k=rng.randint(1, 24))) for _ in range(160)]
    for name, tokenizer in tokenizers.items():
        rows = []
        for one in texts:
            e = tokenizer.encode(one)
            rows.append({"category": "text", "text": one, "ids": e.ids, "tokens": e.tokens, "offsets": e.offsets, "byte_offsets": bytes_of(one, e.offsets), "word_ids": e.word_ids})
        write(out, name + ".cases.jsonl", rows)
    write(out, "pairs_truncation.jsonl", pairs(tokenizers, texts, rng))
    write(out, "presplit_words.jsonl", words(tokenizers, texts, rng))
    write(out, "invalid_utf8.jsonl", ({"bytes_base64": base64.b64encode(b).decode(), "text_after_replacement": b.decode("utf-8", "replace"),
                                       **{name + "_ids": t.encode(b.decode("utf-8", "replace")).ids for name, t in tokenizers.items()}} for b in BYTES))


main(sys.argv[1])
