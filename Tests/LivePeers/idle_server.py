"""A WebSocket server that holds very many connections, on a loopback port that the kernel chooses.

The server answers the opening handshake and pings, sends each message back, and answers a Close. Frames of the client
have at most 125 bytes, and no message is fragmented.
"""

import asyncio
import base64
import hashlib
import resource

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PING, PONG, CLOSE = 9, 10, 8


class Connection(asyncio.Protocol):
    __slots__ = ("transport", "received", "is_open")

    def connection_made(self, transport):
        self.transport = transport
        self.received = b""
        self.is_open = False

    def data_received(self, data):
        self.received += data
        if not self.is_open:
            self.read_handshake()
        while self.is_open and self.read_frame():
            pass

    def read_handshake(self):
        head, separator, rest = self.received.partition(b"\r\n\r\n")
        if not separator:
            return
        fields = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        key = next(value.strip() for name, _, value in fields if name.lower() == b"sec-websocket-key")
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        self.transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self.received = rest
        self.is_open = True

    def read_frame(self):
        """Answers one frame. Returns whether there was one."""
        if len(self.received) < 2:
            return False
        opcode = self.received[0] & 0x0F
        count = self.received[1] & 0x7F
        if count > 125:
            self.transport.abort()
            return False
        if len(self.received) < 6 + count:
            return False
        mask = self.received[2:6]
        payload = bytes(byte ^ mask[index % 4] for index, byte in enumerate(self.received[6 : 6 + count]))
        self.received = self.received[6 + count :]
        if opcode != PONG:
            answer = PONG if opcode == PING else opcode
            self.transport.write(bytes([0x80 | answer, count]) + payload)
        if opcode == CLOSE:
            self.transport.close()
        return True


async def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
