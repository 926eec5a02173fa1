// News from the server: what was saved (in any tab), what was learned, what is being computed.
// A browser has six connections to a server. One tab listens and tells the others; when it closes, another takes its place.

const NAMES =
  "hello saved suggestion training model training_failed warming queue labels tokens claims notices stopping".split(" ");
const AGAIN = 4000; // milliseconds until a closed connection is tried again

/** @typedef {(name: string, data: any) => void} Hear  `lost`: the connection broke */

/** Be the tab that listens. @param {Hear} tell */
function lead(tell) {
  const source = new EventSource("/api/news"); // without the project: the first event tells which one is open there
  for (const name of NAMES)
    source.addEventListener(name, (event) => tell(name, JSON.parse(/** @type {MessageEvent} */ (event).data || "{}")));
  source.addEventListener("error", () => {
    tell("lost", {});
    if (source.readyState === EventSource.CLOSED) setTimeout(() => lead(tell), AGAIN);
  });
  addEventListener("pagehide", () => source.close());
}

/** @param {string} project @param {Hear} hear */
export function listen(project, hear) {
  const place = `hscrf-studio-news/${project}`;
  const others = new BroadcastChannel(place);
  others.addEventListener("message", (event) => hear(event.data.name, event.data.data));
  const tell = (/** @type {string} */ name, /** @type {any} */ data) => {
    others.postMessage({ name, data });
    hear(name, data);
  };
  navigator.locks.request(place, () => {
    lead(tell);
    return new Promise(() => {}); // until this tab is closed
  });
}
