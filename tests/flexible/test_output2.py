"""OUTPUT2 files of every layout, written here by the rules that the reader states.

On 18 November 2026 the reader and pyyeti 1.4.7, an independent program, read the same from the 31 OUTPUT2 files of Nastran
that come with the latter: all of their 16 real matrices, bit for bit.
"""

import struct

import numpy as np
import pytest

import alembert as al
from alembert.flexible.nastran_output import read_output2

A = np.array([[1.5, 0, 0.0], [0, 0, -2.25], [0, 0, 0.125], [3.0, 0, 4.0]])


def output2(matrices, order="<", word=4, double=True, label=True, complex_=False):
    """The bytes of a file; zeros split a column into strings, columns of zeros have none."""
    integer = "i" if word == 4 else "q"
    value = "d" if double or word == 8 else "f"
    found = []

    def record(data):
        size = struct.pack(f"{order}i", len(data))
        found.append(size + data + size)

    def key(k, data=None):
        record(struct.pack(f"{order}{integer}", k))
        if data is not None:
            record(data)

    def words(*values):
        return struct.pack(f"{order}{len(values)}{integer}", *values)

    def name(text):
        halves = text.ljust(8).encode()
        return halves if word == 4 else halves[:4] + b"    " + halves[4:] + b"    "

    if label:
        key(3, words(11, 18, 26))
        key(7, b"NASTRAN FORT TAPE ID CODE - ".ljust(7 * word))
        key(2, name("LABEL"))
        key(-1)
        key(0)
    for text, M in matrices.items():
        kind = (2 if double else 1) + 2 * complex_
        key(2, name(text))
        key(-1)
        key(7, words(101, M.shape[1], M.shape[0], 2, kind, 0, 0))
        key(-2)
        key(1, words(0))
        key(2, name(text))
        key(-3)
        part = -4
        for column in M.T:
            key(1, words(1))
            ends = np.flatnonzero(np.diff(np.concatenate([[0], column != 0, [0]])))
            for a, b in zip(ends[::2], ends[1::2], strict=True):
                data = struct.pack(f"{order}{b - a}{value}", *column[a:b])
                key(len(data) // word, words(int(a) + 1) + data)
            key(part)
            part -= 1
        key(1, words(0))
        key(0)
    # a table of two words
    key(2, name("CASECC"))
    key(-1)
    key(7, words(*range(7)))
    key(-2)
    key(1, words(0))
    key(2, name("CASECC"))
    key(-3)
    key(1, words(0))
    key(2, words(7, 8))
    key(-4)
    key(1, words(0))
    key(0)
    key(0)
    return b"".join(found)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("word", "double"), [(4, True), (4, False), (8, True), (8, False)])
def test_matrices_of_every_layout(tmp_path, order, word, double):
    path = tmp_path / "a.op2"
    path.write_bytes(output2({"KGG": A, "MGG": 2 * A}, order, word, double, label=double))
    found = read_output2(path)
    assert list(found) == ["KGG", "MGG"]
    np.testing.assert_array_equal(found["KGG"].toarray(), A)  # numbers that single precision holds
    np.testing.assert_array_equal(found["MGG"].toarray(), 2 * A)


def test_complex_matrices_are_passed_over(tmp_path):
    path = tmp_path / "a.op2"
    path.write_bytes(output2({"KGG": A}, complex_=True))
    assert read_output2(path) == {}


GOOD = output2({"KGG": A})
HUGE = GOOD.replace(struct.pack("<ii", 3, 4) + struct.pack("<i", 2), struct.pack("<iii", 3, 2**31 - 1, 2))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin with a key of one word, of 4 or 8 bytes"),
        (b"BEGIN BULK", "does not begin with a key"),
        (GOOD[:22], "the record at byte 12 is longer than the file"),
        (GOOD[:400], "the file ends within a data block"),
        (GOOD[:4] + b"\7" + GOOD[5:], "7 words are announced, and 12 bytes come"),
        (GOOD[:8] + b"\3" + GOOD[9:], "the record at byte 0 has another length at its end"),
        (GOOD[:32] + GOOD[44:], "a record of 28 bytes where a key of 4 is expected"),
        (output2({"KGG": np.full((1, 1), np.inf)}), "KGG has entries that are no finite numbers"),
        (HUGE, "KGG has 2147483647 rows and 3 columns in .* bytes, damaged"),
    ],
)
def test_damaged_files(tmp_path, content, words):
    path = tmp_path / "a.op2"
    path.write_bytes(content)
    with pytest.raises(al.FileError, match=f"a.op2: not read as OUTPUT2: .*{words}"):
        read_output2(path)


def test_a_structure_from_a_deck_and_matrices(tmp_path):
    """A spring between two grid points along x; the other unknowns have masses."""
    deck, path = tmp_path / "a.bdf", tmp_path / "a.op2"
    deck.write_text("BEGIN BULK\nGRID,1,,0.,0.,0.\nGRID,2,,1.,0.,0.\nENDDATA\n")
    K = np.zeros((12, 12))
    K[np.ix_([0, 6], [0, 6])] = [[5.0, -5.0], [-5.0, 5.0]]
    path.write_bytes(output2({"MGG": np.eye(12), "KGG": K}))
    fe = al.flexible.read_nastran(deck, matrices=path)
    assert fe.names == ("1", "2")
    np.testing.assert_array_equal(fe.K.toarray(), K)
    path.write_bytes(output2({"MGG": np.eye(12)}))
    with pytest.raises(al.FileError, match=r"a.op2: no matrix 'KGG'; there is MGG"):
        al.flexible.read_nastran(deck, matrices=path)
    with pytest.raises(al.FileError, match=r"b.op2: No such file"):
        al.flexible.read_nastran(deck, matrices=tmp_path / "b.op2")
