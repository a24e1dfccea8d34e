import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// The load of a WebSocket task: the opening handshake, which is an HTTP request like any other, and then the exchange
/// of messages.
final class WebSocketLoad: LiveLoad, @unchecked Sendable {
  private let gate: LiveGate
  private let settings: WebSocketTaskSettings
  private var handshake: WebSocketHandshake?
  private var agreement: WebSocketAgreement?
  private var connection: WebSocketConnection?

  var beginsWithRequest: Bool { true }
  var awaitsEvent: Bool { connection.map { $0.end == nil } ?? false }

  init(through gate: LiveGate, _ settings: WebSocketTaskSettings) {
    self.gate = gate
    self.settings = settings
  }

  /// Adds the fields of the handshake, with a new key.
  func addFields(to load: NetworkLoad) throws(URLError) {
    do throws(WebSocketHandshakeError) {
      let handshake = try WebSocketHandshake(
        offering: load.request.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") ?? "",
        offersCompression: settings.read { $0.offersCompression })
      self.handshake = handshake
      load.additions.replacements = handshake.fields
    } catch {
      throw URLError.make(.badURL, "the WebSocket cannot be opened: \(error)", url: load.request.url)
    }
  }

  /// Checks the server's answer. As on Darwin, any answer but a valid 101 is `badServerResponse`.
  func admit(_ response: HTTPURLResponse) throws(URLError) {
    do throws(WebSocketHandshakeError) {
      guard let handshake else { throw .hashUnavailable }
      agreement = try handshake.check(status: response.statusCode) { response.fields.values(of: $0) }
    } catch {
      throw URLError.make(.badServerResponse, "the server does not open the WebSocket: \(error)", url: response.url)
    }
  }

  func proceed(for load: Load) async throws(URLError) -> Bool {
    guard let connection else {
      try await open(for: load)
      return false
    }
    guard let end = connection.end else { return false }
    try await finish(end, load)
    return true
  }

  /// Uses the connection for the conversation.
  private func open(for load: Load) async throws(URLError) {
    guard let agreement, let tunnel = load.running?.exchange.connection.takeTunnel() else {
      throw Load.inconsistency
    }
    load.endExchange()
    load.networkLoad = nil
    // From here on only the time limit of the resource counts.
    load.stopIdleTime()
    let connection = WebSocketConnection(over: tunnel, agreement, settings) { load.perform() }
    // No call of `send` or `receive` returns before the delegate has been notified.
    await load.notifyWebSocket { session, task, delegate in
      delegate.urlSession(session, webSocketTask: task, didOpenWithProtocol: agreement.subprotocol)
    }
    self.connection = connection
    connection.owner = load
    connection.start()
    gate.open(for: connection)
  }

  /// Reports the end to the delegate, or throws its error.
  private func finish(_ end: WebSocketConnection.Outcome, _ load: Load) async throws(URLError) {
    switch end {
    case .closed(let close, _):
      let (code, reason) = (URLSessionWebSocketTask.CloseCode(close.code), close.reasonData)
      await load.notifyWebSocket { session, task, delegate in
        delegate.urlSession(session, webSocketTask: task, didCloseWith: code, reason: reason)
      }
    case .failed(let error, let cause):
      throw Self.urlError(for: error, cause)
    case .interrupted: throw load.interruption ?? .make(.cancelled)
    }
  }

  func interrupt(_ error: URLError) { connection?.interrupt(error) }

  func ended(_ failure: (any Error)?) {
    gate.close(failure ?? Self.notConnected)
    connection?.owner = nil
  }

  // MARK: - Errors

  /// The error of a call on a WebSocket that is closed, as on Darwin.
  static var notConnected: any Error { posix(.ENOTCONN, "The WebSocket is closed.") }

  /// The error of the calls that a failed conversation ends.
  static func error(for error: WebSocketError, _ cause: TransportError?) -> any Error {
    posixError(for: error) ?? urlError(for: error, cause)
  }

  /// The error of a task whose conversation has failed.
  private static func urlError(for error: WebSocketError, _ cause: TransportError?) -> URLError {
    switch error {
    case .messageTooBig: .make(.dataLengthExceedsMaximum, "\(error)", underlying: posixError(for: error))
    case .frameInvalid, .closeTooShort, .closeCodeInvalid, .invalidUTF8, .compressionInvalid, .dataUnsupported:
      .make(.badServerResponse, "\(error)", underlying: posixError(for: error))
    case .pongTimedOut, .closeTimedOut: .make(.timedOut, "\(error)")
    case .endedWithoutClose: cause.map { URLError($0, url: nil) } ?? .make(.networkConnectionLost, "\(error)")
    case .internalInconsistency: .make(.unknown, "\(error)")
    }
  }

  /// Returns an error with Darwin's code for a message that is too large, or for a server that breaks the protocol, and
  /// `nil` for any other failure.
  private static func posixError(for error: WebSocketError) -> (any Error)? {
    switch error {
    case .messageTooBig: posix(.EMSGSIZE, "\(error)")
    case .frameInvalid, .closeTooShort, .closeCodeInvalid, .invalidUTF8, .compressionInvalid, .dataUnsupported:
      posix(.EPROTO, "\(error)")
    case .endedWithoutClose, .pongTimedOut, .closeTimedOut, .internalInconsistency: nil
    }
  }

  private static func posix(_ code: POSIXErrorCode, _ message: String) -> any Error {
    NSError(domain: NSPOSIXErrorDomain, code: Int(code.rawValue), userInfo: NSError.entries(forMessage: message))
  }
}

extension Load {
  /// Calls the delegate of a WebSocket task, and returns when the call has returned.
  fileprivate func notifyWebSocket(
    _ call: @escaping @Sendable (URLSession, URLSessionWebSocketTask, any URLSessionWebSocketDelegate) -> Void
  ) async {
    guard let task = task as? URLSessionWebSocketTask else { return }
    await notifyDelegate { session, delegate in
      guard let delegate = delegate as? any URLSessionWebSocketDelegate else { return false }
      call(session, task, delegate)
      return true
    }
  }
}
