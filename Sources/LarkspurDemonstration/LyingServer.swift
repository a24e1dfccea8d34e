import LarkspurHTTP
import LarkspurTransport

extension DemoPart {
  /// A server that announces more bytes than it sends: the client must report a truncated body.
  static let lyingServer = DemoPart("A server that lies about its length") { stage in
    let connection = try await stage.connect()
    defer { connection.close() }
    return try await connection.cancelledWithTask {
      let exchange = try await stage.send(try stage.request("/lie/1000?bytes=100"), over: connection)
      stage.say("GET /lie/1000?bytes=100")
      stage.say("\(exchange.status), content-length: \(exchange.value(of: "content-length") ?? "(missing)")")
      var received = 0
      do throws(TransportError) {
        while try await exchange.receiveData({ received += $0.count }) {}
      } catch {
        stage.say("\(received) bytes came, then: \(error)")
        guard case .badResponse(.truncated(.body(missing: 1000))) = error else { throw error }
        return "noticed: 1,000 bytes missing"
      }
      throw DemoFailure("the client has not noticed")
    }
  }
}
