import LarkspurBytes
import LarkspurConsole
import LarkspurTestServer
import LarkspurTransport

extension DemoPart {
  /// Many requests over one connection, counted by the server.
  static let keptAliveRequests = DemoPart("1,000 requests over one connection") { stage in
    let count = 1000
    let (connectionsBefore, requestsBefore) = (stage.server.connectionsAccepted, stage.server.requestsReceived)
    let connection = try await stage.connect()
    defer { connection.close() }
    let request = try stage.request("/bytes/100")
    let start = stage.now
    try await connection.cancelledWithTask {
      for _ in 0..<count {
        let exchange = try await stage.send(request, over: connection)
        var received = 0
        while try await exchange.receiveData({ received += $0.count }) {}
        try DemoFailure.unless(
          exchange.status == 200 && received == 100, "status \(exchange.status) with \(received) bytes")
      }
    }
    let time = stage.now.duration(since: start)
    let connections = stage.server.connectionsAccepted - connectionsBefore
    let requests = stage.server.requestsReceived - requestsBefore
    let rate = Format.grouped(Int(Double(count) / max(Format.seconds(time), 1e-9)))
    stage.say("GET /bytes/100, one after another: \(rate) requests per second")
    stage.say("The server has counted \(Format.grouped(requests)) requests, and \(connections) connection.")
    try DemoFailure.unless(requests == count, "the server has counted \(requests) requests")
    try DemoFailure.unless(connections == 1, "the server has counted \(connections) connections")
    return "\(rate) requests/s, \(connections) connection"
  }
}
