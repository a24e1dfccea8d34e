import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport

/// The load of a stream task: it opens the connection, secures it when the program asks for that, and ends with it.
final class StreamLoad: LiveLoad, @unchecked Sendable {
  private let gate: LiveGate
  private let host: String
  private let port: UInt16
  /// The connection of the data task that became a stream, if there was one.
  private var tunnel: Tunnel?
  private var connection: StreamConnection?
  private var challenges: ChallengeRouter?

  var beginsWithRequest: Bool { false }
  var awaitsEvent: Bool { connection.map { !$0.hasEvent } ?? false }

  /// - Parameter tunnel: A connection that is open already, or `nil` to open one.
  init(through gate: LiveGate, to host: String, port: UInt16, over tunnel: Tunnel? = nil) {
    self.gate = gate
    self.host = host
    self.port = port
    self.tunnel = tunnel
  }

  func addFields(to load: NetworkLoad) {}
  func admit(_ response: HTTPURLResponse) throws(URLError) {}

  func proceed(for load: Load) async throws(URLError) -> Bool {
    guard let connection else {
      try await start(load)
      return false
    }
    switch connection.takeEvent() {
    case nil: return false
    case .end(let error):
      if let error { throw error }
      return true
    case .secure:
      let tunnel = try await secure(connection.takeTunnel(), load)
      connection.endHolding()
      connection.use(tunnel)
      return false
    case .capture:
      guard let tunnel = connection.takeTunnel() else { throw StreamConnection.closed }
      connection.endHolding()
      await capture(tunnel, load)
      return true
    }
  }

  /// Starts to use the connection, which is opened if the stream does not continue another task's.
  private func start(_ load: Load) async throws(URLError) {
    let engine = load.engine
    let challenges = engine.streamChallenges(of: load.task, load.core)
    self.challenges = challenges
    load.attach(challenges)
    var tunnel = self.tunnel.take()
    if tunnel == nil { tunnel = try await open(challenges, load) }
    guard let tunnel else { throw Load.inconsistency }
    load.stopIdleTime()
    let connection = StreamConnection(on: engine.loop, whenEventful: { load.perform() }) { isReadClosed in
      load.postToDelegate { session, task, delegate in
        guard let task = task as? URLSessionStreamTask, let delegate = delegate as? any URLSessionStreamDelegate else {
          return
        }
        if isReadClosed {
          delegate.urlSession(session, readClosedFor: task)
        } else {
          delegate.urlSession(session, writeClosedFor: task)
        }
      }
    }
    self.connection = connection
    connection.owner = load
    gate.open(for: connection)
    connection.use(tunnel)
  }

  func interrupt(_ error: URLError) { connection?.interrupt(error) }

  func ended(_ failure: (any Error)?) {
    gate.close(failure ?? StreamConnection.closed)
    connection?.release(failure as? URLError)
  }

  /// Runs a step of the transport, which an interruption of the load cancels.
  private func attempt(
    _ load: Load, _ step: @escaping @Sendable () async throws(TransportError) -> Tunnel
  ) async throws(URLError) -> Tunnel {
    let attempt = Task(executorPreference: load.engine.loop) {
      @concurrent () -> Result<UncheckedSendable<Tunnel>, TransportError> in
      do throws(TransportError) {
        return .success(UncheckedSendable(try await step()))
      } catch {
        return .failure(error)
      }
    }
    let result = try await load.waiting(
      cancellingBy: { attempt.cancel() }, timed: "while opening the stream's connection", { await attempt.value })
    switch result {
    case .success(let tunnel): return tunnel.value
    case .failure(let error): throw URLError(error, url: nil)
    }
  }

  private func open(_ challenges: ChallengeRouter, _ load: Load) async throws(URLError) -> Tunnel {
    let (engine, core) = (load.engine, load.core)
    let route = try await engine.streamRoute(toHost: host, port: port, of: core, asking: challenges)
    let pool = engine.pool
    return try await attempt(load) { () async throws(TransportError) in try await pool.openTunnel(over: route) }
  }

  /// Makes the TLS handshake over an open connection, with the session's trust, pins and challenges.
  private func secure(
    _ tunnel: Tunnel?, _ load: Load
  ) async throws(URLError) -> Tunnel {
    guard let tunnel, let challenges else { throw StreamConnection.closed }
    load.countIdleTime()
    defer { load.stopIdleTime() }
    let (host, port) = (host, port)
    let security = try await load.engine.security(toHost: host, port: port, asking: challenges)
    let plain = UncheckedSendable(tunnel)
    return try await attempt(load) { () async throws(TransportError) in
      try await plain.value.secured(by: security, as: host, port: port)
    }
  }

  private func capture(_ tunnel: Tunnel, _ load: Load) async {
    let box = UncheckedSendable(CapturedStreams(over: tunnel).makeStreams())
    let task = load.task as? URLSessionStreamTask
    await load.notifyDelegate { session, delegate in
      guard let delegate = delegate as? any URLSessionStreamDelegate, let task else { return false }
      delegate.urlSession(session, streamTask: task, didBecome: box.value.0, outputStream: box.value.1)
      return true
    }
  }
}
