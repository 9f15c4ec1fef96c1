"""The order in which a run reads its rows, and the tokens of a text. With these, PyTorch trains on
the kit's batches. A test compares the order with the kit's."""
import array
import struct

MASK = (1 << 64) - 1
HEADER, ROWS_AT = 96, 32  # bytes before the begins of a text's rows, and before the numbers of rows and ids (common/data/cache.c)


def mix(x):
    """The finaliser of SplitMix64 (common/base/philox.c)."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def key_of(seed, name, step):
    found = mix(seed)
    for byte in name.encode():
        found = mix(found ^ byte)
    return mix(found ^ mix(step))


def philox(key, index, attempt):
    """The first two of the four numbers, as one 64-bit number (Salmon et al. 2011)."""
    k0, k1, low = key & 0xFFFFFFFF, key >> 32, 0xFFFFFFFF
    c0, c1, c2, c3 = index & low, index >> 32, attempt, 0
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & low, p0 >> 32 ^ c3 ^ k1, p0 & low
        k0, k1 = k0 + 0x9E3779B9 & low, k1 + 0xBB67AE85 & low
    return c1 << 32 | c0


def draw_below(key, index, count):
    """An unbiased number in [0, count)."""
    reject, attempt = (1 << 64) % count, 0
    while True:
        x = philox(key, index, attempt)
        if x <= MASK - reject:
            return x % count
        attempt += 1


def permutation(rows, seed, epoch):
    """The order of an epoch (common/data/permutation.c)."""
    order, key = list(range(rows)), key_of(seed, "permutation", epoch)
    for i in range(rows - 1, 0, -1):
        j = draw_below(key, i, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def batches(rows, batch, count, seed=1):
    """The rows of each of the first `count` steps on one replica. The last rows of an epoch are
    left out if they do not fill a batch."""
    found, epoch = [], 0
    while len(found) < count:
        order = permutation(rows, seed, epoch)
        found += [order[i:i + batch] for i in range(0, rows - batch + 1, batch)]
        epoch += 1
    return found[:count]


def tokens_of(path):
    """The ids in a token cache of a text."""
    with open(path, "rb") as file:
        content = file.read()
    rows, count = struct.unpack_from("<2q", content, ROWS_AT)
    first = HEADER + 8 * (rows + 1)
    return array.array("i", content[first:first + 4 * count])
