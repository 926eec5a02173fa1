// Which channels are shown, and in which order; kept in the browser for each database.

/** @typedef {import("./types.js").Project} Project */

/** @param {Project | null} project */
const place = (project) => `hscrf-studio-channels/${project?.id}`;

/** Names that were put in order, and those that are hidden. @param {Project | null} project
 * @returns {{order: string[], hidden: string[]}} */
function kept(project) {
  try {
    return { order: [], hidden: [], ...JSON.parse(localStorage.getItem(place(project)) || "{}") };
  } catch {
    return { order: [], hidden: [] };
  }
}

/** Numbers of the channels that are shown, from top to bottom. @param {Project | null} project
 * @param {import("./types.js").Observations} seen @returns {number[]} */
export function channelOrder(project, seen) {
  const { order, hidden } = kept(project);
  const rank = (/** @type {number} */ i) => {
    const at = order.indexOf(seen.channels[i].name);
    return at < 0 ? order.length + i : at;
  };
  const all = seen.channels.map((_, i) => i).filter((i) => !hidden.includes(seen.channels[i].name));
  return all.sort((a, b) => rank(a) - rank(b));
}

/** @param {Project | null} project @param {string[]} names of the channels as they are shown @param {string} name @param {number} by */
export function moveChannel(project, names, name, by) {
  const at = names.indexOf(name);
  const to = Math.max(0, Math.min(names.length - 1, at + by));
  const order = names.filter((each) => each !== name);
  order.splice(to, 0, name);
  localStorage.setItem(place(project), JSON.stringify({ ...kept(project), order }));
}

/** @param {Project | null} project @param {string} name */
export function hideChannel(project, name) {
  const { order, hidden } = kept(project);
  localStorage.setItem(place(project), JSON.stringify({ order, hidden: [...hidden, name] }));
}

/** @param {Project | null} project */
export function showAllChannels(project) {
  localStorage.setItem(place(project), JSON.stringify({ ...kept(project), hidden: [] }));
}
