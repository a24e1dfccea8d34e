import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTransport

/// What the parts of the demo have in common: the server, the client's loop, and the way they speak.
struct DemoStage {
  let server: TestServer
  let loop: ClientLoop

  var now: Deadline { loop.kernel.now() }

  func connect() async throws -> Connection {
    try await Connection.open(
      to: [.loopback(port: UInt16(clamping: server.port))], on: loop, deadline: now.advanced(by: .seconds(10)))
  }

  func request(_ target: String, _ fields: [(name: String, value: String)] = []) throws -> RequestHead {
    var writer = try RequestWriter(method: "GET", target: target, host: server.authority)
    try writer.field("User-Agent", "larkspur/\(LarkspurCommand.version)")
    for (name, value) in fields { try writer.field(name, value) }
    return writer.finish()
  }

  /// Begins an exchange, and cancels it with the demo. A demo that hangs is worth less than one that fails.
  func send(_ request: RequestHead, over connection: Connection) async throws -> Exchange {
    try await connection.send(request, deadline: now.advanced(by: .seconds(60)))
  }

  /// A line of a part's own.
  func say(_ line: String) { Console.print("   \(line)\n") }
}
