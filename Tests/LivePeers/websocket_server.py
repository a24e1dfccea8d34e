"""A WebSocket server for the tests, with the package `websockets`, on a loopback port that the kernel chooses.

The path selects what the server does:

  /echo            sends each message back
  /about           sends the subprotocol and the extensions that were agreed on
  /fragments       sends a text and binary data in fragments, with a ping between them
  /ping            sends a ping, and a message once the pong has come
  /close/CODE/WHY  closes
  /closed/NAME     receives messages until the client closes, and notes the code and the reason under the name
  /closes/NAME     sends what was noted under the name, once there is something
  /cookies         sends the request's Cookie, and sets a cookie in the response to the handshake
"""

import asyncio
import collections

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

SUBPROTOCOLS = ["chat.v2", "chat.v1"]
closes = collections.defaultdict(asyncio.Queue)


async def fragments(connection):
    async def texts():
        yield "one, "
        await connection.ping()
        yield "two, "
        yield "three: äöü"

    async def pieces():
        for value in range(3):
            yield bytes([value]) * 100_000

    await connection.send(texts())
    await connection.send(pieces())


async def serve_connection(connection):
    path = connection.request.path
    words = path.split("/")[1:]
    if words[0] == "echo":
        async for message in connection:
            await connection.send(message)
    elif words[0] == "about":
        names = ",".join(extension.name for extension in connection.protocol.extensions)
        await connection.send(f"subprotocol={connection.subprotocol} extensions={names}")
    elif words[0] == "fragments":
        await fragments(connection)
    elif words[0] == "ping":
        await (await connection.ping(b"larkspur"))
        await connection.send("pong")
    elif words[0] == "close":
        await connection.close(int(words[1]), words[2])
    elif words[0] == "closed":
        try:
            while True:
                await connection.recv()
        except ConnectionClosed as end:
            close = end.rcvd
            closes[words[1]].put_nowait(f"{close.code} {close.reason}" if close else "none")
    elif words[0] == "closes":
        await connection.send(await closes[words[1]].get())
    elif words[0] == "cookies":
        await connection.send(connection.request.headers.get("Cookie", ""))


def set_cookie(connection, request, response):
    if request.path == "/cookies":
        response.headers["Set-Cookie"] = "flavour=plain; Path=/"


async def main():
    options = {
        "subprotocols": SUBPROTOCOLS,
        "select_subprotocol": lambda connection, offers: next((own for own in SUBPROTOCOLS if own in offers), None),
        "max_size": None,
        "ping_interval": None,
        "process_response": set_cookie,
    }
    async with serve(serve_connection, "127.0.0.1", 0, **options) as server:
        print("listening on", server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
