"""The check of the WebSocket server, before it is measured."""

from .processes import Failure

# The key and its answer are the example of RFC 6455 1.3. The offer has to be declined.
HANDSHAKE = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Extensions": "permessage-deflate",
}
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
MASK = b"\x01\x82\x43\xc4"


def check_echo(connection, path, size):
    """Opens a WebSocket over an HTTP connection: does it send a message of this size back, and nothing compressed?"""
    connection.request("GET", path, headers=HANDSHAKE)
    response = connection.getresponse()
    if (response.status, response.headers["Sec-WebSocket-Accept"]) != (101, ACCEPT):
        raise Failure(f"the WebSocket is not opened: {response.status}")
    if response.headers["Sec-WebSocket-Extensions"]:
        raise Failure("the WebSocket has an extension")
    message = bytes(index % 251 for index in range(size))
    masked = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(message))
    connection.sock.sendall(head(size, 0x80) + MASK + masked)
    expected = head(size) + message
    received = b""
    while len(received) < len(expected) and (piece := connection.sock.recv(1 << 20)):
        received += piece
    if received != expected:
        raise Failure(f"the echo of {size} bytes is not the message")


def head(size, mask_bit=0):
    """The head of a frame with a whole binary message."""
    if size < 126:
        return bytes([0x82, mask_bit | size])
    if size < 1 << 16:
        return bytes([0x82, mask_bit | 126]) + size.to_bytes(2, "big")
    return bytes([0x82, mask_bit | 127]) + size.to_bytes(8, "big")
