#!/usr/bin/env python3
"""reduce_gradients.py FULL REDUCED: shortens a reference of an encoder-decoder.

Replaces each gradient by its norm and its products with four vectors of signs, and drops the
attentions. Element i of vector k is negative if bit 13 of (i + 1) * 2654435761 (2 k + 1) is set.
"""
import array
import json
import struct
import sys

data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, body, out = json.loads(data[8:8 + size]), data[8 + size:], {}
payload = b""
for name, t in sorted(header.items()):
    if name == "__metadata__" or "attentions" in name:
        continue
    begin, end = t["data_offsets"]
    values, shape = body[begin:end], t["shape"]
    if name.startswith("grad."):
        x = array.array("f", values)
        reduced = [sum(v * v for v in x) ** 0.5]
        for k in range(4):
            signs = ((i + 1) * (2654435761 * (2 * k + 1)) >> 13 & 1 for i in range(len(x)))
            reduced.append(sum(-v if s else v for v, s in zip(x, signs)))
        values, shape = array.array("f", reduced).tobytes(), [5]
    out[name] = {"dtype": t["dtype"], "shape": shape,
                 "data_offsets": [len(payload), len(payload) + len(values)]}
    payload += values
text = json.dumps(out).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + payload)
