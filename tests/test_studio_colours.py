"""Colours of the tracks, read from the pixels of the canvas: contrast, and what colour-blind people see."""

import base64
import itertools
import os

import numpy as np
import pytest

from browsing import Tab

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Labels, Topology
from hscrf.studio import serve

PARENTS, CHILDREN, STEPS = 9, 3, 2  # all hues, all shades without hatching, steps of a segment
# Machado, Oliveira and Fernandes 2009, complete deficiency, on linear RGB
SEEN = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
APART_HUES, APART_SHADES = 9.0, 5.0  # distances in CIELAB; about 2 can just be told apart side by side


def linear(colour):
    c = np.asarray(colour, dtype=float) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(colour, eye):
    """CIELAB of what an eye sees of an sRGB colour."""
    seen = np.clip(np.asarray(SEEN[eye]) @ linear(colour), 0, 1)
    x = XYZ @ seen / [0.95047, 1, 1.08883]
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module", params=["light", "dark"])
def pixels(request, browser, tmp_path_factory):
    """The canvas of a sequence in which each label stands once, and where the bars are: pixels (y, x, 3)."""
    parents = [f"P{n}" for n in range(PARENTS)]
    children = {parent: [f"{parent}c{k}" for k in range(CHILDREN)] for parent in parents}
    names = [name for own in children.values() for name in own]
    rules = {"parent": children}
    topology = Topology({"parent": parents, "child": names}, children=rules, max_duration={"child": None})
    tree = [(parent, [(name, STEPS) for name in own]) for parent, own in children.items()]
    segments = {"parent": [], "child": []}
    at = 0
    for parent, own in tree:
        segments["parent"].append((at, at + STEPS * CHILDREN, parent))
        for name, length in own:
            segments["child"].append((at, at + length, name))
            at += length
    X = [np.sin(np.arange(at))[:, None]]
    Y = [Labels.from_segments(topology, segments, at)]
    room = {"width": 1700, "height": 800}
    page = browser.new_context(viewport=room, device_scale_factor=2, color_scheme=request.param).new_page()
    db = tmp_path_factory.mktemp("colours") / "c.sqlite"
    with serve(X, Y, topology=topology, db=db, port=0, kind="time") as session:
        session.studio.trainer.stop()
        tab = Tab(page).open(session.url)
        session.studio.trainer.stop()
        frames = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        page.evaluate(frames)
        read = """() => {
          const canvas = document.querySelector('#tracks canvas');
          const { width, height } = canvas;
          const under = document.createElement('canvas');
          [under.width, under.height] = [width, height];
          const pen = under.getContext('2d');
          pen.fillStyle = getComputedStyle(document.body).backgroundColor;
          pen.fillRect(0, 0, width, height);
          pen.drawImage(canvas, 0, 0);
          const { data } = pen.getImageData(0, 0, width, height);
          return [width, height, btoa(Array.from(data, byte => String.fromCharCode(byte)).join(''))];
        }"""
        width, height, data = page.evaluate(read)
        image = np.frombuffer(base64.b64decode(data), dtype=np.uint8).reshape(height, width, 4)[..., :3]
        assert tab.errors == []
    page.context.close()
    return image


def bars(pixels, level):
    """The pixels inside each bar of a level (0 above 1), without its outline."""
    image = pixels
    left, right = 2 * 104, image.shape[1] - 2 * 12
    tall = 44 if image.shape[0] > 2 * 620 else 36
    top = 2 * (24 + level * (tall + 6))
    count = PARENTS if level == 0 else PARENTS * CHILDREN
    edges = np.linspace(left, right, count + 1).round().astype(int)
    return [image[top + 8 : top + 2 * tall - 8, a + 8 : b - 8] for a, b in itertools.pairwise(edges)]


def ground(bar):
    """The colour that most pixels of a bar have."""
    colours, counts = np.unique(bar.reshape(-1, 3), axis=0, return_counts=True)
    return colours[counts.argmax()]


def test_names_on_their_bars_have_enough_contrast(pixels):
    for level in (0, 1):
        for bar in bars(pixels, level):
            colour = ground(bar)
            ink = max((contrast(colour, other) for other in np.unique(bar.reshape(-1, 3), axis=0)), default=0)
            assert ink >= 4.5


def test_signals_and_outlines_have_enough_contrast(pixels):
    image = pixels
    paper = image[2, 2]
    channel = image[2 * 180 : 2 * 280, 2 * 104 + 20 : -2 * 12 - 20]
    track = ground(channel)
    assert max(contrast(track, colour) for colour in np.unique(channel.reshape(-1, 3), axis=0)) >= 3
    edge = image[2 * 24 : 2 * 24 + 6, 2 * 104 + 60 : 2 * 104 + 160].reshape(-1, 3)
    assert max(contrast(paper, colour) for colour in np.unique(edge, axis=0)) >= 3


@pytest.mark.parametrize("eye", SEEN)
def test_hues_are_distinguished_by_colour_blind_people(pixels, eye):
    seen = [lab(ground(bar), eye) for bar in bars(pixels, 0)]
    near = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert near >= APART_HUES


@pytest.mark.parametrize("eye", SEEN)
def test_shades_of_one_parent_are_distinguished_by_colour_blind_people(pixels, eye):
    """Two shades, then hatching: the third child has the first hue under lines."""
    children = bars(pixels, 1)
    for n, parent in enumerate(bars(pixels, 0)):
        own = [lab(ground(parent), eye), *(lab(ground(bar), eye) for bar in children[CHILDREN * n : CHILDREN * n + 2])]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(own, 2)) >= APART_SHADES
        third = children[CHILDREN * n + 2]
        lined = np.mean(np.any(third != ground(third), axis=-1))
        assert lined > np.mean(np.any(children[CHILDREN * n] != ground(children[CHILDREN * n]), axis=-1)) + 0.05
