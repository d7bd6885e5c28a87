// npm `redlock` for tests/bench/claim.rs. For each line `TASKS PAIRS` of the standard input so many
// tasks, each with its own lock, together acquire and release so often; the process writes the
// pairs a second. First it writes a line when it is connected.
//
//     node redlock.mjs PORT

import { createInterface } from 'node:readline'
import Redis from 'ioredis'
import Redlock from 'redlock'

const client = new Redis({ host: '127.0.0.1', port: Number(process.argv[2]) })
const redlock = new Redlock([client], { retryCount: 0 })

/**
 * @param {number} number
 * @param {number} pairs
 */
async function task(number, pairs) {
  for (let pair = 0; pair < pairs; pair += 1) {
    const lock = await redlock.acquire([`lock:bench:${number}`], 12_000)
    await lock.release()
  }
}

await client.ping()
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const [tasks, pairs] = line.split(' ').map(Number)
  const began = process.hrtime.bigint()
  await Promise.all(Array.from({ length: tasks }, (_, number) => task(number, pairs / tasks)))
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  console.log(pairs / seconds)
}
client.disconnect()
