import Synchronization

/// The properties that two connections must share to resume a session, beyond the configuration that the cache belongs
/// to.
public struct SessionKey: Hashable, Sendable {
  public var server: ServerName
  public var port: UInt16
  /// The proxies on the way, or empty. A session from one path is not used on another.
  public var path: String

  public init(server: ServerName, port: UInt16, path: String = "") {
    self.server = server
    self.port = port
    self.path = path
  }
}

/// The sessions that servers have issued to the connections of one configuration. Any thread may use the cache.
///
/// A TLS 1.3 ticket is used once, so that two connections cannot be linked by it (RFC 8446 C.4). Servers send several
/// tickets, and the cache keeps several. A TLS 1.2 session is used until a newer one replaces it.
///
/// A connection looks up the shelf of its server once, and adds the sessions that it receives to that shelf.
final class SessionCache: Sendable {
  /// Maximum number of sessions for each server.
  static let sessionsMax = 4
  /// Maximum number of servers. The cache drops the server whose last lookup is the oldest.
  static let serversMax = 256

  /// The sessions of one server.
  final class Shelf: Sendable {
    fileprivate let sessions = Mutex<[TLSSession]>([])
    /// The count of lookups at the latest lookup of this shelf.
    fileprivate let latestUse = Atomic<UInt64>(0)

    func keep(_ session: TLSSession) {
      sessions.withLock { sessions in
        if !session.isUsedOnce { sessions.removeAll { !$0.isUsedOnce } }
        if sessions.count == SessionCache.sessionsMax { sessions.removeFirst() }
        sessions.append(session)
      }
    }

    /// Returns the newest valid session, and removes it if it may be used only once.
    ///
    /// - Parameter date: Seconds since 1970.
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

  /// Removes all sessions. Sessions that open connections receive later are lost, because they go to shelves that are
  /// no longer in the cache.
  func removeAll() {
    state.withLock { $0 = State() }
  }
}
