"""Ways to damage a file: its bytes, its header, its arrays, with a checksum that fits or not.

``damaged(content, kind, rng)`` takes the bytes of a sound file and gives those of another. All kinds but the first two
repair the length and the checksum, as anybody can.
"""

import hashlib
import json
import math

import numpy as np

from hscrf.files.container import DIGEST, DTYPES, FRAME, MAGIC, START

HUGE = (10**6, 10**9, 2**31 - 1, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400)
OTHERS = (None, True, False, 0, -1, 1, 2, 3, 0.5, 1e300, -1e300, math.nan, math.inf, -math.inf, *HUGE)
TEXTS = (
    "",
    "?",
    "root",
    "token",
    "trans",
    "segment",
    "gamma",
    "each",
    "dense",
    "strings",
    "symbols",
    "\ud800",
    "x" * 99,
)
LISTS = ([], {}, [0], [[]], [None], ["a", "a"], {"": 0}, {"function": "length"}, {"array": "coef"}, {"type": "LBFGS"})
EXTREMES = {
    "b": (0, 1),
    "i": (-(2**63), -(2**31), -(2**20), -2, -1, 0, 1, 2, 3, 100, 2**20, 2**31 - 1, 2**31, 2**63 - 1),
    "f": (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-320, 1e300, -1e300, 1.7e308, -1.7e308),
}


def open_file(content):
    """The JSON of a file, and the bytes of its arrays."""
    _, _, length = FRAME.unpack_from(content, len(MAGIC))
    return json.loads(content[START : START + length]), content[START + length : -DIGEST]


def close_file(text, data):
    """A file with the right length and checksum around any JSON, or any text, and any bytes."""
    text = text if isinstance(text, str) else json.dumps(text)
    encoded = text.encode("ascii")
    body = MAGIC + FRAME.pack(1, START + len(encoded) + len(data) + DIGEST, len(encoded)) + encoded + data
    return body + hashlib.sha256(body).digest()


def repaired(body):
    return body + hashlib.sha256(body).digest()


def damaged(content, kind, rng):
    return KINDS[kind](content, rng)


# ------------------------------------------------------------------------------
# Bytes


def truncate(content, rng):
    return content[: rng.integers(len(content))]


def flip(content, rng, first=0, last=None):
    """Some bytes changed; nothing repaired."""
    altered = bytearray(content)
    for k in rng.integers(first, len(content) if last is None else last, size=rng.choice([1, 1, 2, 8])):
        altered[k] ^= int(rng.integers(1, 256))
    return bytes(altered)


def flip_and_repair(content, rng):
    return repaired(flip(content[:-DIGEST], rng, START))


def flip_arrays(content, rng):
    first = len(content) - DIGEST - len(open_file(content)[1])
    return repaired(flip(content[:-DIGEST], rng, first))


def type_over(content, rng):
    """Some characters of the JSON replaced by others of its alphabet, which often leaves valid JSON."""
    _, _, length = FRAME.unpack_from(content, len(MAGIC))
    altered = bytearray(content[:-DIGEST])
    for k in rng.integers(START, START + length, size=rng.choice([1, 1, 2, 4])):
        altered[k] = int(rng.choice(np.frombuffer(b'0123456789-.e[]{}:,"abtfn ', dtype=np.uint8)))
    return repaired(bytes(altered))


# ------------------------------------------------------------------------------
# The header


def places(value, path=()):
    """Paths to all values inside a JSON value; of a long list only some."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if not isinstance(value, list) or key < 8 or key == len(value) - 1:
            yield (*path, key)
            yield from places(inner, (*path, key))


def a_place(content, rng):
    """A random field of the file: the object or list that holds it, and its key; every depth is possible."""
    found = list(places(content))
    depth = int(rng.integers(1, max(map(len, found)) + 1))
    found = [path for path in found if len(path) == depth]
    *path, key = found[rng.integers(len(found))]
    inside = content
    for step in path:
        inside = inside[step]
    return inside, key


def pick(rng, choices):
    return choices[rng.integers(len(choices))]


def replace_value(content, rng):
    content, data = open_file(content)
    inside, key = a_place(content, rng)
    inside[key] = pick(rng, pick(rng, [OTHERS, HUGE, TEXTS, LISTS]))
    return close_file(content, data)


def nudge_number(content, rng):
    """A number of the header becomes its neighbour, or far away."""
    content, data = open_file(content)
    for _ in range(100):
        inside, key = a_place(content, rng)
        if type(inside[key]) in (int, float):
            inside[key] = pick(rng, [inside[key] + 1, inside[key] - 1, -inside[key], inside[key] * 1000, *HUGE])
            break
    return close_file(content, data)


def exchange_values(content, rng):
    """Two values of the header change places, or one takes the place of the other."""
    content, data = open_file(content)
    (one, key), (other, name) = a_place(content, rng), a_place(content, rng)
    one[key], kept = json.loads(json.dumps(other[name])), one[key]
    if rng.random() < 0.5:
        other[name] = json.loads(json.dumps(kept))
    return close_file(content, data)


def delete_value(content, rng):
    content, data = open_file(content)
    inside, key = a_place(content, rng)
    del inside[key]
    return close_file(content, data)


def double_value(content, rng):
    """An item of a list, or a field of an object (with two values), occurs twice."""
    content, data = open_file(content)
    inside, key = a_place(content, rng)
    if isinstance(inside, list):
        inside.insert(key, inside[key])
        return close_file(content, data)
    inside["DOUBLE"] = pick(rng, [inside[key], None, 7])
    return close_file(json.dumps(content).replace('"DOUBLE"', json.dumps(key)), data)


def grow_together(content, rng):
    """All integers of one value become the same huge number: fields that agreed agree again."""
    content, data = open_file(content)
    header = content["header"]
    numbers = [value for value in leaves(header) if type(value) is int and value > 0]
    former, number = pick(rng, numbers or [1]), pick(rng, HUGE)
    content["header"] = exchanged(header, former, number)
    return close_file(content, data)


def rename_together(content, rng):
    """All strings of one value become the same other string."""
    content, data = open_file(content)
    texts = [value for value in leaves(content["header"]) if isinstance(value, str)]
    content["header"] = exchanged(content["header"], pick(rng, texts), pick(rng, [*texts, *TEXTS]))
    return close_file(content, data)


def leaves(value):
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def exchanged(value, former, new):
    if isinstance(value, dict):
        return {exchanged(key, former, new) if isinstance(new, str) else key: exchanged(inner, former, new)
                for key, inner in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [exchanged(inner, former, new) for inner in value]
    return new if type(value) is type(former) and value == former else value


# ------------------------------------------------------------------------------
# The arrays


def arrays_of(content, data):
    arrays = {}
    for entry in content["arrays"]:
        dtype = DTYPES[entry["dtype"]]
        count = math.prod(entry["shape"])
        arrays[entry["name"]] = np.frombuffer(data, dtype, count, entry["offset"]).reshape(entry["shape"]).copy()
    return arrays


def with_arrays(content, arrays):
    """The file with these arrays, whose table is written anew."""
    table, data = [], b""
    for name, array in arrays.items():
        table.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "offset": len(data)})
        data += array.tobytes()
    return close_file({**content, "arrays": table}, data)


def set_extremes(content, rng):
    content, data = open_file(content)
    arrays = arrays_of(content, data)
    filled = [array for array in arrays.values() if array.size]
    array = pick(rng, filled) if filled else np.zeros(1)
    flat = array.reshape(-1)
    values = EXTREMES[array.dtype.kind]
    with np.errstate(over="ignore"):
        for k in rng.integers(flat.size, size=rng.choice([1, 1, 2, 5])):
            near = [flat[k] + 1, flat[k] - 1, flat.max(), flat.size] if array.dtype.kind == "i" else []
            flat[k] = (
                np.array(pick(rng, [*values, *near]), dtype=object)
                .astype(np.int64 if near else float)
                .astype(array.dtype)
            )
    return with_arrays(content, arrays)


def swap_arrays(content, rng):
    """Two arrays change their names, or all pointers to one go to the other."""
    content, data = open_file(content)
    arrays = arrays_of(content, data)
    one, other = (pick(rng, list(arrays)) for _ in range(2))
    if rng.random() < 0.5:
        arrays[one], arrays[other] = arrays[other], arrays[one]
        return with_arrays(content, arrays)
    content["header"] = exchanged(content["header"], one, other)
    return with_arrays(content, arrays)


def change_dtype(content, rng):
    """The same numbers in another dtype, or the same bytes read as another."""
    content, data = open_file(content)
    dtype = pick(rng, list(DTYPES))
    if rng.random() < 0.5:
        pick(rng, content["arrays"])["dtype"] = dtype
        return close_file(content, data)
    arrays = arrays_of(content, data)
    name = pick(rng, list(arrays))
    with np.errstate(invalid="ignore", over="ignore"):
        arrays[name] = arrays[name].astype(dtype)
    return with_arrays(content, arrays)


def change_shape(content, rng):
    """An array is cut, grown, reshaped, emptied or left out."""
    content, data = open_file(content)
    arrays = arrays_of(content, data)
    name = pick(rng, list(arrays))
    array = arrays[name]
    flat = array.reshape(-1)
    forms = [
        flat[:-1],
        flat[1:],
        np.append(flat, flat[-1:]),
        np.repeat(flat, 2),
        flat[:0],
        array[None],
        array[..., None],
    ]
    forms += [array.T, flat[:1].reshape(-1)[0:1].reshape(()) if flat.size else flat, np.zeros((0, 3), array.dtype)]
    arrays[name] = np.ascontiguousarray(pick(rng, forms)).astype(array.dtype)
    if rng.random() < 0.1:
        del arrays[name]
    return with_arrays(content, arrays)


def change_table(content, rng):
    """Change the description of an array: shape, offset, dtype, name."""
    content, data = open_file(content)
    entry = pick(rng, content["arrays"])
    key = pick(rng, list(entry))
    if key == "shape" and rng.random() < 0.7:
        entry[key] = [pick(rng, [0, 1, 2, size, size + 1, max(size - 1, 0), *HUGE]) for size in [*entry[key], 1]]
    elif key == "offset" and rng.random() < 0.7:
        entry[key] += pick(rng, [-8, -1, 1, 8, len(data)])
    else:
        entry[key] = pick(rng, pick(rng, [OTHERS, TEXTS, LISTS]))
    return close_file(content, data)


KINDS = {
    function.__name__.replace("_", " "): function
    for function in (
        truncate,
        flip,
        flip_and_repair,
        flip_arrays,
        type_over,
        replace_value,
        nudge_number,
        exchange_values,
        delete_value,
        double_value,
        grow_together,
        rename_together,
        set_extremes,
        swap_arrays,
        change_dtype,
        change_shape,
        change_table,
    )
}
