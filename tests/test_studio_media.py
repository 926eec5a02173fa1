"""Recordings in the studio: served in parts, never beyond the file, played in a browser in step with the tracks."""

import os

import httpx
import numpy as np
import pytest

from browsing import ROOM, Desk, start_browser
from test_audio import tone, write_wave

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.studio import serve
from hscrf.studio.media import kind_of, media_in
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


@pytest.fixture(scope="module")
def browser(playwright):
    chromium = start_browser(playwright)
    yield chromium
    chromium.close()


@pytest.fixture
def desk(browser, session):
    context = browser.new_context(viewport=ROOM)
    desk = Desk(context.new_page()).open(session.url + "#1" if "#" not in session.url else session.url)
    yield desk
    assert desk.errors == []
    context.close()


HEARD = """() => {
  window.heard = [];
  for (const name of ["play", "pause"])
    document.querySelector("#media audio").addEventListener(name, () => window.heard.push(name));
}"""
PLAYED = "() => document.querySelector('#media audio, #media video').currentTime"


def test_a_recording_plays_the_selection_and_its_line_moves(desk):
    desk.page.locator("#player").wait_for()
    desk.page.wait_for_function("() => document.querySelector('#media audio').readyState >= 3")
    desk.page.focus("#stage")
    desk.press("Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight")  # the first four steps: 0.2 s
    desk.page.evaluate(HEARD)
    desk.press(" ")
    desk.page.wait_for_function("() => window.heard.join() === 'play,pause'")  # it stops where the selection stops
    desk.wait_text("#play", "Play")
    assert desk.page.evaluate(PLAYED) > 0.15
    assert not desk.page.evaluate("() => document.querySelector('#media audio').ended")
    desk.press("L", " ")
    desk.page.wait_for_function(f"() => ({PLAYED})() < 0.1")
    desk.press(" ", "S")
    desk.page.wait_for_function("() => document.querySelector('#media audio').playbackRate === 0.5")
    desk.press("Escape", "End")
    desk.page.wait_for_function(f"() => Math.abs(({PLAYED})() - 0) < 2.1")


def test_time_is_shown_in_seconds_and_the_waveform_is_drawn(desk):
    desk.page.locator("#player").wait_for()
    desk.page.mouse.move(*desk.point("part", 10.5))
    desk.wait_text("#readout", "step 10 (0.5 s)")
    desk.page.locator("#stage[data-sound]").wait_for()
    frames = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    desk.page.evaluate(frames)
    inked = """() => {
      const stage = document.querySelector('#stage canvas'), pen = stage.getContext('2d');
      const rows = pen.getImageData(200, 0, stage.width - 220, stage.height);
      const ink = [];
      for (let y = 0; y < rows.height; y++) {
        let count = 0;
        for (let x = 0; x < rows.width; x++) count += rows.data[4 * (y * rows.width + x) + 3] > 60 ? 1 : 0;
        ink.push(count / rows.width);
      }
      return ink;
    }"""
    ink = desk.page.evaluate(inked)
    assert max(ink[150:210]) > 0.9, "the waveform covers the middle of its row"
    assert desk.text("#readout")


def test_a_film_is_shown_next_to_the_tracks_and_follows_the_cursor(browser, tmp_path):
    context = browser.new_context(viewport=ROOM)
    page = context.new_page()
    record = """async () => {
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
    film = tmp_path / "day.webm"
    film.write_bytes(bytes(page.evaluate(record)))
    page.close()
    X = [np.random.default_rng(0).normal(size=(20, 1))]
    with serve(X, topology=TOPOLOGY, db=tmp_path / "f.sqlite", rate=RATE, media=[film], port=0) as session:
        desk = Desk(context.new_page())
        desk.page.set_default_timeout(40_000)
        desk.open(session.url)
        desk.page.locator("#media video").wait_for()
        desk.page.wait_for_function("() => document.querySelector('#media video').readyState >= 2")
        desk.page.focus("#stage")
        for _ in range(6):
            desk.press(".")
        desk.page.wait_for_function(f"() => Math.abs(({PLAYED})() - 0.3) < 0.02")
        desk.press(",")
        desk.page.wait_for_function(f"() => Math.abs(({PLAYED})() - 0.25) < 0.02")
        assert desk.errors == []
    context.close()


def test_channels_are_hidden_moved_and_shown_again(desk):
    names = "() => [...document.querySelectorAll('[role=menuitem]')].map(each => each.textContent)"
    desk.page.locator("#stage[data-sound]").wait_for()
    box = desk.page.locator("#stage").bounding_box()
    desk.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    offered = desk.page.evaluate(names)
    assert offered[0] == "Hide 2"
    desk.page.get_by_role("menuitem", name="Hide 2").click()
    desk.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    assert desk.page.evaluate(names)[0] == "Hide 1"
    desk.page.get_by_role("menuitem", name="Show all channels").click()
    desk.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    assert desk.page.evaluate(names)[0] == "Hide 2"
    desk.page.get_by_role("menuitem", name="Move up").click()
    desk.page.mouse.click(600, box["y"] + box["height"] - 20, button="right")
    assert desk.page.evaluate(names)[0] == "Hide 1"
    desk.press("Escape")


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
