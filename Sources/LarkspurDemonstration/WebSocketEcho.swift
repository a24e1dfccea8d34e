import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurTestServer

extension DemoPart {
  /// A WebSocket whose server sends each message back. Both sides close it at the end.
  static let webSocketEcho = DemoPart("A WebSocket that echoes") { stage in
    let server = try TestServer()
    defer { server.stop() }
    server.webSocket("/echo", [.echo], answer: TestServer.WebSocketAnswer(subprotocols: ["song"]))
    guard let url = URL(string: server.webSocketURL("/echo")) else { throw DemoFailure("the server has no URL") }
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let socket = session.webSocketTask(with: url, protocols: ["song"])
    socket.resume()
    let start = stage.now
    try await socket.sendPing()
    stage.say("GET /echo (\((socket.response as? HTTPURLResponse)?.statusCode ?? 0)), a ping and its pong")
    let songs = ["chirrup", "trill", String(repeating: "twitter ", count: 10_000)]
    for song in songs { try await socket.send(.string(song)) }
    var received: [String] = []
    for try await message in socket.messages {
      guard case .string(let text) = message else { throw DemoFailure("a message is no text") }
      received.append(text)
      let time = Format.decimal(Format.milliseconds(stage.now.duration(since: start)))
      stage.say("\(Format.padded(time, to: 6, atEnd: false)) ms  \(Format.bytes(text.utf8.count))")
      if received.count == songs.count { socket.cancel(with: .normalClosure, reason: nil) }
    }
    let code = socket.closeCode.rawValue
    stage.say("closed with \(code)")
    try DemoFailure.unless(received == songs, "other messages came back")
    try DemoFailure.unless(code == 1000, "the code is another one")
    return "\(received.count) messages there and back, closed with \(code)"
  }
}
