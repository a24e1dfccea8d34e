import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

extension ScriptedWorld {
  /// Opens a connection that carries bytes without HTTP.
  func openTunnel() throws -> Tunnel {
    let running = run { [loop] in
      Shared(try await Connection.open(to: [.loopback(port: 80)], on: loop).takeStream())
    }
    let tunnel = running.value?.value.take()
    return try #require(tunnel)
  }
}
