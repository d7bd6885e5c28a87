// npm's y-websocket server on its own address, which is the first line it prints.
import http from 'node:http'
import WebSocket from 'ws'
import { setupWSConnection } from '@y/websocket-server/utils'

const server = http.createServer()
const sockets = new WebSocket.Server({ noServer: true })
sockets.on('connection', setupWSConnection)
server.on('upgrade', (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (ws) => sockets.emit('connection', ws, request))
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
