// npm's hocuspocus server on its own address, which is the first line it prints.
import { Server } from '@hocuspocus/server'

const server = new Server({ address: '127.0.0.1', port: 0, quiet: true, stopOnSignals: false })
await server.listen()
console.log(`http://127.0.0.1:${server.httpServer.address().port}`)
