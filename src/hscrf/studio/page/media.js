// Sound and film of the open sequence, in step with the tracks: played from the selection, looped, slowed down.

import { named } from "./api.js";
import { byId, make, write } from "./dom.js";
import { chosen } from "./segments.js";
import { Sound, SAMPLES } from "./sound.js";

const LARGEST = 400e6; // bytes of a file whose waveform is drawn
const SPEEDS = [1, 0.5, 0.25, 2];

export class Media {
  /** @param {import("./state.js").State} state @param {import("./stage.js").Stage} stage
   * @param {(words: string) => void} say */
  constructor(state, stage, say) {
    this.state = state;
    this.stage = stage;
    this.say = say;
    this.box = byId("media");
    /** @type {HTMLMediaElement | null} */ this.player = null;
    this.open = 0;
    this.loops = false;
    /** Steps that are played. @type {[number, number] | null} */ this.range = null;
    this.frame = 0;
    state.on("view", () => this.follow());
    state.on("selection", () => this.seek());
    byId("play").addEventListener("click", () => this.toggle());
    byId("loop").addEventListener("click", () => this.loop());
    byId("speed").addEventListener("click", () => this.slower());
  }

  get rate() {
    return this.state.project?.rate || 1;
  }

  /** Another sequence: its own sound or film. */
  follow() {
    const id = this.state.view?.id ?? 0;
    if (id === this.open) return;
    this.open = id;
    this.stop();
    this.player = null;
    this.box.replaceChildren();
    this.stage.sound = null;
    delete byId("stage").dataset.sound;
    const kind = this.state.queue?.items.find((item) => item.id === id)?.media ?? null;
    byId("player").hidden = kind === null;
    this.box.hidden = kind !== "video";
    if (kind === null) return;
    const source = named(`/api/sequences/${id}/media`);
    const player = make(kind, { src: source, preload: "auto", playsinline: true, "aria-label": "Recording" });
    this.player = player;
    this.box.append(player);
    player.addEventListener("error", () => this.say("the recording cannot be played: is the file still there?"));
    player.addEventListener("pause", () => this.shown());
    player.addEventListener("play", () => this.shown());
    this.hear(source, id);
    this.shown();
  }

  /** Waveform and spectrogram, if the sound can be decoded. @param {string} source @param {number} id */
  async hear(source, id) {
    try {
      const answer = await fetch(source, { credentials: "same-origin" });
      if (Number(answer.headers.get("content-length")) > LARGEST) return;
      const decoder = new OfflineAudioContext(1, 1, SAMPLES);
      const sound = await decoder.decodeAudioData(await answer.arrayBuffer());
      if (id !== this.open) return;
      this.stage.sound = new Sound(sound.getChannelData(0), this.rate);
      this.stage.resize();
      byId("stage").dataset.sound = "drawn";
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
    const now = player.currentTime * this.rate;
    this.range = [start, stop];
    if (now < start || now >= stop - 0.5) player.currentTime = start / this.rate;
    player.play().catch(() => this.say("the recording cannot be played"));
    this.watch();
  }

  /** The line moves with the sound; at the end of what is chosen it stops, or begins again. */
  watch() {
    const { player, range } = this;
    if (!player || !range) return;
    const step = player.currentTime * this.rate;
    this.stage.playhead = step;
    this.stage.paintOver();
    if (step >= range[1] || player.ended) {
      if (!this.loops) player.pause();
      else {
        player.currentTime = range[0] / this.rate;
        player.play().catch(() => {});
      }
    }
    if (!player.paused) this.frame = requestAnimationFrame(() => this.watch());
  }

  /** While nothing plays, the film shows the step of the cursor. */
  seek() {
    const { player } = this;
    if (!player || !player.paused || !this.state.shown) return;
    const { step, range } = this.state.selection;
    const { start } = chosen(this.state.shown, this.state.selection);
    const at = range || step !== start ? step : start;
    player.currentTime = (at + 0.001) / this.rate;
    this.stage.playhead = at;
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.player?.pause();
    this.stage.playhead = null;
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
