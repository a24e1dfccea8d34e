import Foundation
import LarkspurEngine
import LarkspurHTTP
import Synchronization

/// A store of cookies.
///
/// Cookies are stored by the rules of RFC 6265bis: at most 180 of one domain and 3000 in all. The ``shared`` storage
/// and those of groups survive the process, in a file that several processes may share; session-only cookies are never
/// written. Changes are written together in the background half a second after the first of them, and at the process's
/// normal end (`exit`). A cookie that a server sets again with the same value and attributes is written only if its
/// expiry has moved by more than 10 % of the remaining lifetime, or by more than a day. A process that is killed loses
/// the changes of its last half-second, and smaller moves of expiries. Changes by other processes become visible when
/// the file is first read, and after each write by this process.
///
/// A subclass may choose which cookies are sent and stored, or store them elsewhere: sessions call
/// ``getCookiesFor(_:completionHandler:)`` and ``storeCookies(_:for:)``, the members that take a task, as Apple
/// documents it. The default implementation of ``getCookiesFor(_:completionHandler:)`` calls ``cookies(for:)-(URL)`` of
/// a subclass.
///
/// All members may be used on any thread. A call takes a lock for a short time; the first call of a storage with a file
/// also reads the file.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
  struct State {
    var jar: CookieJar
    var policy = HTTPCookie.AcceptPolicy.always
    var isLoaded: Bool
    var isWriteScheduled = false
    var isWriting = false
    /// The checksum of the file when it was last read or written here.
    var fileChecksum: UInt64 = 0
  }

  let state: Mutex<State>
  /// Whether there are cookies, as far as is known without the lock.
  enum Occupancy: Int {
    case unknown, empty, occupied
  }
  let occupancy: Atomic<Int>
  /// Whether a notification about changes by responses is scheduled.
  let isNotifying = Atomic(false)
  let disk: CookieDisk?
  let suffixes: @Sendable () -> PublicSuffixTable

  /// Creates a storage in memory, such as a session with an ephemeral configuration has. Its cookies are lost when it
  /// is released.
  public override init() {
    disk = nil
    suffixes = { PublicSuffixes.system }
    state = Mutex(State(jar: CookieJar(limits: CookieLimits(), keepsChanges: false), isLoaded: true))
    occupancy = Atomic(Occupancy.empty.rawValue)
    super.init()
  }

  static func ephemeral() -> HTTPCookieStorage { HTTPCookieStorage() }

  /// Creates a storage.
  ///
  /// - Parameters:
  ///   - disk: The storage's file, or `nil` to keep the cookies in memory.
  ///   - suffixes: Returns the public suffix list. Called when the list is needed.
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
    disk: CookieDisk(path: CookieLocation.directory(ofProgram: ProcessInfo.processInfo.processName)))

  private static let groups = Mutex<[String: HTTPCookieStorage]>([:])

  /// The storage of this program, in `$XDG_DATA_HOME/<program>/larkspur/cookies`, or in
  /// `~/.local/share/<program>/larkspur/cookies`. If the file cannot be written, the cookies are kept in memory.
  open class var shared: HTTPCookieStorage { sharedStorage }

  /// Returns the storage that this user's programs share under an identifier, in
  /// `$XDG_DATA_HOME/larkspur/groups/<identifier>/cookies` (by default below `~/.local/share`). One process gets the
  /// same object each time.
  open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
    groups.withLock { groups in
      if let storage = groups[identifier] { return storage }
      let storage = HTTPCookieStorage(disk: CookieDisk(path: CookieLocation.directory(ofGroup: identifier)))
      groups[identifier] = storage
      return storage
    }
  }

  // MARK: - Cookies

  /// All cookies that have not expired, oldest first.
  open var cookies: [HTTPCookie]? {
    let now = CookieTime(Date())
    return withJar { $0.all(at: now) }.map { HTTPCookie(HTTPCookie.Content($0)) }
  }

  /// Returns the cookies, sorted by the descriptors.
  open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
    let cookies = cookies ?? []
    return (cookies as NSArray).sortedArray(using: sortOrder) as? [HTTPCookie] ?? cookies
  }

  /// Returns the cookies that a request of this URL would send, in the order in which they are sent.
  open func cookies(for url: URL) -> [HTTPCookie]? {
    storedCookies(for: url)
  }

  final func storedCookies(for url: URL) -> [HTTPCookie] {
    guard let request = CookieSite.request(url) else { return [] }
    let now = CookieTime(Date())
    return withJar { $0.cookies(for: request, now: now) }.map { HTTPCookie(HTTPCookie.Content($0)) }
  }

  /// Stores a cookie, replacing one with the same name, domain and path. An expired cookie only removes the stored one.
  /// Nothing happens if ``cookieAcceptPolicy`` is `never`.
  open func setCookie(_ cookie: HTTPCookie) {
    let now = CookieTime(Date())
    let isChanged = change { state in
      guard state.policy != .never else { return false }
      state.jar.put(cookie.content.cookie(now: now), now: now)
      return true
    }
    if isChanged { postCookiesChanged() }
  }

  /// Stores the cookies that a response has set, if ``cookieAcceptPolicy`` allows it.
  ///
  /// - Parameters:
  ///   - cookies: The cookies.
  ///   - url: The URL that the cookies come from. A cookie is ignored if the URL's host does not belong to its domain,
  ///     if its domain is a public suffix, or if its name begins with `__Secure-` or `__Host-` and its attributes do
  ///     not satisfy that prefix (RFC 6265bis 5.7). Without a URL all cookies are stored.
  ///   - mainDocumentURL: The document that the request was made for. `onlyFromMainDocumentDomain` compares its domain.
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

  /// Removes the cookie with the same name, domain and path.
  open func deleteCookie(_ cookie: HTTPCookie) {
    let now = CookieTime(Date())
    let isChanged = change { $0.jar.remove(cookie.content.cookie(now: now), now: now) }
    if isChanged { postCookiesChanged() }
  }

  /// Removes the cookies that were set at the date or later. Removes none if the date is not a number.
  open func removeCookies(since date: Date) {
    guard !date.timeIntervalSinceReferenceDate.isNaN else { return }
    let now = CookieTime(Date())
    let start = CookieTime(date)
    let isChanged = change { $0.jar.removeAll(now: now) { $0.update >= start } }
    if isChanged { postCookiesChanged() }
  }

  // MARK: - Tasks

  /// Passes the cookies that a task's request would send to the handler, in the order in which they are sent. They are
  /// selected by the request's URL, method and main document.
  ///
  /// The handler is called on a queue of Larkspur's, with `nil` if the task has no request any more.
  open func getCookiesFor(
    _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
  ) {
    let cookies = task.currentRequest.flatMap { chosenCookies(for: $0) }
    Self.notifications.async { completionHandler(cookies) }
  }

  /// Returns the cookies that a task's request would send, in the order in which they are sent.
  /// - Returns: The cookies, or `nil` if the task has no request any more.
  open func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
    task.currentRequest.flatMap { chosenCookies(for: $0) }
  }

  /// Stores the cookies that the response to a task has set, as ``setCookies(_:for:mainDocumentURL:)`` does with the
  /// URLs of the task's request.
  open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
    guard let request = task.currentRequest, let url = request.url else { return }
    setCookies(cookies, for: url, mainDocumentURL: request.mainDocumentURL)
  }

  // MARK: - Policy

  /// Which of the cookies that servers set are stored. `always` by default. The policy is not written to the file.
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

  /// The number of cookies, in the form that other platforms use.
  open override var description: String {
    "\(disk == nil ? "Ephemeral" : "")<NSHTTPCookieStorage cookies count:\(cookies?.count ?? 0)>"
  }

  func postCookiesChanged() {
    NotificationCenter.default.post(name: .NSHTTPCookieManagerCookiesChanged, object: self)
  }
}

extension NSNotification.Name {
  /// Posted when the accept policy of a cookie storage has changed. The object is the storage. The notification is
  /// posted on the thread of the change.
  public static let NSHTTPCookieManagerAcceptPolicyChanged = NSNotification.Name(
    rawValue: "NSHTTPCookieManagerAcceptPolicyChangedNotification")

  /// Posted when the cookies of a storage have changed. The object is the storage. The notification is posted on the
  /// thread of the call that changed the cookies, or, for cookies of a response, on a queue of Larkspur's.
  public static let NSHTTPCookieManagerCookiesChanged = NSNotification.Name(
    rawValue: "NSHTTPCookieManagerCookiesChangedNotification")
}
