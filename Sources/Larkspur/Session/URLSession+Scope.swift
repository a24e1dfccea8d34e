import Foundation
import LarkspurHTTP
import LarkspurTransport

/// Additions of Larkspur's to sessions.
extension URLSession {
  /// Makes a session for the time of a call. The session is invalidated when the call returns or throws, and running
  /// tasks are cancelled; tasks of a background session continue.
  ///
  /// ```swift
  /// let data = try await URLSession.withSession(configuration: .ephemeral) { session in
  ///   try await session.data(from: url).0
  /// }
  /// ```
  public static func withSession<Result, E: Error>(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)? = nil,
    delegateQueue: OperationQueue? = nil, _ body: (URLSession) async throws(E) -> Result
  ) async throws(E) -> Result {
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
    defer {
      if configuration.identifier == nil { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
    }
    return try await body(session)
  }

  /// Opens connections to the host of a URL before requests need them: looks up the name, connects, and makes the TLS
  /// handshake. Returns when those that are being opened are open or have failed.
  ///
  /// Requests use the connections as if earlier requests had left them. The limits of the session's pool hold
  /// (``URLSessionConfiguration/httpMaximumConnectionsPerHost``), and no connection to another host is closed. Unused
  /// connections close after the pool's idle time. curl has no such call.
  ///
  /// - Parameters:
  ///   - url: A URL of the scheme `http` or `https`. Path and query do not count.
  ///   - count: The number of connections to have, including those in use.
  /// - Returns: The number of connections to the host, which the limits may keep below `count`.
  /// - Throws: `URLError`: that of the latest attempt if there is no connection, `unsupportedURL` for another URL,
  ///   `cancelled` after the session's end, and `cannotConnectToHost` for a `count` below 1 and for a background session,
  ///   whose connections belong to its runner.
  @discardableResult
  public func prepareConnections(to url: URL, count: Int = 1) async throws -> Int {
    let name = "prepareConnections(to:count:)"
    if core.isBackground { throw URLError(.optionInvalid(name, "a background session has no connections"), url: url) }
    guard count > 0 else { throw URLError(.optionInvalid(name, "the count has to be above zero"), url: url) }
    guard let engine = try core.engine() else { throw URLError.make(.cancelled, url: url) }
    guard let target = try? LoadTarget(url) else { throw URLError.make(.unsupportedURL, url: url) }
    let core = core
    return try await engine.loop.run { try await engine.prepare(count, to: target, of: core, url) }
  }
}

extension SessionEngine {
  fileprivate func prepare(_ count: Int, to target: LoadTarget, of core: SessionCore, _ url: URL) async throws -> Int {
    let needs = RouteNeeds(trafficClass: core.settings.networkServiceType.trafficClass)
    let route: ResolvedRoute
    if let known = cachedRoute(to: target, decider: nil, needs) {
      route = known
    } else {
      route = try await resolveRoute(to: target, of: core, decider: nil, needs)
    }
    do throws(TransportError) {
      return try await pool.prepare(count, of: route.endpoint)
    } catch {
      throw URLError(error, url: url)
    }
  }
}
