"""Recordings in the studio: served in parts, never beyond the file, played in a browser in step with the tracks."""

import contextlib
import os
import re

import httpx
import numpy as np
import pytest

from browsing import ROOM, Tab
from test_audio import tone, write_wave

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.io import TimeAxis
from hscrf.studio import serve
from hscrf.studio.server.media import kind_of, media_in
from studio_fixtures import Person
from test_studio_cli import Command

TOPOLOGY = Topology({"part": ["low", "high"], "sound": ["hum", "beep"]}, max_duration={"sound": None})
RATE = 20


@pytest.fixture
def recordings(tmp_path):
    """Three recordings of two seconds: a low tone, then a high one."""
    paths = []
    for n in range(3):
        samples = np.concatenate([tone(200 + 50 * n), tone(1500 + 50 * n)])
        paths.append(write_wave(tmp_path / f"day_{n}.wav", samples))
    return paths


@pytest.fixture
def session(recordings, tmp_path):
    X = [np.random.default_rng(n).normal(size=(2 * RATE, 2)) for n in range(3)]
    media = [recordings[0], recordings[1], None]
    with serve(X, topology=TOPOLOGY, db=tmp_path / "x.sqlite", rate=RATE, media=media, port=0) as session:
        yield session


def test_parts_of_a_file_are_served_and_nothing_beyond_it(session, recordings):
    person = Person(session.url)
    content = recordings[0].read_bytes()
    whole = person.get("/api/sequences/1/media")
    assert (whole.status_code, whole.content, whole.headers["content-type"]) == (200, content, "audio/wav")
    part = person.http.get("/api/sequences/1/media", headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, content[100:200])
    assert part.headers["content-range"] == f"bytes 100-199/{len(content)}"
    last = person.http.get("/api/sequences/1/media", headers={"range": "bytes=-10"})
    assert last.content == content[-10:]
    beyond = person.http.get("/api/sequences/1/media", headers={"range": f"bytes={len(content)}-"})
    assert beyond.status_code == 416
    for odd in ("bytes=a-b", "bytes=5-2", "lines=0-1", "bytes="):
        answer = person.http.get("/api/sequences/1/media", headers={"range": odd})
        assert answer.status_code in (200, 400, 416), odd
        assert answer.content in (b"", content) or answer.status_code != 200
    assert person.get("/api/sequences/3/media").status_code == 404, "it has no recording"
    assert person.get("/api/sequences/99/media").status_code == 404
    assert person.get("/api/sequences/../../etc/passwd/media").status_code == 404
    assert httpx.get(f"{person.base}/api/sequences/1/media").status_code == 401
    recordings[0].unlink()
    gone = person.get("/api/sequences/1/media")
    assert (gone.status_code, "not there any more" in gone.json()["error"]["message"]) == (404, True)
    person.close()


def test_media_that_cannot_be_are_refused(recordings, tmp_path):
    X = [np.zeros((4, 1))]
    options = {"topology": TOPOLOGY, "db": tmp_path / "y.sqlite"}
    with pytest.raises(ValueError, match="media has 2 files, but there are 1 sequences"):
        serve(X, media=recordings[:2], **options)
    with pytest.raises(ValueError, match="expected a sound or a film"):
        serve(X, media=[tmp_path / "a.txt"], **options)
    with pytest.raises(FileNotFoundError, match="no such file for sequence"):
        serve(X, media=[tmp_path / "a.wav"], **options)


def test_files_of_a_folder_are_found_by_the_names_of_sequences(recordings, tmp_path):
    (tmp_path / "day_1.webm").write_bytes(b"")
    (tmp_path / "day_9.txt").write_bytes(b"")
    found = media_in(str(tmp_path), ["day_0", "day_1", "day_9", "../day_2"])
    assert {name: kind_of(path) for name, path in found.items()} == {"day_0": "audio", "day_1": "video"}


# -- in a browser


@pytest.fixture
def tab(browser, session):
    context = browser.new_context(viewport=ROOM)
    tab = Tab(context.new_page()).open(session.url + "#1" if "#" not in session.url else session.url)
    yield tab
    assert tab.errors == []
    context.close()


HEARD = """() => {
  window.heard = [];
  for (const name of ["play", "pause"])
    document.querySelector("#media audio").addEventListener(name, () => window.heard.push(name));
}"""
PLAYED = "() => document.querySelector('#media audio, #media video').currentTime"


def test_a_recording_plays_the_selection_and_its_line_moves(tab):
    tab.page.locator("#player").wait_for()
    tab.page.wait_for_function("() => document.querySelector('#media audio').readyState >= 3")
    tab.page.focus("#tracks")
    tab.press("Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight")  # the first four steps: 0.2 s
    tab.page.evaluate(HEARD)
    tab.press(" ")
    tab.page.wait_for_function("() => window.heard.join() === 'play,pause'")  # it stops where the selection stops
    tab.wait_text("#play", "Play")
    assert tab.page.evaluate(PLAYED) > 0.15
    assert not tab.page.evaluate("() => document.querySelector('#media audio').ended")
    tab.press("L", " ")
    tab.page.wait_for_function(f"() => ({PLAYED})() < 0.1")
    tab.press(" ", "S")
    tab.page.wait_for_function("() => document.querySelector('#media audio').playbackRate === 0.5")
    tab.press("Escape", "End")
    tab.page.wait_for_function(f"() => Math.abs(({PLAYED})() - 0) < 2.1")


SPECTRUM = """async ([rate, pitch]) => {
  const { Sound, samplesFor } = await import("/page/sound.js");
  const head = new DataView(new ArrayBuffer(60));
  head.setUint32(0, 0x52494646);
  head.setUint32(12, 0x666d7420);
  head.setUint32(24, rate, true);
  const found = samplesFor(head.buffer);
  const samples = Float32Array.from({ length: found }, (_, i) => Math.sin((2 * Math.PI * pitch * i) / found));
  const sound = new Sound(samples, found, { seconds: (step) => step });
  const column = new Float32Array(256);
  sound.column(found / 2, column);
  return [found, sound.top, column.indexOf(Math.max(...column)) * found / 512, sound.quiet < sound.loud];
}"""


@pytest.mark.parametrize(("rate", "pitch", "decoded"), [(44100, 6000, 16000), (8000, 1000, 8000), (2000, 500, 3000)])
def test_the_spectrogram_shows_the_frequencies_of_the_recording(tab, rate, pitch, decoded):
    found, top, loudest, scaled = tab.page.evaluate(SPECTRUM, [rate, pitch])
    assert (found, top, scaled) == (decoded, decoded / 2000, True)
    assert loudest == pytest.approx(pitch, abs=decoded / 512)


def test_time_is_shown_in_seconds_and_the_waveform_is_drawn(tab):
    tab.page.locator("#player").wait_for()
    tab.page.mouse.move(*tab.point("part", 10.5))
    tab.wait_text("#readout", "step 10 (0.5 s)")
    tab.drag(tab.point("part", 10.2), tab.point("part", 19.8))
    assert "steps 10 to 19 (10), 0.5 to 1 s" in tab.current
    tab.page.locator("#tracks[data-sound]").wait_for()
    frames = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    tab.page.evaluate(frames)
    inked = """() => {
      const tracks = document.querySelector('#tracks canvas'), pen = tracks.getContext('2d');
      const rows = pen.getImageData(200, 0, tracks.width - 220, tracks.height);
      const ink = [];
      for (let y = 0; y < rows.height; y++) {
        let count = 0;
        for (let x = 0; x < rows.width; x++) count += rows.data[4 * (y * rows.width + x) + 3] > 60 ? 1 : 0;
        ink.push(count / rows.width);
      }
      return ink;
    }"""
    ink = tab.page.evaluate(inked)
    assert max(ink[150:210]) > 0.9, "the waveform covers the middle of its row"
    assert tab.text("#readout")


RECORD = """async () => {
  const canvas = document.createElement('canvas'); canvas.width = canvas.height = 64;
  const pen = canvas.getContext('2d');
  const recorder = new MediaRecorder(canvas.captureStream(20), {mimeType: 'video/webm'});
  const parts = []; recorder.ondataavailable = event => parts.push(event.data);
  recorder.start();
  for (let i = 0; i < 20; i++) {
    pen.fillStyle = `rgb(${12 * i} 0 0)`; pen.fillRect(0, 0, 64, 64);
    await new Promise(done => setTimeout(done, 50));
  }
  const stopped = new Promise(done => recorder.onstop = done);
  recorder.stop(); await stopped;
  return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
}"""


@pytest.fixture(scope="module")
def film(browser, tmp_path_factory):
    """A second of film with twenty frames, as the browser records it."""
    page = browser.new_page()
    path = tmp_path_factory.mktemp("film") / "day.webm"
    path.write_bytes(bytes(page.evaluate(RECORD)))
    page.close()
    return path


@contextlib.contextmanager
def filmed(browser, film, folder, steps=20, **options):
    """A tab with one sequence and its film."""
    context = browser.new_context(viewport=ROOM)
    X = [np.random.default_rng(0).normal(size=(steps, 1))]
    with serve(X, topology=TOPOLOGY, db=folder / "f.sqlite", media=[film], port=0, **options) as session:
        tab = Tab(context.new_page())
        tab.page.set_default_timeout(40_000)
        tab.open(session.url)
        tab.page.locator("#media video, #media audio").wait_for(state="attached")
        tab.page.wait_for_function("() => document.querySelector('#media video, #media audio').readyState >= 2")
        tab.page.focus("#tracks")
        yield tab
        assert tab.errors == []
    context.close()


def test_a_film_is_shown_next_to_the_tracks_and_follows_the_cursor(browser, film, tmp_path):
    with filmed(browser, film, tmp_path, rate=RATE) as tab:
        for _ in range(6):
            tab.press(".")
        tab.page.wait_for_function(f"() => Math.abs(({PLAYED})() - 0.3) < 0.02")
        tab.press(",")
        tab.page.wait_for_function(f"() => Math.abs(({PLAYED})() - 0.25) < 0.02")
        tracks, film = (tab.page.locator(name).bounding_box() for name in ("#tracks", "#media"))
        assert tracks["x"] + tracks["width"] <= film["x"] + 1, "nothing lies over the tracks"
        tab.press("r")
        tab.page.locator("#guide").wait_for()
        tab.page.wait_for_function("""() => {
          const box = document.getElementById('tracks'), tracks = box.getBoundingClientRect();
          const guide = document.getElementById('guide').getBoundingClientRect();
          const drawn = parseFloat(document.querySelector('#tracks canvas').style.width);
          return tracks.right <= guide.left + 1 && Math.abs(drawn - box.clientWidth) < 2;
        }""")


def test_a_film_goes_on_frame_by_frame_where_frames_are_no_steps(browser, film, tmp_path):
    """Five steps a second, about twenty frames: each key shows another frame, and the cursor goes with them."""
    with filmed(browser, film, tmp_path, steps=5, rate=5) as tab:
        seen = []
        for key in (")", ")", ")", ")", ")", ")", "("):
            before = tab.text("#message")
            tab.press(key)
            tab.page.wait_for_function(
                "before => document.getElementById('message').textContent !== before", arg=before
            )
            seen.append(float(re.fullmatch(r"film at ([\d.]+) s", tab.text("#message"))[1]))
        assert seen[:6] == sorted(set(seen[:6]))
        assert max(np.diff(seen[:6])) < 0.2, "less than a step each"
        assert seen[6] == seen[4], "back again"
        tab.page.click("#frame-on")
        tab.wait_text("#message", f"film at {seen[5]:g} s")
        tab.page.focus("#tracks")
        assert int(5 * seen[5]) > 0
        tab.fix("s")  # splits before the cursor
        assert tab.view()["fixed_borders"]["part"]["on"] == [int(5 * seen[5])]


@pytest.mark.parametrize(("first", "offset"), [(0.1, 0.1), (1000.0, 0.0)])
def test_recordings_follow_times_that_are_uneven_and_begin_anywhere(browser, recordings, tmp_path, first, offset):
    """Seconds of the recording where they lie in it; those of a clock begin with the first step."""
    gaps = [0.1, 0.3, 0.1, 0.5, 0.2]
    times = [first + sum(gaps[:n]) for n in range(len(gaps))]
    with filmed(browser, recordings[0], tmp_path, steps=5, times=[times]) as tab:
        for n in (1, 2, 3):
            tab.press(".")
            wanted = offset + sum(gaps[:n])
            tab.page.wait_for_function(f"() => Math.abs(({PLAYED})() - {wanted}) < 0.01")
        tab.page.evaluate(HEARD)
        tab.press("Home", ".", ".", ".", "Shift+ArrowRight")  # steps 3 and 4
        tab.press("S", "S", "S", " ")  # at double speed
        tab.page.wait_for_function("() => window.heard.join() === 'play,pause'")
        assert offset + 1.15 <= tab.page.evaluate(PLAYED) < offset + 2


def test_channels_are_hidden_moved_and_shown_again(tab):
    names = "() => [...document.querySelectorAll('[role=menuitem]')].map(each => each.textContent)"
    tab.page.locator("#tracks[data-sound]").wait_for()
    box = tab.page.locator("#tracks").bounding_box()
    tab.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    offered = tab.page.evaluate(names)
    assert offered[0] == "Hide 2"
    tab.page.get_by_role("menuitem", name="Hide 2").click()
    tab.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    assert tab.page.evaluate(names)[0] == "Hide 1"
    tab.page.get_by_role("menuitem", name="Show all channels").click()
    tab.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    assert tab.page.evaluate(names)[0] == "Hide 2"
    tab.page.get_by_role("menuitem", name="Move up").click()
    tab.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    assert tab.page.evaluate(names)[0] == "Hide 1"
    tab.press("Escape")


AXIS = """async () => {
  const { Axis } = await import('/page/time.js');
  const even = new Axis(4, 2, null), uneven = new Axis(3, null, [5, 6, 8]);
  const clock = new Axis(3, null, [500, 501, 503]);
  uneven.fit(20);
  clock.fit(20);
  const back = [0, 0.5, 1.25, 2.75].map(step => uneven.step(uneven.seconds(step)));
  const ahead = [uneven.seconds(0), uneven.seconds(1.5), uneven.seconds(3)];
  return [even.seconds(3), even.step(1.5), ...ahead, clock.seconds(2), back];
}"""


def test_steps_and_seconds_of_the_page(tab):
    """The last step lasts as long as the median one, as in ``hscrf.io.TimeAxis``."""
    axis = TimeAxis(3, times=[5, 6, 8])
    found = tab.page.evaluate(AXIS)
    assert found[:6] == pytest.approx([1.5, 3, axis.seconds(0), 7, axis.seconds(3), 3])
    assert found[6] == pytest.approx([0, 0.5, 1.25, 2.75])


LEVELS = """() => {
  const canvas = document.querySelector('#tracks canvas'), pen = canvas.getContext('2d');
  const top = canvas.height - 90, rows = pen.getImageData(120, top, canvas.width - 140, 80);
  const inked = new Set();
  for (let i = 0; i < rows.data.length; i += 4)
    if (rows.data[i + 3] > 200 && rows.data[i + 2] < 150) inked.add(Math.floor(i / 4 / rows.width));
  return inked.size;
}"""


def test_channels_are_scaled_and_ordered_by_the_keyboard(tab):
    tab.page.locator("#tracks[data-sound]").wait_for()
    tab.page.focus("#tracks")
    tab.page.wait_for_function(f"() => ({LEVELS})() > 60")  # it fills its track
    tab.press("v")
    tab.page.get_by_label("Largest value of the scale of 2").focus()
    tab.page.keyboard.type("1000")
    tab.press("Tab")
    tab.page.wait_for_function(f"() => ({LEVELS})() < 20")  # a flat line
    tab.page.get_by_label("Smallest value of the scale of 2").fill("2000")
    tab.press("Tab")
    tab.page.get_by_text("the smallest must be below the largest").wait_for()
    tab.page.get_by_role("button", name="Automatic scale of 2").click()
    tab.page.wait_for_function(f"() => ({LEVELS})() > 60")
    tab.page.get_by_role("button", name="Move 2 up").focus()
    tab.press("Enter")
    names = "() => [...document.querySelectorAll('.channel label')].map(each => each.textContent.trim())"
    assert tab.page.evaluate(names) == ["2", "1"]
    tab.wait_focus("it.getAttribute('aria-label') === 'Move 2 down' || it.getAttribute('aria-label') === 'Move 2 up'")
    tab.page.get_by_label("Show 1").uncheck()
    assert tab.page.get_by_label("Show 2").is_disabled(), "one channel stays"
    tab.press("Escape")
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")
    tab.page.focus("#tracks")
    tab.press("v")
    assert tab.page.evaluate(names) == ["2", "1"]
    assert not tab.page.get_by_label("Show 1").is_checked()
    tab.press("Escape")


def test_wav_files_are_opened_labelled_and_learned_from(recordings, tmp_path):
    labels = tmp_path / "labels.toml"
    labels.write_text('lasting = ["sound"]\n[levels]\npart = ["low", "high"]\nsound = ["hum", "beep"]\n')
    command = Command(
        *recordings, "--labels", labels, "--db", tmp_path / "w.sqlite", "--rate", "20", "--train-after", "2"
    )
    person = Person(command.url)
    project = person.get("/api/project").json()
    assert (project["rate"], project["kind"], project["channels"][0]) == (20, "time", "energy")
    for n in (1, 2):
        segments = {"part": [[0, 20, "low"], [20, 40, "high"]], "sound": [[0, 20, "hum"], [20, 40, "beep"]]}
        person.do(n, "accept", whole=True, segments=segments)
    person.wait(lambda found: found["model"] is not None)
    start, stop, label = person.view(3)["segments"]["sound"][0]
    assert (start, label) == (0, "hum")
    assert abs(stop - 20) <= 1
    person.close()
    code, said = command.stop()
    assert code == 0, said
