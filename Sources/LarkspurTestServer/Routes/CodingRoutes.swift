import LarkspurCoding

// Routes with content codings (RFC 9110, section 8.4.1). They ignore Accept-Encoding.
//
//   /gzip, /deflate         the request as JSON, compressed; /deflate?raw=1 without the zlib wrapping
//   /gzip/N, /deflate/N     N bytes of the deterministic content, in chunks

let codingRoutes: [Router.Route] = [
  .get("/gzip") { try compressedEcho($0, "gzip", .gzip) },
  .get("/deflate") { try compressedEcho($0, "deflate", $0.queryFlag("raw") ? .rawDeflate : .zlib) },
  .get("/gzip/{count}") { try compressedContent($0, "gzip", .gzip) },
  .get("/deflate/{count}") { try compressedContent($0, "deflate", $0.queryFlag("raw") ? .rawDeflate : .zlib) },
]

private func compressedEcho(
  _ request: TestServer.Request, _ coding: String, _ format: CompressionFormat
) throws -> TestServer.Response {
  TestServer.Response(
    fields: ["Content-Type": "application/json", "Content-Encoding": coding, "Vary": "Accept-Encoding"],
    body: .bytes(try compressed(Array(echo(request).text.utf8), as: format)))
}

private func compressedContent(
  _ request: TestServer.Request, _ coding: String, _ format: CompressionFormat
) throws -> TestServer.Response {
  let count = try request.number("count")
  return TestServer.Response(
    fields: ["Content-Type": "application/octet-stream", "Content-Encoding": coding],
    body: .stream { writer in
      var compressor = try Compressor(format)
      var output: [UInt8] = []
      try Content.forEachRun(in: 0..<count) { run in
        try compressor.compress(run, into: &output)
        if !output.isEmpty { try writer.write(output) }
        output.removeAll(keepingCapacity: true)
      }
      try compressor.finish(into: &output)
      try writer.write(output)
    })
}
