import Synchronization

/// What has to be the same for a session to be resumed, beside the configuration that the cache belongs to.
package struct SessionKey: Hashable, Sendable {
  package var server: ServerName
  package var port: UInt16
  /// The proxies on the way, or empty: what one path has shown does not count for another.
  package var path: String

  package init(server: ServerName, port: UInt16, path: String = "") {
    self.server = server
    self.port = port
    self.path = path
  }
}

/// The sessions that servers have given to the connections of one configuration. Any thread may use it.
///
/// A TLS 1.3 ticket is used once, so that two connections cannot be linked by it (RFC 8446 C.4); servers send several, and
/// several are kept. A TLS 1.2 session is used until it is replaced.
final class SessionCache: Sendable {
  /// So many per server.
  static let sessionsMax = 4
  /// So many servers; the one whose sessions are oldest goes first.
  static let serversMax = 256

  private struct State {
    var sessions: [SessionKey: [TLSSession]] = [:]
    /// The servers, oldest first.
    var order: [SessionKey] = []
  }

  private let state = Mutex(State())

  func keep(_ session: TLSSession, for key: SessionKey) {
    state.withLock { state in
      var sessions = state.sessions[key] ?? []
      if !session.isUsedOnce { sessions.removeAll { !$0.isUsedOnce } }
      if sessions.count == Self.sessionsMax { sessions.removeFirst() }
      sessions.append(session)
      state.sessions[key] = sessions
      state.order.removeAll { $0 == key }
      state.order.append(key)
      if state.order.count > Self.serversMax { state.sessions[state.order.removeFirst()] = nil }
    }
  }

  /// The newest session that is still good. `date`: seconds since 1970.
  func take(for key: SessionKey, date: Int64) -> TLSSession? {
    state.withLock { state in
      while let session = state.sessions[key]?.last {
        let isGood = date < session.validUntil && session.isResumable
        if session.isUsedOnce || !isGood { state.sessions[key]?.removeLast() }
        if isGood { return session }
      }
      state.sessions[key] = nil
      state.order.removeAll { $0 == key }
      return nil
    }
  }

  func removeAll() {
    state.withLock { $0 = State() }
  }
}
