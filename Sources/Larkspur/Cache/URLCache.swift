import Foundation
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Keeps responses in memory and on disk, and finds them again.
///
/// A session uses it as a private HTTP cache (RFC 9111); a program may look things up and store them as well. Memory
/// and disk have a budget each, in bytes; what was used longest ago goes first. On disk each response is a file of
/// its own in a folder that only this user may read. A process that is killed at any moment leaves whole entries
/// behind, and several processes may share a folder.
///
/// For any thread. What is in memory is found at once; members that have to look at the disk wait for it and say so.
/// The session waits for nothing: it is told when the disk has answered.
open class URLCache: NSObject, @unchecked Sendable {
  /// Where a response may be stored.
  public enum StoragePolicy: UInt, Sendable {
    /// In memory and on disk.
    case allowed
    /// In memory.
    case allowedInMemoryOnly
    /// Nowhere.
    case notAllowed
  }

  /// Of the shared cache, in bytes.
  static let sharedMemoryCapacity = 4 << 20
  static let sharedDiskCapacity = 20 << 20

  let core: CacheCore

  private static let current = Mutex<URLCache?>(nil)

  /// The cache of sessions that were given no other: 4 MiB in memory and 20 MiB on disk, in the program's folder
  /// below `$XDG_CACHE_HOME` or `~/.cache`, until a program sets another.
  open class var shared: URLCache {
    get {
      current.withLock { cache in
        if let cache { return cache }
        let made = URLCache(
          memoryCapacity: sharedMemoryCapacity, diskCapacity: sharedDiskCapacity, diskPath: nil)
        cache = made
        return made
      }
    }
    set {
      // The old one may be a program's own, and goes when the lock has gone.
      _ = current.withLock { cache in
        defer { cache = newValue }
        return cache
      }
    }
  }

  /// - Parameters:
  ///   - memoryCapacity: In bytes.
  ///   - diskCapacity: In bytes. With 0 nothing is written to disk.
  ///   - path: Where the cache makes its folder, `URLCache`. A relative path is one in the program's folder below
  ///     `$XDG_CACHE_HOME` or `~/.cache`; nil is that folder itself.
  public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
    core = Self.makeCore(memoryCapacity, diskCapacity, path)
  }

  /// - Parameters:
  ///   - memoryCapacity: In bytes.
  ///   - diskCapacity: In bytes. With 0 nothing is written to disk.
  ///   - directoryURL: Where the cache makes its folder, `URLCache`; nil is the program's folder below
  ///     `$XDG_CACHE_HOME` or `~/.cache`.
  public init(memoryCapacity: Int, diskCapacity: Int, directory directoryURL: URL? = nil) {
    core = Self.makeCore(memoryCapacity, diskCapacity, directoryURL?.path)
  }

  /// A cache with the capacities and the folder of the shared one.
  public override init() { core = Self.makeCore(Self.sharedMemoryCapacity, Self.sharedDiskCapacity, nil) }

  private static func makeCore(_ memoryCapacity: Int, _ diskCapacity: Int, _ path: String?) -> CacheCore {
    let place = CacheLocation.path(path)
    let disk = CacheDisk(isInUse: diskCapacity > 0) { (isCreating) throws(Errno) in
      guard let place else { throw .noSuchFile }
      return try FolderFiles(path: place, isCreating: isCreating)
    }
    return CacheCore(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, disk: disk)
  }

  init(core: CacheCore) { self.core = core }

  deinit { core.writeSoon() }

  /// What time it is for the cache and for the tasks that use it.
  var now: Date { core.now() }

  // MARK: - Capacities

  /// In bytes. What does not fit into a smaller one is removed.
  open var memoryCapacity: Int {
    get { core.memoryCapacity }
    set { core.memoryCapacity = newValue }
  }

  /// In bytes. What does not fit into a smaller one is removed.
  open var diskCapacity: Int {
    get { core.diskCapacity }
    set { core.diskCapacity = newValue }
  }

  /// In bytes: bodies, fields, and a little for each response.
  open var currentMemoryUsage: Int { core.memoryUsage }

  /// In bytes: the sizes of the files of all processes that share the folder. Waits for the disk.
  open var currentDiskUsage: Int { core.diskUsage }

  // MARK: - Responses

  /// The response that is stored for a request, fresh or not. Waits for the disk if it is not in memory.
  ///
  /// Of several that a server chose by fields of the request (`Vary`) it is the latest whose fields are those of
  /// `request`; fields that `request` does not have, as a session would add, do not count.
  open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
    let now = now.timeIntervalSince1970
    guard let key = CacheKey.make(for: request) else { return nil }
    switch core.find({ key }, now: now) {
    case .inMemory(let entries): return Self.best(of: entries, for: request)
    case .alsoOnDisk, .later: return Self.best(of: core.findEverywhere(key, now: now), for: request)
    }
  }

  /// Stores a response for a request, in place of what is stored for it, whatever HTTP says about its being stored.
  /// What is larger than a capacity is not stored there. Waits for the disk: another cache in the same folder, or the next
  /// run of the program, finds it.
  open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
    guard let key = CacheKey.make(for: request) else { return }
    let now = now.timeIntervalSince1970
    core.store(cachedResponse.prepared(key: key, now: now), now: now)
    core.finishChanges()
  }

  /// Removes what is stored for a request, all variants of it. Waits for the disk.
  open func removeCachedResponse(for request: URLRequest) {
    guard let key = CacheKey.make(for: request) else { return }
    core.remove(key)
    core.finishChanges()
  }

  // MARK: - All

  /// Removes everything. Waits for the disk.
  open func removeAllCachedResponses() {
    core.removeAll()
    core.finishChanges()
  }

  /// Removes what was stored at `date` or later. Waits for the disk.
  open func removeCachedResponses(since date: Date) {
    core.removeAll(since: date.timeIntervalSince1970)
    core.finishChanges()
  }

  // MARK: - Tasks

  /// Stores a response for a task's request. Waits for the disk.
  open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
    storeResponse(cachedResponse, of: dataTask)
  }

  /// Looks for the response that is stored for a task's request.
  ///
  /// The handler is called once, on a queue of the cache's, with nil if there is none.
  open func getCachedResponse(
    for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    findResponse(of: dataTask, then: completionHandler)
  }

  /// The response that is stored for a task's request, fresh or not; nil if there is none.
  open func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
    // A subclass may answer more than once.
    let question = Question<CachedURLResponse?>()
    getCachedResponse(for: dataTask) { question.answer($0) }
    return await question.wait() ?? nil
  }

  /// Removes what is stored for a task's request, all variants of it.
  open func removeCachedResponse(for dataTask: URLSessionDataTask) { removeResponse(of: dataTask) }

  static func best(of entries: [CachedURLResponse], for request: URLRequest) -> CachedURLResponse? {
    guard !entries.isEmpty else { return nil }
    let asked = CacheRequest(
      method: request.httpMethod ?? "GET", fields: request.own.fields?.all ?? [], isLenient: true)
    let stored = entries.compactMap { entry in entry.origin?.stored.map { (entry, $0) } }
    guard let index = CacheDecision.selected(for: asked, among: stored.map(\.1)) else {
      return entries.first { $0.origin?.stored == nil }
    }
    return stored[index].0
  }
}

extension CacheKey {
  /// What a program stores for a HEAD has no body, and is nothing for a GET.
  static func make(for request: URLRequest) -> String? {
    let method = request.httpMethod ?? "GET"
    let host = request.own.fields?.value(of: "Host")
    let key = request.url.flatMap { make(method: method, uri: $0.absoluteString, host: host) }
    return method == "HEAD" ? key.map { "HEAD \($0)" } : key
  }
}

extension CachedURLResponse {
  /// As it is stored under a key.
  func prepared(key: String, now: Double) -> CachedURLResponse {
    if let origin, origin.key == key { return self }
    var stored: StoredResponse?
    if let response = response as? HTTPURLResponse {
      let fields = response.fields.list
      stored = StoredResponse(
        status: response.statusCode, fields: fields, requestTime: now, responseTime: now,
        part: response.statusCode == 206 ? fields.firstValue(named: "Content-Range").flatMap(ContentRange.init) : nil,
        bodyCount: data.count, isDecoded: response.hasDecodedContent)
    }
    return with(Origin(key: key, stored: stored, storedTime: now))
  }
}
