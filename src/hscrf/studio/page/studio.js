// The session: what is open, what comes from the server, what goes to it.

import { keyFor } from "./bindings.js";
import { Offline, Refused, ask, identify, named, readObservations, readView, tell } from "./api.js";
import { byId, write } from "./dom.js";
import { drawSpark } from "./header.js";
import { provisional } from "./provisional.js";
import { listen } from "./notifications.js";
import { Outbox } from "./outbox.js";
import { countChanged } from "./segments.js";

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").Fix} Fix */

const PATIENCE = 3000; // milliseconds between two attempts to start

export class Studio {
  /** @param {import("./state.js").State} state @param {import("./tracks.js").TrackView} tracks */
  constructor(state, tracks) {
    this.state = state;
    this.tracks = tracks;
    /** @type {Outbox | null} */ this.outbox = null;
    /** @type {Map<number, Promise<any>>} */ this.seen = new Map();
    this.opening = 0;
    this.relabelled = (/** @type {boolean} */ _anew) => {}; // when labels were edited, or texts were cut anew
    this.answered = ""; // the sequence and version of the last exact answer that the server told of
    /** The sequence that was open before. @type {number | null} */ this.previous = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.queueTimer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.wiping = undefined;
  }

  /** Words for everybody, at the foot of the page. @param {string} words @param {boolean} [bad] */
  say(words, bad = false) {
    clearTimeout(this.wiping);
    const element = byId("message");
    write(element, words);
    element.title = words;
    element.classList.toggle("bad", bad);
    if (words && !bad) this.wiping = setTimeout(() => this.say(""), 8000);
  }

  async start() {
    for (;;) {
      try {
        this.state.project = await ask("/api/project");
        break;
      } catch (error) {
        this.explain(error);
        await new Promise((resolve) => setTimeout(resolve, PATIENCE));
      }
    }
    const project = /** @type {import("./types.js").Project} */ (this.state.project);
    identify(project.id);
    this.state.waiting = project.waiting;
    this.outbox = new Outbox(localStorage, project.id, {
      saved: (fix, view) => this.saved(fix, view),
      dropped: (fix, why, view) => this.dropped(fix, why, view),
      changed: () => this.outboxChanged(),
      moved: () => this.moved(),
    });
    const foreign = this.outbox.foreign();
    if (foreign)
      this.state.notices.push({
        kind: "foreign",
        message: `${foreign === 1 ? "1 change" : `${foreign} changes`} of another database: kept in this browser until that database is opened at this address again`,
      });
    this.state.selection.level = this.state.levels[0];
    this.state.say("project");
    listen(project.id, (name, data) => this.hear(name, data));
    this.connect("online");
    await this.refreshQueue();
    this.outbox.flush();
    const wanted = Number(location.hash.slice(1));
    const known = this.state.queue?.order.includes(wanted);
    await this.open(known ? wanted : (this.state.queue?.next ?? this.state.queue?.order[0] ?? 0));
    this.drawSpark();
  }

  /** @param {unknown} error */
  explain(error) {
    if (error instanceof DOMException) return;
    if (error instanceof Refused && error.status === 401) {
      this.connect("login");
      this.say("Open the address that hscrf studio printed in the terminal; nothing is lost until then", true);
    } else if (error instanceof Refused && error.kind === "project") this.moved();
    else if (error instanceof Offline) this.connect("offline");
    else this.say(error instanceof Error ? error.message : String(error), true);
  }

  /** @param {"online" | "offline" | "login" | "stopping"} connection */
  connect(connection) {
    if (this.state.connection === connection) return;
    this.state.connection = connection;
    this.state.say("connection");
  }

  lost() {
    if (this.state.connection === "login") return;
    this.connect("offline");
    ask("/api/project").catch((error) => error instanceof Refused && this.explain(error));
  }

  async refreshQueue() {
    try {
      this.state.queue = await ask("/api/queue");
      this.state.say("queue");
    } catch (error) {
      this.explain(error);
    }
  }

  /** Many reasons, one question. */
  refreshQueueSoon() {
    clearTimeout(this.queueTimer);
    this.queueTimer = setTimeout(() => this.refreshQueue(), 250);
  }

  drawSpark() {
    drawSpark().catch((error) => this.explain(error));
  }

  /** Observations never change: one question for each sequence. @param {number} id */
  observations(id) {
    if (!this.seen.has(id)) {
      const digest = this.state.queue?.items.find((item) => item.id === id)?.digest ?? "";
      const asked = ask(named(`/api/sequences/${id}/observations?digest=${digest}`)).then(readObservations);
      asked.catch(() => this.seen.delete(id));
      this.seen.set(id, asked);
      if (this.seen.size > 20) this.seen.delete(/** @type {number} */ (this.seen.keys().next().value));
    }
    return /** @type {Promise<import("./types.js").Observations>} */ (this.seen.get(id));
  }

  /** Open a sequence; a model that waits takes over now. @param {number} id */
  async open(id) {
    if (!id) return this.say("there is no sequence in this database");
    const turn = ++this.opening;
    const slow = setTimeout(
      () => this.say(this.state.project?.warming.done === false ? this.state.project.warming.words : "opening…"),
      400,
    );
    try {
      const [raw, observations] = await Promise.all([ask(`/api/sequences/${id}?open=1`), this.observations(id)]);
      if (turn !== this.opening) return;
      if (this.state.view && this.state.view.id !== id) this.previous = this.state.view.id;
      this.state.observations = observations;
      this.state.moving = null;
      this.state.selection = { level: this.state.selection.level || this.state.levels[0], step: 0, range: null };
      history.replaceState(null, "", `#${id}`);
      this.take(readView(raw));
      if (raw.exact === false || raw.entropy === null) this.reload(); // news may have come before the view
      this.tracks.open();
      this.state.say("selection window");
      if (["opening…", this.state.project?.warming.words].includes(byId("message").textContent)) this.say("");
    } catch (error) {
      if (error instanceof Refused && error.kind === "starting" && turn === this.opening)
        setTimeout(() => this.open(id), 1000);
      this.explain(error);
      if (error instanceof Offline) this.say("not opened: the server does not answer", true);
    } finally {
      clearTimeout(slow);
    }
  }

  /** A waiting model is in use once a sequence is opened; news of it may come later. @param {number | null} model of the sequence */
  tookOver(model) {
    const { waiting, project } = this.state;
    if (!waiting || !project || model === null || model < waiting.number) return;
    this.say(`model ${model} has taken over`);
    project.model = { ...waiting, status: "ready" };
    this.state.waiting = null;
    this.state.say("project");
    this.refreshQueueSoon();
  }

  /** The server's word on the open sequence. @param {View} view */
  take(view) {
    this.state.view = view;
    this.outbox?.versions.set(view.id, view.version);
    this.show();
    this.state.say("view");
    this.tookOver(view.model);
  }

  /** What is on the screen: the server's word, and what it has not heard yet. */
  show() {
    const { view, unsaved } = this.state;
    if (!view) return;
    const fixes = unsaved.late && this.outbox ? this.outbox.of(view.id) : [];
    this.state.shown = fixes.reduce((shown, fix) => provisional(shown, fix), view);
    this.state.say("shown");
    this.tracks.paint();
  }

  /** @param {string} kind @param {any} body */
  send(kind, body) {
    const { view, project } = this.state;
    if (!view || !project || !this.outbox) return;
    if (view.held_by) return this.say(`read only: ${view.held_by} is working on this sequence`, true);
    this.state.fresh = false;
    this.outbox.add(view.id, kind, body, project.annotator, view.version, view.length);
  }

  outboxChanged() {
    const { fixes, late, reason } = /** @type {Outbox} */ (this.outbox);
    const before = this.state.unsaved;
    this.state.unsaved = { count: fixes.length, late, reason };
    if (late || before.late) this.show();
    if (reason && reason !== before.reason)
      this.say(`not saved: ${reason.replace(/^not saved: /i, "")}. Go on: it is kept here and sent again`, true);
    if (!fixes.length && before.reason) this.say("everything is saved again");
    this.state.say("saved");
  }

  /** @param {Fix} fix @param {View} view */
  saved(fix, view) {
    const { state } = this;
    if (state.connection === "offline") this.connect("online");
    this.requeue(/** @type {any} */ (view).queued);
    if (state.view?.id !== view.id) return;
    const fixes = /** @type {Outbox} */ (this.outbox).fixes;
    state.unsaved = { count: fixes.length, late: state.unsaved.late && fixes.length > 0, reason: "" };
    this.tracks.flashing = true;
    state.former = state.view.segments;
    this.take(view);
    this.tracks.paint.now(); // the frame that comes next has it
    if (view.exact === false && this.answered === `${view.id}:${view.version}`) this.reload(); // told before the view came
    const changed = countChanged(view);
    if (view.conflict) this.say(`these labels contradict each other: release one (${keyFor("conflict")}) or undo (${keyFor("undo")})`, true);
    else if (fix.body.whole) this.say(`${view.name} accepted, saved · ${keyFor("back")} goes back to it`);
    else this.say(`saved · ${["nothing else", "1 segment"][changed] || `${changed} segments`} changed`);
    if (fix.body.whole && !view.conflict && view.status === "done") this.goOn(view.id);
  }

  /** A fix changes one row of the queue; its order stays until the next sequence. @param {import("./types.js").Item} row */
  requeue(row) {
    const { queue } = this.state;
    const known = queue?.items.some((item) => item.id === row?.id);
    if (!queue || !known) return this.refreshQueueSoon();
    queue.items = queue.items.map((item) => (item.id === row.id ? row : item));
    queue.done = queue.items.filter((item) => item.status === "done").length;
    this.state.say("queue");
  }

  /** After a sequence is done: the next one. @param {number} id */
  async goOn(id) {
    await this.refreshQueue();
    this.drawSpark();
    const next = this.state.queue?.next;
    if (next && next !== id) await this.open(next);
    else this.say("every sequence is done");
  }

  /** @param {Fix} fix @param {string} why empty: it is sent again @param {View | null} view as it is now */
  dropped(fix, why, view) {
    const open = this.state.view?.id === fix.sequence;
    if (view && open) this.take(view);
    if (why) this.say(open ? `not done: ${why}` : `a change to another sequence was not done: ${why}`, true);
    else this.say("another window changed this sequence: your change is applied on top of it");
    if (open && !view) this.show();
  }

  /** Get the open sequence again: something else has changed it. @param {string} [how] */
  async reload(how = "") {
    const { view } = this.state;
    if (!view) return;
    try {
      const raw = await ask(`/api/sequences/${view.id}${how}`);
      const now = this.state.view;
      if (now?.id !== view.id || raw.version < now.version) return;
      if (["version", "model", "exact", "entropy", "held_by"].every((part) => raw[part] === now[part])) return;
      this.take(readView(raw));
    } catch (error) {
      this.explain(error);
    }
  }

  /** @param {string} name @param {any} data */
  hear(name, data) {
    const { state } = this;
    const project = /** @type {import("./types.js").Project} */ (state.project);
    const open = state.view && data.sequence === state.view.id;
    if (name === "hello") return this.hello(data);
    if (name === "lost") return this.lost();
    if (name === "saved") {
      if (!this.outbox?.sent.delete(data.uid)) this.refreshQueueSoon(); // saved by another page
      if (open && data.version > /** @type {View} */ (state.view).version && !this.outbox?.fixes.length) this.reload();
    } else if (name === "suggestion") {
      this.answered = `${data.sequence}:${data.version}`;
      if (open && data.version === state.view?.version) this.reload();
    } else if (name === "training") {
      project.training = data;
      state.say("training");
    } else if (name === "model") {
      if (data.waiting) state.waiting = data;
      else project.model = { ...data, status: "ready" };
      this.say(`${data.words} is ready${data.waiting ? ": takes over with the next sequence" : ""}`);
      state.say("training project");
      this.tookOver(state.view?.model ?? null);
      this.drawSpark();
    } else if (name === "training_failed") {
      project.training = { running: false, words: data.words };
      this.say("training failed: the reason is among the notices", true);
      state.say("training");
    } else if (name === "warming") {
      project.warming = data;
      state.say("training");
      if (data.done && state.view && state.view.entropy === null) this.reload();
    } else if (name === "queue") this.refreshQueueSoon();
    else if (name === "labels" || name === "tokens") this.relabelled(name === "tokens");
    else if (name === "claims" && state.view?.held_by) this.reload("?open=1"); // somebody has left it, perhaps
    else if (name === "notices") {
      project.notices = data.notices;
      state.say("project");
    } else if (name === "stopping") this.connect("stopping");
  }

  /** Another database is open at this address now: begin again with it. Unsent changes stay in the browser. */
  moved() {
    this.state.unsaved = { count: 0, late: false, reason: "" }; // leave without a question
    location.hash = "";
    location.reload();
  }

  /** @param {any} project */
  hello(project) {
    if (project.id !== this.state.project?.id) return this.moved();
    this.connect("online");
    this.state.project = project;
    this.state.waiting = project.waiting;
    this.state.say("project");
    this.tookOver(this.state.view?.model ?? null);
    this.outbox?.flush();
    this.refreshQueueSoon();
    if (!this.outbox?.fixes.length) this.reload();
  }

  /** Train, or stop training. */
  async train() {
    const running = this.state.project?.training.running;
    try {
      await tell(running ? "/api/training/stop" : "/api/training", {});
      this.say(running ? "training stops" : "training a new model; go on working");
    } catch (error) {
      if (error instanceof Refused) this.say(error.message, true);
      else this.explain(error);
    }
  }
}
