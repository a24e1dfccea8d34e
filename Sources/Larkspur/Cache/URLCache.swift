import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// A store of responses in memory and on disk.
///
/// A session uses it as a private HTTP cache (RFC 9111). A program may look up and store responses as well. Memory and
/// disk have a budget each, in bytes; the least recently used responses are removed first. On disk each response is a
/// separate file, with a second small file after a revalidation, in a directory that only this user may read. A
/// process that is killed at any moment leaves complete entries behind, and several processes may share a directory.
///
/// The cache may be used from any thread. Responses in memory are returned at once; members that have to read or write
/// the disk block, and their documentation says so. Sessions never block on the disk: they continue when the disk has
/// answered.
open class URLCache: NSObject, @unchecked Sendable {
  /// Where a response may be stored.
  public enum StoragePolicy: UInt, Sendable {
    /// The response may be stored in memory and on disk.
    case allowed
    /// The response may be stored in memory.
    case allowedInMemoryOnly
    /// The response is not stored.
    case notAllowed
  }

  /// The capacities of the shared cache, in bytes.
  static let sharedMemoryCapacity = 4 << 20
  static let sharedDiskCapacity = 20 << 20

  let core: CacheCore

  private static let current = Mutex<URLCache?>(nil)

  /// The cache of sessions that are given no other one. Until a program sets another cache, it has 4 MiB in memory and
  /// 20 MiB on disk, in the program's directory below `$XDG_CACHE_HOME` or `~/.cache`.
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
      // Release the old cache after the lock: it may be of a program's subclass.
      _ = current.withLock { cache in
        defer { cache = newValue }
        return cache
      }
    }
  }

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - memoryCapacity: In bytes.
  ///   - diskCapacity: In bytes. With 0 nothing is written to disk.
  ///   - path: The directory in which the cache makes its own directory, `URLCache`. A relative path is below the
  ///     program's directory in `$XDG_CACHE_HOME` or `~/.cache`; `nil` is the program's directory itself.
  public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
    core = Self.makeCore(memoryCapacity, diskCapacity, path)
  }

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - memoryCapacity: In bytes.
  ///   - diskCapacity: In bytes. With 0 nothing is written to disk.
  ///   - directoryURL: The directory in which the cache makes its own directory, `URLCache`; `nil` is the program's
  ///     directory below `$XDG_CACHE_HOME` or `~/.cache`.
  public init(memoryCapacity: Int, diskCapacity: Int, directory directoryURL: URL? = nil) {
    core = Self.makeCore(memoryCapacity, diskCapacity, directoryURL?.path)
  }

  /// Creates a cache with the capacities and the directory of the shared one.
  public override init() { core = Self.makeCore(Self.sharedMemoryCapacity, Self.sharedDiskCapacity, nil) }

  private static func makeCore(_ memoryCapacity: Int, _ diskCapacity: Int, _ path: String?) -> CacheCore {
    let location = CacheLocation.path(path)
    let disk = CacheDisk(isInUse: diskCapacity > 0) { (isCreating) throws(Errno) in
      guard let location else { throw .noSuchFile }
      return try DirectoryFiles(path: location, isCreating: isCreating)
    }
    return CacheCore(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, disk: disk)
  }

  init(core: CacheCore) { self.core = core }

  deinit { core.writeSoon() }

  /// The current time for the cache and for the tasks that use it.
  var now: Date { core.now() }

  // MARK: - Capacities

  /// The capacity in memory, in bytes. Setting a smaller one removes the responses that no longer fit.
  open var memoryCapacity: Int {
    get { core.memoryCapacity }
    set { core.memoryCapacity = newValue }
  }

  /// The capacity on disk, in bytes. Setting a smaller one removes the responses that no longer fit.
  open var diskCapacity: Int {
    get { core.diskCapacity }
    set { core.diskCapacity = newValue }
  }

  /// The bytes in use in memory: bodies, fields, and a fixed number for each response.
  open var currentMemoryUsage: Int { core.memoryUsage }

  /// The bytes in use on disk: the sizes of the files of all processes that share the directory. Blocks on the disk.
  open var currentDiskUsage: Int { core.diskUsage }

  // MARK: - Responses

  /// Returns the response that is stored for a request, fresh or not. Blocks on the disk if the response is not in
  /// memory.
  ///
  /// If a server sent several responses for different request fields (`Vary`), the latest one whose fields match those
  /// of `request` is returned. Fields that `request` does not have do not count, because a session would add them.
  open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
    let now = now.timeIntervalSince1970
    guard let key = CacheKey.make(for: request) else { return nil }
    switch core.find({ key }, now: now) {
    case .inMemory(let entries): return Self.best(of: entries, for: request)
    case .alsoOnDisk, .later: return Self.best(of: core.findEverywhere(key, now: now), for: request)
    }
  }

  /// Stores a response for a request, replacing the one that is stored for it, even if HTTP does not allow storing it.
  /// A response that is larger than a capacity is not stored there. Blocks until the response is on the disk, so that
  /// another cache in the same directory, or the next run of the program, finds it.
  ///
  /// The values of the fields that `Vary` names are those of `request`, as they are for a response that a session
  /// stores. The fields that a session adds to each request (`Accept`, `Accept-Encoding`, `Accept-Language` and
  /// `User-Agent`) do not count if `request` lacks them. A response whose `Vary` contains `*`, or names more than 100
  /// fields, answers no request and is not stored (RFC 9111 4.1). Nor is a part of a representation (status 206) whose
  /// `Content-Range` is missing, cannot be read or has another length than the data (RFC 9111 3.3).
  open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
    guard let key = CacheKey.make(for: request) else { return }
    let now = now.timeIntervalSince1970
    guard let entry = cachedResponse.prepared(key: key, for: request.own.fields ?? [], now: now) else { return }
    core.store(entry, now: now)
    core.finishChanges()
  }

  /// Removes the responses that are stored for a request, in all variants. Blocks on the disk.
  open func removeCachedResponse(for request: URLRequest) {
    guard let key = CacheKey.make(for: request) else { return }
    core.remove(key)
    core.finishChanges()
  }

  // MARK: - All

  /// Removes all responses. Blocks on the disk.
  open func removeAllCachedResponses() {
    core.removeAll()
    core.finishChanges()
  }

  /// Removes the responses that were stored at `date` or later. Blocks on the disk.
  open func removeCachedResponses(since date: Date) {
    core.removeAll(since: date.timeIntervalSince1970)
    core.finishChanges()
  }

  // MARK: - Tasks

  /// Stores a response for a task's request. Blocks on the disk.
  open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
    storeResponse(cachedResponse, of: dataTask)
  }

  /// Finds the response that is stored for a task's request.
  ///
  /// The handler is called once, on a queue of the cache, with `nil` if there is no response.
  open func getCachedResponse(
    for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    findResponse(of: dataTask, then: completionHandler)
  }

  /// Returns the response that is stored for a task's request, fresh or not, or `nil` if there is none.
  open func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
    // A subclass may call the handler more than once.
    let question = OneShot<CachedURLResponse?>()
    getCachedResponse(for: dataTask) { question.set($0) }
    return await question.get() ?? nil
  }

  /// Removes the responses that are stored for a task's request, in all variants. Blocks on the disk.
  open func removeCachedResponse(for dataTask: URLSessionDataTask) { removeResponse(of: dataTask) }

  static func best(of entries: [CachedURLResponse], for request: URLRequest) -> CachedURLResponse? {
    guard !entries.isEmpty else { return nil }
    let asked = CacheRequest(
      method: request.httpMethod ?? "GET", fields: request.own.fields ?? [], isLenient: true)
    let stored = entries.compactMap { entry in entry.origin?.stored.map { (entry, $0) } }
    guard let index = CacheDecision.selected(for: asked, among: stored.map(\.1)) else {
      return entries.first { $0.origin?.stored == nil }
    }
    return stored[index].0
  }
}

extension CacheKey {
  /// A response that a program stores for a HEAD has no body, so its key differs from that of a GET.
  static func make(for request: URLRequest) -> String? {
    let method = request.httpMethod ?? "GET"
    let host = request.own.fields?.firstValue(named: "Host")
    let key = request.url.flatMap { make(method: method, uri: $0.absoluteString, host: host) }
    return method == "HEAD" ? key.map { "HEAD \($0)" } : key
  }
}

extension CachedURLResponse {
  /// Returns the response with the data that a cache stores it with under `key`, or `nil` if it answers no request.
  ///
  /// - Parameter request: The fields of the request, as far as the program knows them.
  func prepared(key: String, for request: FieldList, now: Double) -> CachedURLResponse? {
    if let origin, origin.key == key { return self }
    guard let response = response as? HTTPURLResponse else {
      return with(Origin(key: key, stored: nil, storedTime: now))
    }
    let fields = response.fields.list
    guard var selection = CacheSelection(response: fields, request: request) else { return nil }
    selection.removeMissing(RequestComposer.isStandard)
    let stored = StoredResponse(
      statedBy: response.statusCode, fields: fields, requestTime: now, responseTime: now, selection: selection,
      bodyCount: data.count, isDecoded: response.hasDecodedContent)
    guard let stored else { return nil }
    return with(Origin(key: key, stored: stored, storedTime: now))
  }
}
