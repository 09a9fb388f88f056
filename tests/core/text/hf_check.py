#!/usr/bin/env python3
"""Compares Cloze's tokenizer with Hugging Face's; needs transformers and tokenizers.

hf_check.py tokens FOLDER CASES...   loads FOLDER (as Tokenizer::Save writes it) by AutoTokenizer and compares ids and offsets with those
                                     in CASES (JSON lines with text, ids, offsets and, optionally, text_pair, max_length). With
                                     CLOZE_HF_CHECK=DIR in its environment text_test leaves such folders and cases in DIR.
hf_check.py words FOLDER TEXT SIZE   trains a vocabulary on the file TEXT and compares it with FOLDER's vocab.txt
hf_check.py tables                   asks the normalizer about each code point; prints a checksum for unicode_test.cc and ranges for
                                     unicode_tables.h
hf_check.py letters                  prints the ranges of letter_tables.h
"""
import json
import os
import sys
import zlib


def tokens(folder, files):
    from transformers import AutoTokenizer
    config = os.path.join(folder, "config.json")
    if not os.path.exists(config):
        with open(config, "w") as f:
            json.dump({"model_type": "bert"}, f)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    print(folder, type(tokenizer).__name__, len(tokenizer), tokenizer.model_max_length, tokenizer.special_tokens_map)
    cases = differing = 0
    for name in files:
        for line in open(name, encoding="utf-8"):
            case = json.loads(line)
            limit = case.get("max_length")
            got = tokenizer(case["text"], case.get("text_pair"), return_offsets_mapping=True, max_length=limit,
                            truncation="longest_first" if limit else False)
            cases += 1
            if got["input_ids"] != case["ids"] or [list(o) for o in got["offset_mapping"]] != case["offsets"]:
                differing += 1
                if differing < 6:
                    print("DIFFERS", json.dumps(case), got["input_ids"], got["offset_mapping"], sep="\n  ")
    print(f"{cases} cases, {differing} differ")
    return differing == 0 and cases > 0


def words(folder, text, size):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    special = ["<pad>", "<unk>", "<class>", "<sep>", "<mask>"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train([text], trainers.WordPieceTrainer(vocab_size=int(size), min_frequency=2, limit_alphabet=1000, special_tokens=special,
                                                      show_progress=False))
    theirs = set(tokenizer.get_vocab())
    ours = set(open(os.path.join(folder, "vocab.txt"), encoding="utf-8").read().split("\n")[:-1])
    print(f"ours {len(ours)}, theirs {len(theirs)}, common {len(ours & theirs)}")
    return ours == theirs


def ranges(name, points):
    found = []
    for c in points:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    print(f"{name}:", ", ".join("{0x%X, 0x%X}" % tuple(r) for r in found))


def tables():
    from tokenizers import normalizers, pre_tokenizers

    def normalizer(**on):
        keys = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        return normalizers.BertNormalizer(**{k: k in on for k in keys}).normalize_str
    clean, chinese = normalizer(clean_text=1), normalizer(handle_chinese_chars=1)
    strip, lower, both = normalizer(strip_accents=1), normalizer(lowercase=1), normalizer(strip_accents=1, lowercase=1)
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    crc, classes = 0, {"kRemoved": [], "kSpaces": [], "kPunctuation": [], "kMarks": [], "kChinese": []}
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000:
            continue
        c = chr(point)
        cleaned, parts = clean(c), [p for p, _ in split("a" + c + "b")]
        flags = "D" if cleaned == "" else "S" if cleaned == " " else "K"
        flags += "C" if chinese(c) != c else "-"
        flags += "W" if parts == ["a", "b"] else "P" if len(parts) == 3 else "-"
        for name, flag in (("kRemoved", "D"), ("kChinese", "C"), ("kPunctuation", "P"), ("kSpaces", "W")):
            if flag in flags:
                classes[name].append(point)
        if strip(c) == "":
            classes["kMarks"].append(point)
        crc = zlib.crc32(f"{flags}{strip(c)}\t{lower(c)}\t{both(c)}\n".encode(), crc)
    for name, points in classes.items():
        ranges(name, points)
    print(f"checksum 0x{crc:08X}u")
    return True


# Letters and numbers are what the pattern of the byte-level pre-tokenizer keeps together with "a" and with "1".
def letters():
    from tokenizers import pre_tokenizers
    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    ranges("kLetters", [c for c in points if len(split("a" + chr(c))) == 1])
    ranges("kNumbers", [c for c in points if len(split("1" + chr(c))) == 1])
    return True


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "tokens":
        return tokens(arguments[1], arguments[2:])
    if len(arguments) == 4 and arguments[0] == "words":
        return words(*arguments[1:])
    if arguments == ["tables"]:
        return tables()
    if arguments == ["letters"]:
        return letters()
    print(__doc__)
    return False


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
