// The shapes that pass between the modules, for the type checker and the reader. No code.

/** @typedef {[number, number, string | null]} Segment  start, stop (half-open), label; null: unlabelled */
/** @typedef {"model" | "fixed" | "file" | "accepted"} By */
/** @typedef {{name: string, labels: string[], unit: boolean, labelled: boolean}} Level */
/**
 * @typedef {object} Project
 * @property {string} id identity of the database
 * @property {string} name
 * @property {Level[]} levels
 * @property {Record<string, Record<string, string[]>>} children
 * @property {"text" | "time"} kind
 * @property {{now: string, former: string | null, ways: Record<string, string>} | null} tokens of plain texts
 * @property {number | null} rate steps a second
 * @property {string[]} channels
 * @property {string} annotator
 * @property {boolean} invited whether the name is that of the address
 * @property {{number: number, status: string, words: string} | null} model
 * @property {{number: number, words: string} | null} waiting a model that takes over with the next sequence
 * @property {{batch: string, count: number} | null} batch sequences that were accepted together last
 * @property {Training} training
 * @property {{done: boolean, words: string}} warming
 * @property {{sequences: number, done: number, corrections: number}} counts
 * @property {number} train_after
 * @property {number} news
 * @property {{kind: string, message: string}[]} notices
 * @property {boolean} demo
 * @property {Record<string, Record<string, {hue?: number, words?: string, key?: string}>>} looks of labels, by level
 * @property {string} guidelines
 * @property {string | null} last_edit the edit of labels that is undone next, in words
 */
/** @typedef {{running: boolean, number?: number, iteration?: number, loss?: number | null, seconds_left?: number | null, words: string}} Training */
/** @typedef {{level: string, start: number, stop: number, what: string, fix: number, new: boolean, release: object}} ConflictItem */
/**
 * @typedef {object} View
 * @property {number} id
 * @property {string} name
 * @property {number} length
 * @property {"open" | "begun" | "done"} status
 * @property {number} version
 * @property {number | null} model
 * @property {boolean} exact
 * @property {string | null} saved_at
 * @property {Record<string, Segment[]>} segments
 * @property {Record<string, By[]>} by
 * @property {Record<string, {on: number[], off: [number, number][]}>} fixed_borders
 * @property {object[]} fixes
 * @property {Record<string, Uint8Array>} doubt
 * @property {number | null} entropy
 * @property {Record<string, [number, number][]>} changed
 * @property {{message: string, rule: string, items: ConflictItem[]} | null} conflict
 * @property {Marks} marks
 * @property {{level: string, start: number, stop: number, border: boolean, said: Record<string, string | boolean>}[]} unsettled
 *    labels of steps, or whether there is a border before the first of them
 * @property {string | null} [held_by] another person who works on it: it can only be read here
 * @property {boolean} can_undo
 * @property {boolean} can_redo
 * @property {boolean} [repeated]
 */
/** @typedef {{uid: string, sequence: number, version: number, kind: string, body: any, annotator: string, length?: number, made: number}} Fix */
/** @typedef {{id: number, name: string, length: number, status: string, version: number, doubt: number | null, chosen: string,
 *    corrections: number, unsettled: number, model: number | null, digest: string, at: string, marks: Marks,
 *    media: "audio" | "video" | null}} Item */
/** @typedef {{flag?: boolean, skip?: boolean, note?: string}} Marks */
/** @typedef {{total: number, done: number, next: number | null, order: number[], items: Item[]}} Queue */
/** @typedef {{name: string, min: number, max: number, values: Float32Array}} Channel */
/** @typedef {{kind: string, length: number, channels: Channel[], tokens: string[] | null, times: number[] | null,
 *    gaps: number[] | null}} Observations  `gaps`: before each word of a text 0 nothing, 1 a blank, 2 the end of a line */
/** @typedef {{level: string, step: number, range: [number, number] | null}} Selection */
/** @typedef {{start: number, stop: number, top: number, x: (step: number) => number, step: (x: number) => number}} Line
 *    one line of steps on the screen; `x` of a border, `step` (fractional) at an x */
/** @typedef {{level: string, from: number, at: number}} Moving  a border on its way */

export {};
