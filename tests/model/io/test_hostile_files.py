"""Small files that would take all memory or all time: each is refused at once, with the file's name."""

import os
import re
import signal

import pytest

from alembert import FileError, load
from alembert.library import chain
from alembert.model.io import native
from alembert.model.io.mjcf import load_mjcf
from alembert.view.scene import read_mesh

HEAD = 'format = "alembert-model"\nversion = 1\n'
GEOM = '<geom size="1"/>'


@pytest.fixture(autouse=True)
def bounded():
    """A file that is not refused would go on for minutes."""

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".".join("a" * 100_000) + " = 1", "nested more than 24 deep"),
        ("[" + ".".join("a" * 100_000) + "]", "nested more than 24 deep"),
        ("x = { " + ' . '.join(["'a'", '"b"'] * 50_000) + " = 1 }", "nested more than 24 deep"),
        ("name = 0x" + "f" * 10_000_000, "line has 10000009 characters; at most 1000000 are read"),
        ("gravity = [0, 0, 0x" + "f" * 100_000 + "]", "whole number has 400000 bits, too large for a number"),
        ("gravity = [0, 0, 0b" + "1" * 20_000 + "]", "whole number has 20000 bits, too large for a number"),
        ('name = "' + "x" * 20_000_000 + '"', "line has 20000009 characters; at most 1000000 are read"),
        ('name = "' + "x" * 200_000 + '"', "text has 200000 characters; at most 100000 are read"),
        ('"' + "x" * 2_000 + '" = 1', "key has 2000 characters; at most 1000 are read"),
        ("gravity = " + "[" * 100_000, "nested more than 24 deep"),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_own_format(text, message, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(HEAD + text + "\n")
    with pytest.raises(FileError, match=f"^{re.escape(str(path))}(:3)?: .*{re.escape(message)}"):
        load(path)


def test_huge_numbers_of_yaml():
    with pytest.raises(FileError, match=r"^<text>: a whole number has 400000 bits, too large for a number$"):
        native.loads("format: alembert-model\nversion: 0x" + "f" * 100_000, "yaml")


def mjcf(inside):
    return f"<mujoco>\n{inside}</mujoco>"


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset>', "<hfield> has 3.6e+09 values"),
        ('<asset><texture name="t" builtin="flat" width="1e5" height="60000"/></asset>', "<texture> has 6e+09 values"),
        ('<asset><mesh name="s" builtin="supersphere" params="100000 1 1"/></asset>', "'params' is 100000; at most 1000"),
        ('<size nuser_body="2000000000"/>', "<size> attribute 'nuser_body' is 2e+09; at most 1000 is read"),
        ('<size nkey="2000000000"/>', "<size> attribute 'nkey' is 2e+09; at most 10000 is read"),
        ('<size memory="900G"/>', "<size> attribute 'memory' is 9.66368e+11; at most 4000000000 is read"),
        ('<size nuserdata="2000000000"/>', "<size> attribute 'nuserdata' is 2e+09; at most 1000000 is read"),
        ('<sensor><user dim="2000000000"/></sensor>', "<user> attribute 'dim' is 2e+09; at most 10000 is read"),
        ('<worldbody><flexcomp count="1000 1000 1000"/></worldbody>', "<flexcomp> has 1e+09 values"),
        (
            "<worldbody>" + '<replicate count="1000">' * 4 + GEOM + "</replicate>" * 4 + "</worldbody>",
            "<replicate>, <include> and <attach> expand to",
        ),
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_mjcf(inside, message):
    pytest.importorskip("mujoco")
    text = mjcf(f"{inside}<worldbody><body>{GEOM}</body></worldbody>")
    with pytest.raises(FileError, match=r"^<text>:[12]: .*" + re.escape(message)):
        load_mjcf(text)
    model = load_mjcf(mjcf(f"<worldbody><body><joint/>{GEOM}</body></worldbody>"))
    assert model.nv == 1  # the next load is as ever


def test_mjcf_attached_twice_and_twice_again(tmp_path):
    pytest.importorskip("mujoco")
    for k in range(30):
        below = f'<asset><model name="m" file="{k + 1}.xml"/></asset>' if k < 29 else ""
        inside = '<attach model="m" prefix="a"/><attach model="m" prefix="b"/>' if k < 29 else GEOM
        (tmp_path / f"{k}.xml").write_text(mjcf(f"{below}<worldbody>{inside}</worldbody>"))
    with pytest.raises(
        FileError, match=r"0\.xml:1: <replicate>, <include> and <attach> expand to \d+ elements"
    ):
        load(tmp_path / "0.xml")


def test_mjcf_pictures_of_many_pixels(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "t.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(8) + (60_000).to_bytes(4, "big") * 2)
    path = tmp_path / "a.xml"
    path.write_text(mjcf('<asset><texture name="t" type="2d" file="t.png"/></asset>'))
    with pytest.raises(FileError, match=r"a\.xml:2: .*t\.png: has 60000 x 60000 pixels; at most 40000000"):
        load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("name", ["a.toml", "a.yaml", "a.urdf", "a.xml"])
def test_pipes_are_refused(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match=f"^{re.escape(str(tmp_path / name))}: is not a regular file$"):
        load(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("what", ['<include file="p"/>', '<asset><mesh name="m" file="p"/></asset>'])
def test_pipes_that_a_file_names_are_refused(what, tmp_path):
    pytest.importorskip("mujoco")
    os.mkfifo(tmp_path / "p")
    (tmp_path / "a.xml").write_text(mjcf(what))
    with pytest.raises(FileError, match=r"p: is not a regular file$"):
        load(tmp_path / "a.xml")


def test_collada_nodes_named_twice_and_twice_again(tmp_path):
    nodes = "".join(
        f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>'
        for k in range(40)
    )
    scene = '<visual_scene><node><instance_node url="#n0"/></node></visual_scene>'
    path = tmp_path / "a.dae"
    path.write_text(
        f'<COLLADA><library_nodes>{nodes}<node id="n40"/></library_nodes>'
        f"<library_visual_scenes>{scene}</library_visual_scenes></COLLADA>"
    )
    with pytest.raises(FileError, match=r"a\.dae: is no readable DAE mesh: it has more than 100000 nodes"):
        read_mesh(path)


def test_long_chains_print_in_few_lines():
    """The lines of a chain grow with its length, so that all of them would take memory with its square."""
    model = chain(2_000)
    text = str(model)
    assert len(text) < 2_000_000
    assert "\n... and 1500 more bodies\n" in text
    assert "... and 1941 more bodies" in model._repr_html_()
