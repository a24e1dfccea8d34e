"""An HTTP server that sends as long as it likes, on a loopback port that the kernel chooses.

  /events    three events, whose IDs continue behind `Last-Event-ID`, and the end of the stream; status 204 after ID 9
  /stepwise  an event, and the next one for each request for /step; the end after the third one
  /step      lets /stepwise continue
  /raw       a head without a length, a line, and then an answer to each line that comes, until `bye`
"""

import asyncio

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-cache\r\nConnection: close\r\n{}\r\n"
LAST_ID = 9


def head(kind, *fields):
    return HEAD.format(kind, "".join(field + "\r\n" for field in fields)).encode()


async def events(writer, fields):
    first = int(fields.get("last-event-id") or 0) + 1
    if first > LAST_ID:
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        return
    writer.write(head("text/event-stream") + b": hello\nretry: 7\n\n")
    for number in range(first, first + 3):
        writer.write(f"id: {number}\nevent: tick\ndata: number {number}\ndata: of {LAST_ID}\n\n".encode())
        await writer.drain()


async def stepwise(writer, fields, steps):
    writer.write(head("text/event-stream", *(["X-Accel-Buffering: no"] if "x-ask" in fields else [])))
    for number in range(3):
        if number > 0:
            await steps.get()
        writer.write(f"id: {number}\ndata: step {number}\n\n".encode())
        await writer.drain()


async def raw(reader, writer):
    writer.write(head("application/octet-stream") + b"begin\n")
    while line := await reader.readline():
        writer.write(b"answer to " + line)
        await writer.drain()
        if line == b"bye\n":
            break


async def main():
    steps = asyncio.Queue()

    async def serve(reader, writer):
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            path = lines[0].split(" ")[1]
            fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
            if path == "/events":
                await events(writer, fields)
            elif path == "/stepwise":
                await stepwise(writer, fields, steps)
            elif path == "/step":
                steps.put_nowait(None)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            elif path == "/raw":
                await raw(reader, writer)
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
