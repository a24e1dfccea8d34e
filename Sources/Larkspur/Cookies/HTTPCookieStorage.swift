import Foundation
import LarkspurHTTP
import Synchronization

/// A container of cookies.
///
/// Cookies are kept by the rules of RFC 6265bis: 180 of one domain and 3000 in all are the most. The ``shared`` storage
/// and those of groups survive the process, in a file that several processes may share; session-only cookies are never
/// written. Changes are written in the background half a second after the first of them, all together, and at the
/// process's normal end (`exit`). A cookie that a server sets again with the same value and attributes is no change. A
/// process that is killed loses what it changed in its last half-second, and nothing else. What other processes have written
/// is seen when the file is first read, and after each write of one's own.
///
/// A subclass may choose what is sent and kept, or keep it elsewhere: sessions ask ``getCookiesFor(_:completionHandler:)`` and
/// ``storeCookies(_:for:)``, the members that take a task, as Apple documents it. Of the first one the form that is not overridden asks
/// ``cookies(for:)-(URL)``.
///
/// All members may be used on any thread. A call takes a lock for a short while; the first one of a storage with a file
/// also reads it.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
  struct State {
    var jar: CookieJar
    var policy = HTTPCookie.AcceptPolicy.always
    var isLoaded: Bool
    var isWriteScheduled = false
    var isWriting = false
    /// Checksum of the file as it was last read or written here.
    var fileChecksum: UInt64 = 0
  }

  let state: Mutex<State>
  /// What is known without the lock.
  enum Occupancy: Int {
    case unknown, empty, occupied
  }
  let occupancy: Atomic<Int>
  /// Whether a notification of what responses have changed is on its way.
  let isNotifying = Atomic(false)
  let disk: CookieDisk?
  let suffixes: @Sendable () -> PublicSuffixTable

  /// A storage in memory, which is gone with its last owner. It is what a session with an ephemeral configuration has.
  public override init() {
    disk = nil
    suffixes = { PublicSuffixes.system }
    state = Mutex(State(jar: CookieJar(limits: CookieLimits(), keepsChanges: false), isLoaded: true))
    occupancy = Atomic(Occupancy.empty.rawValue)
    super.init()
  }

  static func ephemeral() -> HTTPCookieStorage { HTTPCookieStorage() }

  /// - Parameter suffixes: The public suffix list, asked for when it is needed.
  package init(
    disk: CookieDisk?, limits: CookieLimits = CookieLimits(),
    suffixes: @escaping @Sendable () -> PublicSuffixTable = { PublicSuffixes.system }
  ) {
    self.disk = disk
    self.suffixes = suffixes
    let hasFile = disk != nil
    state = Mutex(State(jar: CookieJar(limits: limits, keepsChanges: hasFile), isLoaded: !hasFile))
    occupancy = Atomic((hasFile ? Occupancy.unknown : .empty).rawValue)
    super.init()
    if hasFile { ExitHook.register(self) }
  }

  deinit {
    if disk != nil { CookieWriting.finish(self) }
  }

  // MARK: - Storages

  private static let sharedStorage = HTTPCookieStorage(
    disk: CookieDisk(path: CookiePlaces.folder(ofProgram: ProcessInfo.processInfo.processName)))

  private static let groups = Mutex<[String: HTTPCookieStorage]>([:])

  /// The storage of this program, kept in `$XDG_DATA_HOME/<program>/larkspur/cookies`, or in
  /// `~/.local/share/<program>/larkspur/cookies`. If that place cannot be written, it is a storage in memory.
  open class var shared: HTTPCookieStorage { sharedStorage }

  /// A storage that programs of this user share by an identifier, kept in
  /// `$XDG_DATA_HOME/larkspur/groups/<identifier>/cookies`. In one process it is always the same.
  open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
    groups.withLock { groups in
      if let storage = groups[identifier] { return storage }
      let storage = HTTPCookieStorage(disk: CookieDisk(path: CookiePlaces.folder(ofGroup: identifier)))
      groups[identifier] = storage
      return storage
    }
  }

  // MARK: - Cookies

  /// All cookies that have not expired, the oldest first.
  open var cookies: [HTTPCookie]? {
    let now = CookieTime(Date())
    return withJar { $0.all(at: now) }.map { HTTPCookie(HTTPCookie.Content($0)) }
  }

  /// The cookies in an order of one's own.
  open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
    let cookies = cookies ?? []
    return (cookies as NSArray).sortedArray(using: sortOrder) as? [HTTPCookie] ?? cookies
  }

  /// The cookies that a request of this URL would have, in the order in which they are sent.
  open func cookies(for url: URL) -> [HTTPCookie]? {
    storedCookies(for: url)
  }

  final func storedCookies(for url: URL) -> [HTTPCookie] {
    guard let request = CookieSite.request(url) else { return [] }
    let now = CookieTime(Date())
    return withJar { $0.cookies(for: request, now: now) }.map { HTTPCookie(HTTPCookie.Content($0)) }
  }

  /// Keeps a cookie, in place of one with the same name, domain and path. One that has expired only takes the other's
  /// place. Nothing happens if ``cookieAcceptPolicy`` is `never`.
  open func setCookie(_ cookie: HTTPCookie) {
    let now = CookieTime(Date())
    let isChanged = change { state in
      guard state.policy != .never else { return false }
      state.jar.put(cookie.content.cookie(now: now), now: now)
      return true
    }
    if isChanged { postCookiesChanged() }
  }

  /// Keeps the cookies that a response has set, if ``cookieAcceptPolicy`` allows it.
  ///
  /// - Parameters:
  ///   - cookies: What has been set.
  ///   - url: Where they are from. A cookie for a domain that its host does not belong to is passed over, and so is one
  ///     for a public suffix, and one whose name begins with `__Secure-` or `__Host-` and whose attributes do not keep that
  ///     promise (RFC 6265bis 5.7). Without a URL all are kept.
  ///   - mainDocumentURL: The document for whose sake the request was made, which `onlyFromMainDocumentDomain`
  ///     compares.
  open func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
    let now = CookieTime(Date())
    let suffixes = suffixes
    let isChanged = change { state in
      guard accepts(state.policy, from: url, mainDocument: mainDocumentURL) else { return false }
      var isChanged = false
      for cookie in cookies {
        let cookie = cookie.content.cookie(now: now)
        guard let url else {
          state.jar.put(cookie, now: now)
          isChanged = true
          continue
        }
        guard let request = CookieSite.request(url) else { return false }
        let outcome = state.jar.receive(cookie, from: request, now: now) { suffixes().isPublicSuffix($0) }
        if case .refused = outcome { continue }
        isChanged = true
      }
      return isChanged
    }
    if isChanged { postCookiesChanged() }
  }

  /// Removes the cookie that has the same name, domain and path.
  open func deleteCookie(_ cookie: HTTPCookie) {
    let now = CookieTime(Date())
    let isChanged = change { $0.jar.remove(cookie.content.cookie(now: now), now: now) }
    if isChanged { postCookiesChanged() }
  }

  /// Removes the cookies that were set at the date or after it: none if the date is not a number.
  open func removeCookies(since date: Date) {
    guard !date.timeIntervalSinceReferenceDate.isNaN else { return }
    let now = CookieTime(Date())
    let start = CookieTime(date)
    let isChanged = change { $0.jar.removeAll(now: now) { $0.update >= start } }
    if isChanged { postCookiesChanged() }
  }

  // MARK: - Tasks

  /// The cookies that a task's request would have, in the order in which they are sent: those that go with the
  /// request's URL, method and main document.
  ///
  /// The handler is called on a thread of its own. Nil: the task has no request any more.
  open func getCookiesFor(
    _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
  ) {
    let cookies = task.currentRequest.flatMap { chosenCookies(for: $0) }
    Self.notifications.async { completionHandler(cookies) }
  }

  /// The cookies that a task's request would have, in the order in which they are sent.
  /// - Returns: Nil if the task has no request any more.
  open func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
    task.currentRequest.flatMap { chosenCookies(for: $0) }
  }

  /// Keeps the cookies that the response to a task has set, as ``setCookies(_:for:mainDocumentURL:)`` does with the
  /// URLs of the task's request.
  open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
    guard let request = task.currentRequest, let url = request.url else { return }
    setCookies(cookies, for: url, mainDocumentURL: request.mainDocumentURL)
  }

  // MARK: - Policy

  /// What is kept of what servers set; `always` unless it is changed. It is not written to the file.
  open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy {
    get { state.withLock { $0.policy } }
    set {
      let isChanged = state.withLock { state in
        defer { state.policy = newValue }
        return state.policy != newValue
      }
      if isChanged {
        NotificationCenter.default.post(name: .NSHTTPCookieManagerAcceptPolicyChanged, object: self)
      }
    }
  }

  /// How many cookies there are, in the words that other platforms have for it.
  open override var description: String {
    "\(disk == nil ? "Ephemeral" : "")<NSHTTPCookieStorage cookies count:\(cookies?.count ?? 0)>"
  }

  func postCookiesChanged() {
    NotificationCenter.default.post(name: .NSHTTPCookieManagerCookiesChanged, object: self)
  }
}

extension NSNotification.Name {
  /// The accept policy of a cookie storage has changed. The object is the storage; it is posted on the thread of the
  /// change.
  public static let NSHTTPCookieManagerAcceptPolicyChanged = NSNotification.Name(
    rawValue: "NSHTTPCookieManagerAcceptPolicyChangedNotification")

  /// The cookies of a storage have changed. The object is the storage. It is posted on the thread of the call that
  /// changed them, and on one of its own when a response has.
  public static let NSHTTPCookieManagerCookiesChanged = NSNotification.Name(
    rawValue: "NSHTTPCookieManagerCookiesChangedNotification")
}
