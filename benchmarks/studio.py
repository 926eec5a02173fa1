"""How long a person waits in the studio: ``python benchmarks/studio.py [--fixes 60]``.

Measured in the browser, with the server in a process of its own, on a machine that should do nothing else: from the
click on a label to the end of the first frame that shows the new suggestion (p50, p95), for Markov models of 1,000 and
10,000 steps, with 12 and with 60 states, and for a segmental one of 2,000. The next click comes when the exact answer
and the probabilities of the labels are there. Also: frames while panning 10,000 steps with 6
channels; and the load of the page with a warm cache. The processor time of the server for each fix does not depend on
the load of the machine. Then a database of 1,000 sequences is opened, and a model of 60 states is trained, with the
guess of the time that is left when half of it has passed. ``--only`` chooses some of these by the beginnings of names.
"""

import argparse
import contextlib
import multiprocessing
import os
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from hscrf import HSCRF
from hscrf.datasets import make_nested
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import items_of
from hscrf.studio.server.serving import Server
from hscrf.studio.server.studio import Studio

MODELS = {
    "Markov": ((3, 4), {}),
    "60 states": ((6, 60), {}),
    "segmental, 40 steps at most": ((3, 4), {"max_duration": {"level1": 40}}),
}

WATCH = """() => {
  window.times = [];
  let clicked = 0;
  addEventListener("pointerup", (event) => { clicked = event.timeStamp; }, true);
  new MutationObserver(() => {
    if (!clicked) return;
    const from = clicked;
    clicked = 0;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel(); // its message comes after the frame is drawn
      port1.onmessage = () => window.times.push(performance.now() - from);
      port2.postMessage(0);
    });
  }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-painted"] });
}"""
PAN = """async () => {
  const tracks = document.getElementById("tracks");
  const box = tracks.getBoundingClientRect();
  const times = [];
  let last = performance.now();
  for (let i = 0; i < 120; i++) {
    const at = { clientX: box.left + 500, clientY: box.top + 100, bubbles: true, cancelable: true };
    const how = i % 6 ? { deltaX: i < 60 ? 60 : -60 } : { deltaY: i < 60 ? -30 : 30, ctrlKey: true };
    tracks.dispatchEvent(new WheelEvent("wheel", { ...how, ...at }));
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  return times;
}"""
LOADED = """() => new Promise((done) => {
  const look = () => document.documentElement.dataset.painted ? done(performance.now()) : requestAnimationFrame(look);
  look();
})"""


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, round(share * (len(times) - 1)))]


def words(times):
    """Median and 95th percentile; the least of all shows what a busy machine hides."""
    return (
        f"p50 {statistics.median(times):6.1f} ms   p95 {percentile(times, 0.95):6.1f} ms   least {min(times):6.1f} ms"
    )


def fix_labels(page, fixes):
    """Go through the sequence and give segments other labels; times from click to repainted suggestion."""
    page.evaluate(WATCH)
    page.keyboard.press("Home")
    for done in range(fixes):
        page.keyboard.press("ArrowRight")
        page.locator(".label:not(.now)").nth(done % 2).click()
        page.wait_for_function("count => window.times.length > count", arg=done)
        page.wait_for_function("() => document.querySelector('.label .share')?.textContent")
        page.wait_for_function("() => !document.querySelector('#about.computing')")
    return page.evaluate("window.times")


def serve_alone(folder, name, length, pipe):
    """A server in a process of its own: its address, then its processor time whenever it is asked."""
    sizes, options = MODELS[name]
    X, Y = make_nested(4, sizes=sizes, length=300, n_features=6, random_state=3)
    model = HSCRF(**options).fit(X, Y)
    long, _ = make_nested(1, sizes=sizes, length=length, n_features=6, random_state=3)
    server = Server(Studio(Project(items_of(long), model.topology_, model=model), str(Path(folder) / "b.sqlite")), 0)
    pipe.send(server.url)

    def answer():
        while pipe.poll(None) and pipe.recv():
            pipe.send(time.process_time())
        server.stop_soon()

    threading.Thread(target=answer, daemon=True).start()
    server.run()


@contextlib.contextmanager
def serving(name, length):
    """The address of a server, and a function that tells its processor time."""
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = multiprocessing.get_context("spawn").Process(target=serve_alone, args=(folder, name, length, there))
        process.start()
        yield here.recv(), lambda: here.send(True) or here.recv()
        here.send(False)
        process.join()


def measure(browser, name, length, fixes):
    with serving(name, length) as (url, busy):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.goto(url)
        page.wait_for_selector("html[data-painted]")
        page.wait_for_function("() => document.querySelector('.label .share').textContent !== ''")
        fix_labels(page, 5)
        page.reload()
        page.wait_for_selector("html[data-painted]")
        begin = busy()
        times = fix_labels(page, fixes)
        share = (busy() - begin) / fixes
        for _ in range(4):
            page.keyboard.press("+")
        frames = page.evaluate(PAN)
        loads = []
        for _ in range(8):
            page.reload()
            loads.append(page.evaluate(LOADED))
        page.close()
    return times, share, frames, loads


def open_many(browser, count=1_000):
    """Milliseconds until a page shows a database of many sequences, and seconds until its studio was there."""
    X, Y = make_nested(4, sizes=(3, 4), length=300, n_features=6, random_state=3)
    model = HSCRF().fit(X, Y)
    many, _ = make_nested(count, sizes=(3, 4), length=100, n_features=6, random_state=4)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "b.sqlite")
        Studio(Project(items_of(many), model.topology_, model=model), path).close()  # a database that is there already
        begin = time.perf_counter()
        server = Server(Studio(Project(items_of(many), model.topology_, model=model), path), 0)
        seconds = time.perf_counter() - begin
        server.start()
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.goto(server.url)
        loads = [page.evaluate(LOADED)]
        for _ in range(4):
            page.reload()
            loads.append(page.evaluate(LOADED))
        page.close()
        server.stop()
    return loads, seconds


def train_many(states=60, sequences=20, length=200):
    """Seconds that training of many states took, and what was said to be left in the midst of it."""
    X, Y = make_nested(sequences, sizes=(6, states), length=length, n_features=6, random_state=3)
    with tempfile.TemporaryDirectory() as folder:
        project = Project(items_of(X, labels=Y), Y[0].topology)
        studio = Studio(project, str(Path(folder) / "b.sqlite"))
        begin, guesses = time.perf_counter(), []
        studio.trainer.train()
        while studio.trainer.training is not None and studio.trainer.training.running:
            left = studio.trainer.state()["seconds_left"]
            guesses.append((time.perf_counter() - begin, left))
            time.sleep(0.5)
        studio.trainer.wait()
        took = time.perf_counter() - begin
        said = [left for at, left in guesses if left is not None and at >= took / 2]
        ready = studio.workspace.model_store.suggester is not None
        metrics = studio.database.models()[-1]["metrics"] if ready else {}
        studio.close()
    return took, said[0] if said else None, metrics, studio.workspace.notices


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fixes", type=int, default=60)
    parser.add_argument(
        "--only", nargs="*", default=[""], help="beginnings of names: Markov, 60, segmental, open, train"
    )
    args = parser.parse_args()
    fixes, wanted = args.fixes, tuple(args.only)
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        runs = [("Markov", 1_000), ("Markov", 10_000), ("60 states", 1_000), ("60 states", 10_000)]
        for name, length in [*runs, ("segmental, 40 steps at most", 2_000)]:
            if not name.startswith(wanted):
                continue
            times, share, frames, loads = measure(browser, name, length, fixes)
            print(f"{name}, {length:,} steps, 6 channels; load of the machine {os.getloadavg()[0]:.1f}")
            print(f"  click to repainted suggestion  {words(times)}")
            print(f"  processor time of the server   {1000 * share:.1f} ms a fix, alternatives and queue included")
            print(f"  a frame while panning          {words(frames)}   {1000 / statistics.mean(frames):.0f} frames/s")
            print(f"  page load, warm cache          {words(loads)}", flush=True)
        if "open".startswith(wanted):
            loads, seconds = open_many(browser)
            print(f"1,000 sequences of 100 steps; load of the machine {os.getloadavg()[0]:.1f}")
            print(f"  from the command to an address {1000 * seconds:6.0f} ms, without imports")
            print(f"  first page                     {loads[0]:6.0f} ms; again {words(loads[1:])}", flush=True)
        browser.close()
    if "train".startswith(wanted):
        took, said, metrics, notices = train_many()
        print(f"training, 60 states, 20 sequences of 200 steps; load of the machine {os.getloadavg()[0]:.1f}")
        print(
            f"  {took:.0f} s, {metrics.get('iterations')} iterations; half-way {said} s were said to be left {notices}"
        )


if __name__ == "__main__":
    main()
