/**
 * Divides a Yjs update that is longer than a message may be. The pieces, applied in their order, give the same document.
 *
 * - A piece builds on the document and on the pieces before it: the server rejects an update with a gap.
 * - A deletion is in the piece with the text that it deletes; deletions of text that no piece has come first. So a server
 *   that stores an insertion stores all that its author deleted before it (`unsaved/unsaved.ts`).
 * - No cut divides a surrogate pair: Yjs encodes each half as U+FFFD.
 *
 * Pure, tested with `node --test`.
 */

import { writeVarUint, Y } from "../lib/vendor.ts"

type Struct = ReturnType<typeof Y.decodeUpdate>["structs"][number]
type Deleted = { client: number, clock: number, len: number }

/**
 * @param max bytes of a piece
 * @returns the update itself, if it is short enough
 */
export function piecesOf(update: Uint8Array, max: number): Uint8Array[] {
  if (update.length <= max) return [update]
  const { structs, ds } = Y.decodeUpdate(update)
  const deleted = [...ds.clients].flatMap(([client, ranges]) => ranges.map(({ clock, len }) => ({ client, clock, len })))
  const starts = new Map(structs.toReversed().map(({ id }) => [id.client, id.clock]))
  const before = deleted.flatMap((range) => cut(range, 0, starts.get(range.client) ?? Number.POSITIVE_INFINITY))
  return [...divided([], before, max), ...divided(inOrder(structs), deleted, max)]
}

/**
 * Halves what is too long, and halves it again.
 *
 * @param structs in order; of each client without a gap. None: the deletions alone
 */
function divided(structs: readonly Struct[], deleted: readonly Deleted[], max: number): Uint8Array[] {
  if (structs.length + deleted.length === 0) return []
  const runs = runsOf(structs)
  const own = structs.length === 0 ? deleted : deleted.flatMap((range) => cut(range, ...ends(runs.get(range.client))))
  const piece = encoded(runs, own)
  if (piece.length <= max) return [piece]
  const [first, last] = structs.length === 1 ? stringHalves(structs[0]) : halves(structs)
  if (first && last) return [...divided(first, own, max), ...divided(last, own, max)]
  const [some, others] = structs.length === 0 ? halves(deleted) : []
  // A single struct that is no text has no halves.
  return some && others ? [...divided([], some, max), ...divided([], others, max)] : [piece]
}

function halves<T>(list: readonly T[]): [T[], T[]] | [] {
  const middle = list.length >> 1
  return middle === 0 ? [] : [list.slice(0, middle), list.slice(middle)]
}

function stringHalves(struct: Struct | undefined): [Struct[], Struct[]] | [] {
  if (!(struct instanceof Y.Item) || !(struct.content instanceof Y.ContentString)) return []
  const { id, origin, rightOrigin, parent, parentSub, content } = struct
  const half = content.str.length >> 1
  const at = /[\ud800-\udbff]/.test(content.str.charAt(half - 1)) ? half + 1 : half
  if (at === 0 || content.str.length <= at) return []
  const [left, right] = [content.str.slice(0, at), content.str.slice(at)].map((text) => new Y.ContentString(text))
  const [next, previous] = [id.clock + at, id.clock + at - 1].map((clock) => Y.createID(id.client, clock))
  const first = new Y.Item(id, null, origin, null, rightOrigin, parent, parentSub, left as any)
  const rest = new Y.Item(next as Y.ID, null, previous ?? null, null, rightOrigin, null, null, right as any)
  return [[first], [rest]]
}

/** The structs in an order in which each follows all that it builds upon. An update has them by client. */
function inOrder(structs: readonly Struct[]) {
  const runs = runsOf(structs)
  const taken = new Map([...runs.keys()].map((client) => [client, 0]))
  const isThere = (id: unknown) => {
    if (!(id instanceof Y.ID)) return true
    const next = runs.get(id.client)?.[taken.get(id.client) ?? 0]
    return !next || id.clock < next.id.clock
  }
  const ordered: Struct[] = []
  for (let before = -1; before < ordered.length; ) {
    before = ordered.length
    for (const [client, run] of runs) {
      let at = taken.get(client) ?? 0
      for (let struct = run[at]; struct; struct = run[++at]) {
        if (struct instanceof Y.Item && ![struct.origin, struct.rightOrigin, struct.parent].every(isThere)) break
        ordered.push(struct)
        taken.set(client, at + 1)
      }
    }
  }
  // The others build on structs that no update brought.
  return [...ordered, ...[...runs].flatMap(([client, run]) => run.slice(taken.get(client)))]
}

function byClient<T>(list: readonly T[], clientOf: (item: T) => number): Map<number, T[]> {
  const runs: Map<number, T[]> = new Map()
  for (const item of list) {
    const run = runs.get(clientOf(item))
    if (run) run.push(item)
    else runs.set(clientOf(item), [item])
  }
  return runs
}

const runsOf = (structs: readonly Struct[]) => byClient(structs, ({ id }) => id.client)

function ends(run: readonly Struct[] = []): [number, number] {
  const [first, last] = [run[0], run.at(-1)]
  return first && last ? [first.id.clock, last.id.clock + last.length] : [0, 0]
}

function cut({ client, clock, len }: Deleted, from: number, to: number): Deleted[] {
  const [start, end] = [Math.max(clock, from), Math.min(clock + len, to)]
  return start < end ? [{ client, clock: start, len: end - start }] : []
}

function encoded(runs: Map<number, Struct[]>, deleted: readonly Deleted[]) {
  const encoder = new Y.UpdateEncoderV1()
  const write = (number: number) => writeVarUint(encoder.restEncoder, number)
  write(runs.size)
  // Yjs integrates the clients in this order.
  for (const [client, run] of [...runs].sort(([a], [b]) => b - a)) {
    write(run.length)
    write(client)
    write(run[0]?.id.clock ?? 0)
    for (const struct of run) struct.write(encoder, 0)
  }
  const deletes = byClient(deleted, ({ client }) => client)
  write(deletes.size)
  for (const [client, ranges] of deletes) {
    write(client)
    write(ranges.length)
    for (const { clock, len } of ranges) {
      write(clock)
      write(len)
    }
  }
  return encoder.toUint8Array()
}
