// News from the server: what was saved (in any tab), what was learned, what is being computed.

const NAMES = [
  "hello",
  "saved",
  "suggestion",
  "training",
  "model",
  "training_failed",
  "warming",
  "queue",
  "notice",
  "stopping",
];
const AGAIN = 4000; // milliseconds until a closed connection is tried again

/** @param {(name: string, data: any) => void} hear @param {(state: "offline") => void} lost */
export function listen(hear, lost) {
  const source = new EventSource("/api/news");
  for (const name of NAMES)
    source.addEventListener(name, (event) => hear(name, JSON.parse(/** @type {MessageEvent} */ (event).data || "{}")));
  source.addEventListener("error", () => {
    lost("offline");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => listen(hear, lost), AGAIN);
  });
  addEventListener("pagehide", () => source.close());
  return source;
}
