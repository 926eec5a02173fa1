// Talk to the server: JSON in, JSON out, errors with their kind.

/** The server answered with an error. */
export class Refused extends Error {
  /** @param {number} status @param {{kind?: string, message?: string, [key: string]: any}} error */
  constructor(status, error) {
    super(error.message || `the server answered ${status}`);
    this.status = status;
    this.kind = error.kind || "internal";
    this.data = error;
  }
}

/** The server did not answer at all. */
export class Offline extends Error {}

let project = "";

/** From now on, all requests are meant for one database: a server that has another one open refuses them.
 * @param {string} id */
export function identify(id) {
  project = id;
}

/** An address that names the database, for requests without headers. @param {string} path */
export const named = (path) => `${path}${path.includes("?") ? "&" : "?"}project=${encodeURIComponent(project)}`;

/** @param {string} path @param {RequestInit} [options] @returns {Promise<any>} */
async function call(path, options = {}) {
  let response, answer;
  try {
    const headers = { ...options.headers, ...(project ? { "X-Studio-Project": project } : {}) };
    response = await fetch(path, { credentials: "same-origin", ...options, headers });
    answer = await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (response && !response.ok) throw new Refused(response.status, {});
    throw new Offline("the server does not answer");
  }
  if (!response.ok) throw new Refused(response.status, answer.error || {});
  return answer;
}

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export const ask = (path, signal) => call(path, { signal });

/** @param {string} path @param {object} body @returns {Promise<any>} */
export const tell = (path, body) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** @param {string} text base64 @returns {Uint8Array} */
export function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

/** @param {string} text base64 of little-endian float32 @returns {Float32Array} */
function floats(text) {
  const raw = bytes(text);
  const data = new DataView(raw.buffer);
  const out = new Float32Array(raw.length >> 2);
  for (let i = 0; i < out.length; i++) out[i] = data.getFloat32(4 * i, true);
  return out;
}

/** A view as it came, with its doubts unpacked. @param {any} raw @returns {import("./types.js").View} */
export function readView(raw) {
  const doubt = Object.fromEntries(Object.entries(raw.doubt).map(([level, text]) => [level, bytes(String(text))]));
  return { ...raw, doubt, changed: raw.changed || {}, conflict: raw.conflict || null };
}

/** @param {any} raw @returns {import("./types.js").Observations} */
export function readObservations(raw) {
  const channels = (raw.channels || []).map((channel) => ({ ...channel, values: floats(channel.values) }));
  return { kind: raw.kind, length: raw.length, channels, tokens: raw.tokens || null, times: raw.times || null, gaps: raw.gaps || null };
}
