// Sound and film of the open sequence, in step with the tracks: played from the selection, looped, slowed down.

import { named } from "./api.js";
import { byId, make, write } from "./dom.js";
import { chosen } from "./segments.js";
import { Sound, samplesFor } from "./sound.js";
import { Axis, seconds } from "./time.js";

const LARGEST = 400e6; // bytes of a file whose waveform is drawn
const SPEEDS = [1, 0.5, 0.25, 2];
const PROBE = 1 / 120; // seconds: less than the frames of most films last
const PROBES = 60; // attempts to find where the next frame begins
const SHOWN = 150; // milliseconds within which a browser shows the frame it went to

export class Media {
  /** @param {import("./state.js").State} state @param {import("./tracks.js").TrackView} tracks
   * @param {(words: string) => void} say */
  constructor(state, tracks, say) {
    this.state = state;
    this.tracks = tracks;
    this.say = say;
    this.box = byId("media");
    /** @type {HTMLMediaElement | null} */ this.player = null;
    this.axis = new Axis(1, null, null);
    this.open = 0;
    this.loops = false;
    /** Steps that are played. @type {[number, number] | null} */ this.range = null;
    this.frame = 0;
    this.stepping = false; // the cursor follows the film, not the film the cursor
    /** Seconds of one frame, once they are known. */ this.length = 0;
    this.showing = 0; // seconds at which the frame begins that is shown
    state.on("view", () => this.follow());
    state.on("selection", () => this.seek());
    byId("play").addEventListener("click", () => this.toggle());
    byId("loop").addEventListener("click", () => this.loop());
    byId("speed").addEventListener("click", () => this.slower());
    byId("frame-back").addEventListener("click", () => this.step(-1));
    byId("frame-on").addEventListener("click", () => this.step(1));
  }

  /** Another sequence: its own sound or film. */
  follow() {
    const id = this.state.view?.id ?? 0;
    if (id === this.open) return;
    this.open = id;
    this.stop();
    this.player = null;
    this.length = this.showing = 0;
    this.box.replaceChildren();
    this.tracks.sound = null;
    delete byId("tracks").dataset.sound;
    const { view, project, observations } = this.state;
    const kind = this.state.queue?.items.find((item) => item.id === id)?.media ?? null;
    byId("player").hidden = kind === null;
    for (const name of ["frame-back", "frame-on"]) byId(name).hidden = kind !== "video";
    this.box.hidden = kind !== "video";
    this.box.parentElement?.classList.toggle("filmed", kind === "video");
    this.axis = new Axis(view?.length || 1, project?.rate, observations?.times);
    if (kind === null) return;
    const source = named(`/api/sequences/${id}/media`);
    const player = make(kind, { src: source, preload: "auto", playsinline: true, "aria-label": "Recording" });
    const { axis } = this;
    this.player = player;
    this.box.append(player);
    if (player instanceof HTMLVideoElement) this.look(player);
    player.addEventListener("loadedmetadata", () => {
      axis.fit(player.duration);
      this.seek();
    });
    player.addEventListener("error", () => this.say("the recording cannot be played: is the file still there?"));
    player.addEventListener("pause", () => this.shown());
    player.addEventListener("play", () => this.shown());
    this.hear(source, id);
    this.shown();
  }

  /** Waveform and spectrogram, if the sound can be decoded. @param {string} source @param {number} id */
  async hear(source, id) {
    const { axis } = this;
    try {
      const answer = await fetch(source, { credentials: "same-origin" });
      if (Number(answer.headers.get("content-length")) > LARGEST) return;
      const content = await answer.arrayBuffer();
      const rate = samplesFor(content);
      const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(content);
      if (id !== this.open) return;
      axis.fit(sound.duration);
      this.tracks.sound = new Sound(sound.getChannelData(0), rate, axis);
      this.tracks.resize();
      byId("tracks").dataset.sound = "drawn";
    } catch {
      // a film without sound, or a format without a decoder: only the tracks are drawn
    }
  }

  /** Play what is chosen, or pause. */
  toggle() {
    const { player } = this;
    if (!player || !this.state.shown) return;
    if (!player.paused) return player.pause();
    const { start, stop } = chosen(this.state.shown, this.state.selection);
    const now = this.axis.step(player.currentTime);
    this.range = [start, stop];
    if (now < start || now >= stop - 0.5) player.currentTime = this.axis.seconds(start);
    player.play().catch(() => this.say("the recording cannot be played"));
    this.watch();
  }

  /** The line moves with the sound; at the end of what is chosen it stops, or begins again. */
  watch() {
    const { player, range } = this;
    if (!player || !range) return;
    const step = this.axis.step(player.currentTime);
    this.tracks.playhead = step;
    this.tracks.paintOver();
    if (step >= range[1] || player.ended) {
      if (!this.loops) player.pause();
      else {
        player.currentTime = this.axis.seconds(range[0]);
        player.play().catch(() => {});
      }
    }
    if (!player.paused) this.frame = requestAnimationFrame(() => this.watch());
  }

  /** While nothing plays, the film shows the step of the cursor. */
  seek() {
    const { player } = this;
    if (!player || !player.paused || !this.state.shown || this.stepping) return;
    const { step, range } = this.state.selection;
    const { start } = chosen(this.state.shown, this.state.selection);
    const at = range || step !== start ? step : start;
    player.currentTime = Math.max(0, this.axis.seconds(at + 0.001));
    this.tracks.playhead = at;
  }

  /** One frame of the film back or on; the cursor goes with it. @param {number} by -1 or 1 */
  async step(by) {
    const { player } = this;
    if (!(player instanceof HTMLVideoElement)) return this.say("there is no film here");
    if (this.stepping) return;
    player.pause();
    this.stepping = true;
    try {
      const found = await this.another(player, by);
      if (found === null) return this.say(`this is the ${by < 0 ? "first" : "last"} frame of the film`);
      const place = this.axis.step(found + 1e-4);
      this.state.select({ step: Math.floor(place) });
      this.tracks.playhead = place;
      this.tracks.paintOver();
      this.say(`film at ${seconds(Math.round(1000 * found) / 1000)}`);
    } finally {
      this.stepping = false;
    }
  }

  /** Go to the frame before or after; when it begins, null where there is none. A browser does not tell how long frames
   * last: the first time, small steps are tried until the picture is another one.
   * @param {HTMLVideoElement} player @param {number} by @returns {Promise<number | null>} */
  async another(player, by) {
    const now = this.showing;
    const tries = this.length ? 2 : PROBES;
    for (let n = 1; n <= tries; n++) {
      const to = now + by * (this.length ? (by > 0 ? n + 0.5 : n - 0.5) * this.length : n * PROBE);
      if (to < 0 || to >= player.duration) return null;
      await this.go(player, to);
      if (this.showing === now) continue;
      const length = Math.abs(this.showing - now);
      if (!this.length || length < 0.9 * this.length) this.length = length;
      return this.showing;
    }
    return null;
  }

  /** Go to a time, and wait until its frame is shown: where it is the same as before, none is shown anew.
   * @param {HTMLVideoElement} player @param {number} to */
  async go(player, to) {
    const shown = new Promise((resolve) => player.requestVideoFrameCallback(resolve));
    const sought = new Promise((resolve) => player.addEventListener("seeked", resolve, { once: true }));
    player.currentTime = to;
    await sought;
    await Promise.race([shown, new Promise((resolve) => setTimeout(resolve, SHOWN))]);
  }

  /** Know when the frame begins that is on the screen. @param {HTMLVideoElement} player */
  look(player) {
    player.requestVideoFrameCallback((_, { mediaTime }) => {
      if (player !== this.player) return;
      this.showing = mediaTime;
      this.look(player);
    });
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.player?.pause();
    this.tracks.playhead = null;
  }

  loop() {
    this.loops = !this.loops;
    byId("loop").setAttribute("aria-pressed", String(this.loops));
  }

  slower() {
    if (!this.player) return;
    const next = SPEEDS[(SPEEDS.indexOf(this.player.playbackRate) + 1) % SPEEDS.length];
    this.player.playbackRate = next;
    write(byId("speed"), `${next}×`);
  }

  shown() {
    const playing = Boolean(this.player && !this.player.paused);
    write(byId("play"), playing ? "Pause" : "Play");
    byId("play").setAttribute("aria-pressed", String(playing));
  }
}
