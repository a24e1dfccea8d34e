// Event streams.
//
//   /events/N     N events with the data "event 1" to "event N" and their numbers as IDs, continued behind
//                 Last-Event-ID, and a 204 behind the last one; ?each=N (events in one response), ?retry=MS,
//                 ?piece=BYTES (in one chunk), ?end=close or ?end=reset (in place of the last chunk)

let eventRoutes: [Router.Route] = [
  Router.Route("GET", "/events/{count}") { request in
    let count = try request.number("count", in: 0...100_000)
    var stream = TestServer.EventStream((0..<count).map { TestServer.StreamEvent("event \($0 + 1)") })
    let number = { (name: String, range: ClosedRange<Int>) throws -> Int? in
      request.query[name] == nil ? nil : try request.queryNumber(name, in: range, else: 0)
    }
    stream.eventsPerResponse = try number("each", 1...100_000)
    stream.retry = try number("retry", 0...86_400_000)
    stream.pieceBytes = try number("piece", 1...(1 << 30))
    switch request.query["end"] {
    case nil: break
    case "close": stream.ending = .close
    case "reset": stream.ending = .reset
    case let other?: throw Router.BadRequest(message: "end is to be close or reset, not \(other)")
    }
    return stream.answer(to: request)
  }
]
