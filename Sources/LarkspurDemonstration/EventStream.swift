import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurTestServer

extension DemoPart {
  private static let eventCount = 6

  /// An event stream whose server ends each connection after two events. The source connects again, and asks for the
  /// events behind the last one that it has, up to the server's 204.
  static let eventStream = DemoPart("An event stream, resumed until its end") { stage in
    stage.server.route("GET", "/dawn-chorus") { request in
      let seen = request.fields["Last-Event-ID"].flatMap { Int($0) } ?? 0
      guard seen < eventCount else { return TestServer.Response(status: 204) }
      let events = [seen + 1, seen + 2].map { "event: song\nid: \($0)\ndata: verse \($0)\n\n" }.joined()
      return TestServer.Response(fields: ["Content-Type": "text/event-stream"], body: .text("retry: 20\n" + events))
    }
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let requestsBefore = stage.server.requestsReceived
    let source = URLSessionEventSource(url: try stage.url("/dawn-chorus"), session: session)
    let start = stage.now
    var received: [String] = []
    for try await event in source.events {
      let time = Format.decimal(Format.milliseconds(stage.now.duration(since: start)))
      stage.say("\(Format.padded(time, to: 6, atEnd: false)) ms  \(event.id ?? "-") \(event.event): \(event.data)")
      received.append(event.data)
    }
    let count = stage.server.requestsReceived - requestsBefore
    stage.say("\(count) connections, the last one with status 204")
    try DemoFailure.unless(received == (1...eventCount).map { "verse \($0)" }, "other events came: \(received)")
    try DemoFailure.unless(count == eventCount / 2 + 1, "there were \(count) requests")
    return "\(received.count) events over \(count - 1) connections"
  }
}
