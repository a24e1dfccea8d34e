import Synchronization

/// What has to be the same for a session to be resumed, beside the configuration that the cache belongs to.
public struct SessionKey: Hashable, Sendable {
  public var server: ServerName
  public var port: UInt16
  /// The proxies on the way, or empty: what one path has shown does not count for another.
  public var path: String

  public init(server: ServerName, port: UInt16, path: String = "") {
    self.server = server
    self.port = port
    self.path = path
  }
}

/// The sessions that servers have given to the connections of one configuration. Any thread may use it.
///
/// A TLS 1.3 ticket is used once, so that two connections cannot be linked by it (RFC 8446 C.4); servers send several, and
/// several are kept. A TLS 1.2 session is used until it is replaced.
///
/// A connection looks its server's shelf up once, and brings there what it is given.
final class SessionCache: Sendable {
  /// So many per server.
  static let sessionsMax = 4
  /// So many servers; the one that was longest not asked for goes first.
  static let serversMax = 256

  /// The sessions of one server.
  final class Shelf: Sendable {
    fileprivate let sessions = Mutex<[TLSSession]>([])
    /// When it was asked for last, in look-ups.
    fileprivate let latestUse = Atomic<UInt64>(0)

    func keep(_ session: TLSSession) {
      sessions.withLock { sessions in
        if !session.isUsedOnce { sessions.removeAll { !$0.isUsedOnce } }
        if sessions.count == SessionCache.sessionsMax { sessions.removeFirst() }
        sessions.append(session)
      }
    }

    /// The newest session that is still good. `date`: seconds since 1970.
    func take(date: Int64) -> TLSSession? {
      sessions.withLock { sessions in
        while let session = sessions.last {
          let isGood = date < session.validUntil && session.isResumable
          if session.isUsedOnce || !isGood { sessions.removeLast() }
          if isGood { return session }
        }
        return nil
      }
    }
  }

  private struct State {
    var shelves: [SessionKey: Shelf] = [:]
    var uses: UInt64 = 0
  }

  private let state = Mutex(State())

  func shelf(for key: SessionKey) -> Shelf {
    state.withLock { state in
      state.uses += 1
      if let shelf = state.shelves[key] {
        shelf.latestUse.store(state.uses, ordering: .relaxed)
        return shelf
      }
      if state.shelves.count == Self.serversMax,
        let oldest = state.shelves.min(by: {
          $0.value.latestUse.load(ordering: .relaxed) < $1.value.latestUse.load(ordering: .relaxed)
        })
      {
        state.shelves[oldest.key] = nil
      }
      let shelf = Shelf()
      shelf.latestUse.store(state.uses, ordering: .relaxed)
      state.shelves[key] = shelf
      return shelf
    }
  }

  /// What connections that are open already are given from now on goes with them.
  func removeAll() {
    state.withLock { $0 = State() }
  }
}
