import Foundation
import Larkspur
import LarkspurTestServer

/// Servers and proxies that fail before the request is sent: in the handshake or in the tunnel.
extension HostileServer {
  // MARK: - Handshakes

  private static func handshake(_ name: String, _ steps: TestServer.Step...) -> HostileServer {
    HostileServer(name, ends: .failure(.secureConnectionFailed), [.beforeHandshake] + steps)
  }

  private static func reset(_ name: String, _ steps: TestServer.Step...) -> HostileServer {
    HostileServer(name, ends: .failure(.networkConnectionLost), [.beforeHandshake] + steps)
  }

  private static func stall(_ name: String, _ steps: TestServer.Step...) -> HostileServer {
    HostileServer(name, timeout: patience, ends: .failure(.timedOut), [.beforeHandshake] + steps)
  }

  static let handshakes = [
    stall("says nothing", .hang),
    stall("half a record", .send([22, 3, 3, 0]), .hang),
    stall("stalls before its first flight", .handshake(stallingBeforeFlight: 1)),
    stall("stalls in its first flight", .stall(afterSending: 100), .handshake),
    handshake("records of nothing", .repeat([.send([20, 3, 3, 0, 1, 1]), .pause(.milliseconds(20))])),
    handshake("answers without TLS", .send(good), .hang),
    handshake("closes", .close),
    reset("resets at the first byte", .expectBytes(count: 1), .reset),
    handshake("closes in its first flight", .close(afterSending: 100), .handshake),
    reset("resets in its first flight", .reset(afterSending: 100), .handshake),
    handshake("a record beyond all records", .send([22, 3, 3, 0xff, 0xff]), .hang),
    handshake("a message beyond all messages", .send([22, 3, 3, 0, 4, 2, 0xff, 0xff, 0xff]), .hang),
    handshake("data before keys", .send([23, 3, 3, 0, 4, 1, 2, 3, 4]), .hang),
    handshake("refuses", .refuseHandshake(alert: 40)),
  ]

  // MARK: - Proxies

  private static func refusal(_ name: String, _ text: String, then steps: TestServer.Step...) -> HostileServer {
    HostileServer(name, ends: .failure(.cannotConnectToHost), [.expectRequest, .send(latin1: text)] + steps)
  }

  private static let okay = "HTTP/1.1 200 OK\r\n"

  static let proxies = [
    HostileServer("says nothing", timeout: patience, ends: .failure(.timedOut), [.hang]),
    HostileServer("half a head", timeout: patience, ends: .failure(.timedOut), [.send(okay), .hang]),
    HostileServer("no TLS behind it", timeout: patience, ends: .failure(.timedOut), [.send(okay + "\r\n"), .hang]),
    HostileServer("closes", ends: .failure(.cannotConnectToHost), [.close]),
    refusal("closes when asked", "", then: .close),
    refusal("resets when asked", "", then: .reset),
    refusal("forbids", "HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nbad", then: .hang),
    refusal("forbids, with a body that does not come", "HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nbad", then: .hang),
    refusal(
      "leads elsewhere", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", then: .hang),
    refusal("demands nothing in particular", "HTTP/1.1 407 No\r\nContent-Length: 3\r\n\r\nbad", then: .hang),
    refusal(
      "demands, and sets a cookie",
      "HTTP/1.1 407 No\r\nSet-Cookie: a=b\r\nProxy-Authenticate: Basic realm=\"r\"\r\nContent-Length: 3\r\n\r\nbad",
      then: .hang),
    refusal("switches protocols", "HTTP/1.1 101 So\r\nUpgrade: x\r\n\r\n", then: .hang),
    refusal("is no proxy", "\u{5}\0", then: .hang),
    refusal("interim responses", "", then: .repeat([.send("HTTP/1.1 100 Continue\r\n\r\n")])),
    refusal("a head without an end", okay, then: .repeat([.send("X: y\r\n")])),
    HostileServer(
      "no TLS behind a tunnel", ends: .failure(.secureConnectionFailed),
      [.expectRequest, .send(okay + "\r\n" + good), .hang]),
    HostileServer(
      "a body in place of a tunnel", ends: .failure(.secureConnectionFailed),
      [.expectRequest, .send(okay + "Content-Length: 40\r\n\r\n" + String(repeating: "x", count: 40)), .hang]),
    HostileServer(
      "closes the tunnel", ends: .failure(.secureConnectionFailed), [.expectRequest, .send(okay + "\r\n"), .close]),
  ]
}
