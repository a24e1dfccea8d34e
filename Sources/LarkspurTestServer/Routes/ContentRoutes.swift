// Routes that send the deterministic content (`TestServer.content`), framed in every way.
//
//   /bytes/N              N bytes with Content-Length
//   /chunked/N            N bytes in chunks; ?chunk=SIZE (bytes, 16384), ?extensions=1, ?trailers=1 (their checksum)
//   /close-delimited/N    N bytes, ended by the connection's end
//   /drip                 ?bytes=10 &pieces=5 &interval=100 (milliseconds between two pieces)

let contentRoutes: [Router.Route] = [
  .get("/bytes/{count}") { .content(count: try $0.number("count")) },
  .get("/chunked/{count}") { try chunked($0) },
  .get("/close-delimited/{count}") { request in
    var response = TestServer.Response.content(count: try request.number("count"))
    response.framing = .untilClose
    return response
  },
  .get("/drip") { try drip($0) },
]

private func chunked(_ request: TestServer.Request) throws -> TestServer.Response {
  let count = try request.number("count")
  var response = TestServer.Response.content(count: count)
  response.framing = .chunked(
    chunkBytesMax: try request.queryNumber("chunk", in: 1...(1 << 30), else: 16_384),
    chunkExtension: request.queryFlag("extensions") ? ";plain=1;quoted=\"a;\\\"b\\\"\"" : "")
  if request.queryFlag("trailers") {
    response.fields.add("Trailer", "X-Checksum")
    response.trailers = ["X-Checksum": TestServer.contentChecksum(count: count).description]
  }
  return response
}

private func drip(_ request: TestServer.Request) throws -> TestServer.Response {
  let count = try request.queryNumber("bytes", else: 10)
  let pieces = try request.queryNumber("pieces", in: 1...1_000_000, else: 5)
  let interval = try request.queryNumber("interval", in: 0...86_400_000, else: 100)
  var response = TestServer.Response.content(count: count)
  response.body = .stream(count: count) { writer in
    for piece in 0..<pieces {
      if piece > 0, interval > 0 { try writer.pause(.milliseconds(interval)) }
      // The sizes of the pieces differ by at most one byte, and their sum is `count`.
      let start = count / pieces * piece + min(piece, count % pieces)
      try writer.writeContent(start..<start + count / pieces + (piece < count % pieces ? 1 : 0))
    }
  }
  return response
}
