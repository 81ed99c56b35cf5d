"""OUTPUT4 files of every layout; the samples were written by pyyeti 1.4.7, an independent program."""

import base64
import struct
import zlib

import numpy as np
import pytest

import alembert as al
from alembert.flexible.nastran_output import read_output4

A = np.array([[1.5, 0, 0.0], [0, 0, -2.25], [0, 0, 1e-3], [3.0, 0, 4.0]])
BINARY = {
    "dense <": (
        "c-oU-U|?VdViq7~f?`Jn2#^4>b%2-=ia8iy;D<c}R>0u^Qm+Cv6J!<}T#o6$pOqgk`6dNG^$IwE)QLdtW`wFgYh9l<Z^1Wvkhlbr"
        "o7kYVpTD0g%xxl2d$8#R09^YNQU"
    ),
    "dense >": (
        "c-muNV31&7U|<Gf79eH<VMhfBV1UT!05KyJbJ+i2zzQ5V;7pKu6{wjY^VkkBK_u)0l6)_HT=~aA0In9KP6TQ<$b2UIZwuz7)mxv1"
        "ic7%U1TqIi`}zC1BDqZjY7d590AJY@QU"
    ),
    "bigmat <": (
        "c-oU-U|?Vd;y?fY|7QZyAnd3B0TMvA4iGakKmZ3+EsW2=@WUR&XMyuM9CV<1n343bL(PQ%rUQRge!S$H6kreG3xM^AK+R!<sy%C6"
        "pEhs7H+zt{1XS!F(2Z<Rwx7SBE6j}|NbW+{3jmrQ9Af"
    ),
    "bigmat >": (
        "c-muNV31&7U||0L|NkE#%>=@Z3J|~mk<$TUMg|Dr0I3D>?SC-90Eo}xzyas$Kru6t9(Itq2bdrN_5n%0mp-oi;~;>dM+9UJ)Gj9b"
        "Zwuz7)mxv1ii6z21a#v+Ak7A1`}zC1BDqln<}P%-0GzTMV*"
    ),
    "nonbigmat <": (
        "c-oU-U|?VdViq7~f?`Jn2#^4>Re+e00Rq^-Y-T9$hdm3N&EWu2rvWt!1lYl5u|s)G2mY-5c*!>@z#hUEZ~&<lf!fOmwfC%becHSQ"
        "-|Ru+5=ic0gVKKfey%Wgi9qebrWXKFX%t!"
    ),
    "nonbigmat >": (
        "c-muNV31&7U|<Gf79eH<VMhfBV1US}05Ky21h4^BGTQ%u@|YP|95@(Y0HjU>Y8D8v10mA^CJ4tqAj$XA$CZB^1mNmHYDJ*-g3M>K"
        "|F&RWTD|pIsJH~oJz#r*w4cA9E0ViJpmt&C1priI6j}"
    ),
}
DENSE = """\
       3       4       2       2A       1P,3E23.16
       1       1       4
 1.5000000000000000E+00 0.0000000000000000E+00 0.0000000000000000E+00
 3.0000000000000000E+00
       3       2       3
-2.2500000000000000E+00 1.0000000000000000E-03 4.0000000000000000E+00
       4       1       1
 1.4142135623730951E+00
"""
BIG = """\
       3      -4       2       2A       1P,3E23.16
       1       0       8
       3       1
 1.5000000000000000E+00
       3       4
 3.0000000000000000E+00
       3       0       8
       7       2
-2.2500000000000000E+00 1.0000000000000000E-03 4.0000000000000000E+00
       4       1       1
 1.4142135623730951E+00
"""
SMALL = """\
       3       4       2       2A       1P,3E23.16
       1       0       6
     196609
 1.5000000000000000E+00
     196612
 3.0000000000000000E+00
       3       0       7
     458754
-2.2500000000000000E+00 1.0000000000000000E-03 4.0000000000000000E+00
       4       1       1
 1.4142135623730951E+00
"""
NONE = """\
       2       2       6       2NONE    1P,3E23.16
       3       1       1
 1.4142135623730951E+00
"""
SAMPLES = {name: zlib.decompress(base64.b85decode(x)) for name, x in BINARY.items()} | {
    f"text {k}": (text + NONE).encode() for k, text in enumerate((DENSE, BIG, SMALL))
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_layout_is_read(tmp_path, sample):
    path = tmp_path / "a.op4"
    path.write_bytes(SAMPLES[sample])
    found = read_output4(path)
    assert list(found) == ["A", "NONE"]
    np.testing.assert_array_equal(found["A"].toarray(), A)
    np.testing.assert_array_equal(found["NONE"].toarray(), np.zeros((2, 2)))


def test_wide_integers_exponents_and_words(tmp_path):
    """Text with wide integers in the header and D for E; binary files of 64-bit words, and single precision."""
    path = tmp_path / "a.op4"
    wide = f"{3:16d}{4:16d}{2:8d}{2:8d}A       1P,3E23.16|I16"
    path.write_text(DENSE.replace(DENSE.splitlines()[0], wide).replace("E+00", "D+00"))
    np.testing.assert_array_equal(read_output4(path)["A"].toarray(), A)
    for text in (DENSE, BIG):  # those of records as well
        lines = text.splitlines()[1:]
        header = wide if text is DENSE else wide.replace(f"{4:16d}", f"{-4:16d}")
        lines = [
            x if "." in x else "".join(f"{int(x[k : k + 8]):16d}" for k in range(0, len(x), 8)) for x in lines
        ]
        path.write_text("\n".join([header, *lines, ""]))
        np.testing.assert_array_equal(read_output4(path)["A"].toarray(), A)

    def record(form, *values):
        body = struct.pack(form, *values)
        return struct.pack("<i", len(body)) + body + struct.pack("<i", len(body))

    long = (
        record("<4q16s", 2, 2, 6, 2, b"B".ljust(16))
        + record("<3q2d", 2, 1, 2, 7.0, 8.0)
        + record("<3qd", 3, 1, 1, 0.0)
    )
    path.write_bytes(long)
    np.testing.assert_array_equal(read_output4(path)["B"].toarray(), [[0, 7], [0, 8]])
    short = (
        record("<4i8s", 2, 2, 6, 1, b"B".ljust(8))
        + record("<3i2f", 2, 1, 2, 0.5, 8.0)
        + record("<3if", 3, 1, 1, 0.0)
    )
    path.write_bytes(short)
    np.testing.assert_array_equal(read_output4(path)["B"].toarray(), [[0, 0.5], [0, 8]])


def _with(content, place, byte):
    return content[:place] + bytes([byte]) + content[place + 1 :]


def test_what_is_damaged_is_refused(tmp_path):
    path = tmp_path / "a.op4"
    for content, message in (
        (b"what is this\n" * 4, "not read as OUTPUT4"),
        (b"", "the file is empty"),
        (b"\0\1\2\3" * 9, "begins neither as text nor with a record of 24 or 48 bytes"),
        (SAMPLES["dense <"][:90], "the file ends within a matrix"),
        (DENSE[:150].encode(), "the file ends within a matrix"),
        (
            DENSE.replace("       1       1       4", "       1       3       4").encode(),
            "A has 4 values from row 3 on in column 1",
        ),
        ((DENSE + "\n" + DENSE).encode(), "there are two matrices A"),
        (DENSE.replace(" 3.0000000000000000E+00", "                    NaN").encode(), "no finite numbers"),
        (_with(SAMPLES["dense <"], 32, 99), "a record ends at byte"),
    ):
        path.write_bytes(content)
        with pytest.raises(al.FileError, match=message):
            read_output4(path)
    # of complex matrices twice as many values as rows
    path.write_text(DENSE.replace("       3       4       2       2A", "       3       2       2       4A"))
    with pytest.raises(al.UnsupportedError, match="matrix A is complex; real matrices are read"):
        read_output4(path)
    with pytest.raises(al.FileError, match="No such file"):
        read_output4(tmp_path / "none.op4")


def test_against_pyyeti(tmp_path):
    with np.printoptions():  # pyyeti sets how NumPy prints
        op4 = pytest.importorskip("pyyeti.nastran.op4")
    rng = np.random.default_rng(0)
    B = rng.normal(size=(40, 30)) * (rng.random((40, 30)) > 0.7)
    path = str(tmp_path / "a.op4")
    for binary in (True, False):
        for layout in ("dense", "bigmat", "nonbigmat"):
            op4.write(path, {"B": B}, binary=binary, sparse=layout)
            np.testing.assert_array_equal(read_output4(tmp_path / "a.op4")["B"].toarray(), B)
