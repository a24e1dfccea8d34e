// Routes that answer slowly or in pieces.
//
//   /stream/N N lines of JSON, each in a separate chunk /delay/MS the request as JSON, after MS milliseconds (cancelled
//   when the client ends its side)

let streamRoutes: [Router.Route] = [
  .get("/stream/{count}") { request in
    let count = try request.number("count")
    return TestServer.Response(
      fields: ["Content-Type": "application/x-ndjson"],
      body: .stream { writer in
        for line in 0..<count {
          try writer.write(
            TestServer.JSON.object([.init("line", .integer(line)), .init("url", .string(request.url))]).text + "\n")
        }
      }, framing: .chunked(chunkBytesMax: 1 << 20))
  },
  Router.Route("*", "/delay/{milliseconds}") { request in
    let milliseconds = try request.number("milliseconds", in: 0...86_400_000)
    return .response(.json(echo(request)), delay: .milliseconds(milliseconds))
  },
]
