import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Downloads images, several at a time, and keeps them in a cache.
///
/// ```swift
/// let receipt = AFImageDownloader.defaultInstance().downloadImage(for: request) { request, response, image in
///   print(image.decodedByteCount)
/// } failure: { request, response, error in
///   print(error.localizedDescription)
/// }
/// ```
///
/// Equal requests that are made before the first of them has ended share one task and one result. The decoder of the
/// session manager's ``AFImageResponseSerializer`` decodes the bytes, on a concurrent queue. There are two caches:
/// ``imageCache`` has decoded images, and the session's `URLCache` has the server's responses, in memory and on disk,
/// for as long as HTTP permits.
///
/// Safe to use from any thread. Blocks are called by ``scheduler``: on the main queue by default. A downloader lives at
/// least until its downloads are over.
open class AFImageDownloader: NSObject, @unchecked Sendable {
  /// A block that receives an image. The response is `nil` if the image comes from ``imageCache``.
  public typealias Success = (URLRequest, HTTPURLResponse?, any AFDecodedImage) -> Void
  /// A block that receives an error, and the response if there is one.
  public typealias Failure = (URLRequest, HTTPURLResponse?, any Error) -> Void

  /// Whether a request is over: its success or failure block has been called or is about to be, or it is cancelled.
  final class CompletionFlag: Sendable {
    /// Stored with release order by `deliver` and `cancelTask`, loaded with acquire order by `report`.
    let isReached = Atomic(false)
  }

  /// One request, with its blocks, which belong to the program and need not be `Sendable`.
  struct Receiver: @unchecked Sendable {
    let request: URLRequest
    let end = CompletionFlag()
    /// Whether the blocks are called at once, on any thread: for an async function.
    var isAwaited = false
    var progress: ((Progress) -> Void)?
    var partialImage: ((any AFDecodedImage) -> Void)?
    let success: Success?
    let failure: Failure?
  }

  fileprivate struct Outcome: Sendable {
    let response: HTTPURLResponse?
    let result: Result<any AFDecodedImage, any Error>
  }

  /// The task of a download, with the manager that has created it.
  fileprivate struct Load {
    let task: URLSessionDataTask
    let manager: AFHTTPSessionManager
  }

  /// The state under the lock. The program's cache is called on any thread: see ``AFImageCache``.
  fileprivate struct State: @unchecked Sendable {
    var manager: AFHTTPSessionManager
    var cache: (any AFImageRequestCache)?
    var scheduler: AFViewScheduler?
    var queue: ImageDownloadQueue<URLRequest, Receiver>
    var loads: [Int: Load] = [:]
    /// Downloads whose task exists, but which are not in the queue yet, with the task's outcome if it is over already.
    var pending: [Int: Outcome?] = [:]
    var failures = RememberedFailures()

    mutating func startable() -> [URLSessionDataTask] {
      var tasks: [URLSessionDataTask] = []
      while let number = queue.startNext() { if let load = loads[number] { tasks.append(load.task) } }
      return tasks
    }
  }

  private let state: Mutex<State>
  /// The manager that the downloader has made for itself, and ends with it.
  private let ownedManager: AFHTTPSessionManager?
  private let now: @Sendable () -> UInt64

  // MARK: - Creation

  private static let cache = URLCache(
    memoryCapacity: 20 << 20, diskCapacity: 150 << 20, diskPath: "com.alamofire.imagedownloader")
  private static let instance = AFImageDownloader()

  /// Returns the cache of the default configuration: 20 MiB in memory, 150 MiB on disk. It is one object, unlike in
  /// AFNetworking.
  open class func defaultURLCache() -> URLCache { cache }

  /// Returns a new configuration: cookies, no pipelining, the cache policy of the protocol, 60 seconds without data,
  /// and ``defaultURLCache()``.
  open class func defaultURLSessionConfiguration() -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.default
    configuration.httpShouldSetCookies = true
    configuration.httpShouldUsePipelining = false
    configuration.requestCachePolicy = .useProtocolCachePolicy
    configuration.allowsCellularAccess = true
    configuration.timeoutIntervalForRequest = 60
    configuration.urlCache = defaultURLCache()
    return configuration
  }

  /// Returns the downloader of the program.
  open class func defaultInstance() -> AFImageDownloader { instance }

  /// Creates a downloader with the default configuration, first in first out, four downloads at a time, and an
  /// ``AFAutoPurgingImageCache``.
  public override convenience init() { self.init(sessionConfiguration: Self.defaultURLSessionConfiguration()) }

  /// Creates a downloader with a separate session, and otherwise the values of `init()`.
  public convenience init(sessionConfiguration configuration: URLSessionConfiguration) {
    let manager = AFHTTPSessionManager(sessionConfiguration: configuration)
    manager.responseSerializer = AFImageResponseSerializer()
    self.init(manager, .FIFO, 4, AFAutoPurgingImageCache(), ownsManager: true)
  }

  /// Creates a downloader.
  ///
  /// - Parameters:
  ///   - sessionManager: Creates the tasks. Its response serializer makes the images: an ``AFImageResponseSerializer``,
  ///     or one whose objects are ``AFDecodedImage``.
  ///   - downloadPrioritization: The order in which waiting downloads start.
  ///   - maximumActiveDownloads: Maximum number of tasks that run at a time; at least 1.
  ///   - imageCache: The cache of images, or `nil` for none.
  public convenience init(
    sessionManager: AFHTTPSessionManager, downloadPrioritization: AFImageDownloadPrioritization,
    maximumActiveDownloads: Int, imageCache: (any AFImageRequestCache)?
  ) { self.init(sessionManager, downloadPrioritization, maximumActiveDownloads, imageCache, ownsManager: false) }

  /// - Parameter now: A clock, in nanoseconds.
  init(
    _ manager: AFHTTPSessionManager, _ prioritization: AFImageDownloadPrioritization, _ activeMax: Int,
    _ cache: (any AFImageRequestCache)?, ownsManager: Bool,
    now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
  ) {
    let queue = ImageDownloadQueue<URLRequest, Receiver>(
      activeMax: max(activeMax, 1), isLastInFirstOut: prioritization == .LIFO)
    state = Mutex(State(manager: manager, cache: cache, queue: queue))
    ownedManager = ownsManager ? manager : nil
    self.now = now
  }

  deinit {
    ownedManager?.invalidateSessionCancelingTasks(false, resetSession: false)
  }

  // MARK: - Properties

  /// The cache of decoded images, or `nil` for none.
  open var imageCache: (any AFImageRequestCache)? {
    get { state.withLock { $0.cache } }
    set { state.put(newValue, at: \.cache) }
  }

  /// The manager that creates the tasks. A change applies to downloads that are created later.
  open var sessionManager: AFHTTPSessionManager {
    get { state.withLock { $0.manager } }
    set { state.put(newValue, at: \.manager) }
  }

  /// The order in which waiting downloads start. A change applies to downloads that are created later.
  open var downloadPrioritization: AFImageDownloadPrioritization {
    get { state.withLock { $0.queue.isLastInFirstOut ? .LIFO : .FIFO } }
    set { state.withLock { $0.queue.isLastInFirstOut = newValue == .LIFO } }
  }

  /// AFNetworking's spelling of ``downloadPrioritization``.
  public var downloadPrioritizaton: AFImageDownloadPrioritization {
    get { downloadPrioritization }
    set { downloadPrioritization = newValue }
  }

  /// Maximum number of tasks that run at a time; at least 1. Running tasks continue when it becomes lower.
  open var maximumActiveDownloads: Int {
    get { state.withLock { $0.queue.activeMax } }
    set {
      let tasks = state.withLock { state in
        state.queue.activeMax = max(newValue, 1)
        return state.startable()
      }
      for task in tasks { task.resume() }
    }
  }

  /// Calls the blocks of requests. If `nil`, the default, `AFViewScheduler.shared` does.
  open var scheduler: AFViewScheduler? {
    get { state.withLock { $0.scheduler } }
    set { state.put(newValue, at: \.scheduler) }
  }

  /// The settings of the memory of failures.
  open var failureMemory: AFImageFailureMemory {
    get { state.withLock { $0.failures.settings } }
    set { state.withLock { $0.failures.settings = newValue } }
  }

  /// Drops all recorded failures, so that the next requests are sent.
  open func removeAllFailures() { state.withLock { $0.failures.forgetAll() } }

  /// Number of downloads that wait or run.
  open var downloadCount: Int { state.withLock { $0.queue.count } }

  // MARK: - Requests

  /// Requests an image.
  ///
  /// - Parameters:
  ///   - request: The request. Its cache policy says whether ``imageCache`` may have the answer.
  ///   - success: Receives the image.
  ///   - failure: Receives the error: that of the task or the serializer, `URLError.cancelled` after
  ///     ``cancelTask(for:)``, or an ``AFImageError`` if the bytes cannot be decoded.
  /// - Returns: The receipt, or `nil` if there is no task: the image is in the cache, the failure is recorded, or the
  ///   request has no URL.
  @discardableResult
  open func downloadImage(
    for request: URLRequest, success: Success? = nil, failure: Failure? = nil
  ) -> AFImageDownloadReceipt? {
    downloadImage(for: request, withReceiptID: UUID(), success: success, failure: failure)
  }

  /// Requests an image, with an identifier for the receipt. See ``downloadImage(for:success:failure:)``.
  @discardableResult
  open func downloadImage(
    for request: URLRequest, withReceiptID receiptID: UUID, success: Success? = nil, failure: Failure? = nil
  ) -> AFImageDownloadReceipt? {
    downloadImage(
      for: request, withReceiptID: receiptID, options: AFImageDownloadOptions(), success: success, failure: failure)
  }

  /// Requests an image, with a priority and blocks for progress. See ``downloadImage(for:success:failure:)``.
  @discardableResult
  open func downloadImage(
    for request: URLRequest, withReceiptID receiptID: UUID = UUID(), options: AFImageDownloadOptions,
    success: Success? = nil, failure: Failure? = nil
  ) -> AFImageDownloadReceipt? {
    let receiver = Receiver(
      request: request, progress: options.progress, partialImage: options.partialImage, success: success,
      failure: failure)
    return add(receiver, nextCall(), receiptID, options.priority)
  }

  /// Requests an image, and returns it. Needs no main queue. Cancelling the caller's task cancels the request.
  open func image(
    for request: URLRequest, priority: AFImageDownloadPriority = .normal
  ) async throws -> any AFDecodedImage {
    let call = nextCall()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<any AFDecodedImage, any Error>) in
        let receiver = Receiver(
          request: request, isAwaited: true, success: { _, _, image in waiter.resume(returning: image) },
          failure: { _, _, error in waiter.resume(throwing: error) })
        _ = add(receiver, call, UUID(), priority)
        // The handler below may have run before there was a request.
        if Task.isCancelled { cancel(call) }
      }
    } onCancel: {
      cancel(call)
    }
  }

  /// Cancels a request, whose failure block receives `URLError.cancelled`. The task is cancelled if no other request
  /// waits for it. Does nothing if the request is over.
  ///
  /// Each receipt cancels its own request, even if another receipt has the same identifier. AFNetworking cancels the
  /// first request with the identifier.
  ///
  /// - Parameter imageDownloadReceipt: A receipt of this downloader. One of another downloader has no effect.
  open func cancelTask(for imageDownloadReceipt: AFImageDownloadReceipt) {
    cancel(imageDownloadReceipt.call, of: imageDownloadReceipt.task)
  }

  private func nextCall() -> Int { state.withLock { $0.queue.nextNumber() } }

  private func cancel(_ call: Int, of task: URLSessionDataTask? = nil) {
    let (receiver, cancelled, tasks) = state.withLock {
      state -> (Receiver?, URLSessionDataTask?, [URLSessionDataTask]) in
      if let task, state.queue.number(ofCall: call).flatMap({ state.loads[$0] })?.task !== task {
        return (nil, nil, [])
      }
      guard let (receiver, number) = state.queue.cancel(call) else { return (nil, nil, []) }
      return (receiver, number.flatMap { state.loads.removeValue(forKey: $0)?.task }, state.startable())
    }
    cancelled?.cancel()
    for task in tasks { task.resume() }
    guard let receiver else { return }
    receiver.end.isReached.store(true, ordering: .releasing)
    let url = receiver.request.url?.absoluteString ?? ""
    let error = URLError(
      .cancelled, userInfo: [NSLocalizedFailureReasonErrorKey: "ImageDownloader cancelled URL request: \(url)"])
    deliver(Outcome(response: nil, result: .failure(error)), to: [receiver])
  }

  // MARK: - Downloads

  /// Whether a request's cache policy permits an answer from the image cache or the memory of failures.
  static func permitsCache(_ request: URLRequest) -> Bool {
    switch request.cachePolicy {
    case .useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad: true
    default: false
    }
  }

  private func add(
    _ receiver: Receiver, _ call: Int, _ receiptID: UUID, _ priority: AFImageDownloadPriority
  ) -> AFImageDownloadReceipt? {
    let request = receiver.request
    guard request.url != nil else {
      deliver(
        Outcome(response: nil, result: .failure(URLError.make(.badURL, "the request has no URL"))), to: [receiver])
      return nil
    }
    let now = now()
    var created: (number: Int, load: Load)?
    while true {
      // A download that ends puts its image into the cache before it leaves the queue. If none has ended since before
      // the cache was read, the cache's answer still holds when the queue is read.
      let ended = state.withLock { $0.queue.endedCount }
      let cached = Self.permitsCache(request) ? imageCache?.imagefor(request, withAdditionalIdentifier: nil) : nil
      let step =
        cached.map { Step.answered(Outcome(response: nil, result: .success($0))) }
        ?? state.withLock { $0.step(receiver, call, priority, created, ended: ended, now: now) }
      switch step {
      case .again: continue
      case .needsTask:
        // The task is created outside the lock, because a manager's subclass is the program's code.
        let (number, manager) = state.withLock { state -> (Int, AFHTTPSessionManager) in
          let number = state.queue.nextNumber()
          state.pending[number] = .some(nil)
          return (number, state.manager)
        }
        created = (number, Load(task: task(number, receiver, manager), manager: manager))
      case .answered(let outcome):
        discard(created)
        deliver(outcome, to: [receiver])
        return nil
      case .joined(let load, let number):
        discard(created)
        watch(load.task, for: receiver, load.manager, number)
        return AFImageDownloadReceipt(receiptID: receiptID, task: load.task, call: call)
      case .added(let task, let number, let early, let tasks):
        for task in tasks { task.resume() }
        if let early { finish(number, request, early) }
        return AFImageDownloadReceipt(receiptID: receiptID, task: task, call: call)
      }
    }
  }

  /// Ends a task that another request has made superfluous.
  private func discard(_ created: (number: Int, load: Load)?) {
    guard let created else { return }
    let outcome = state.withLock { $0.pending.removeValue(forKey: created.number) }
    created.load.task.cancel()
    withExtendedLifetime(outcome) {}
  }

  private func task(_ number: Int, _ receiver: Receiver, _ manager: AFHTTPSessionManager) -> URLSessionDataTask {
    let task = manager.dataTask(with: receiver.request) { [self, request = receiver.request] response, object, error in
      finish(number, request, Outcome(response: response as? HTTPURLResponse, result: Self.result(object, error)))
    }
    let partial = partialImage(number, receiver, manager)
    manager.record(of: task)?.change { content in
      // Called at once: neither the manager's completion queue nor the main queue is needed.
      if case .handler(let completion) = content.receiver { content.receiver = .waiting(completion) }
      guard let partial else { return }
      content.pieceBlock = { [weak task] piece in
        guard let status = (task?.response as? HTTPURLResponse)?.statusCode, 200..<300 ~= status else { return }
        partial.append(piece)
      }
    }
    if partial != nil { manager.hasWatchedTasks.store(true, ordering: .releasing) }
    watch(task, for: receiver, manager, number)
    return task
  }

  private static func result(_ object: Any?, _ error: (any Error)?) -> Result<any AFDecodedImage, any Error> {
    if let error { return .failure(error) }
    guard let object else { return .failure(AFImageError.notDecoded) }
    guard let image = object as? any AFDecodedImage else {
      return .failure(AFImageError.unsuitableType("\(type(of: object))"))
    }
    return .success(image)
  }

  private func partialImage(
    _ number: Int, _ receiver: Receiver, _ manager: AFHTTPSessionManager
  ) -> PartialImage? {
    guard receiver.partialImage != nil, let serializer = manager.responseSerializer as? AFImageResponseSerializer,
      let decoding = serializer.imageDecoder as? any AFIncrementalImageDecoding
    else { return nil }
    return PartialImage(decoding, scale: serializer.imageScale, pixelCountMax: serializer.imagePixelCountMax) {
      [weak self] image in
      self?.report(number) { $0.partialImage?(image) }
    }
  }

  /// Observes the progress of a download for a request with a block for it.
  ///
  /// - Parameter manager: The manager that has created the task: other managers have no record of the task.
  private func watch(
    _ task: URLSessionDataTask, for receiver: Receiver, _ manager: AFHTTPSessionManager, _ number: Int
  ) {
    guard receiver.progress != nil else { return }
    manager.watched(task)?.change { content in
      guard content.downloadBlock == nil else { return }
      content.downloadBlock = { [weak self] progress in
        let progress = UncheckedSendable(progress)
        self?.report(number) { $0.progress?(progress.value) }
      }
    }
  }

  /// Calls a block for each request that waits for a download now, unless the request is over when the block runs on
  /// the thread of the views.
  private func report(_ number: Int, _ body: @escaping @Sendable (Receiver) -> Void) {
    // Taken now: an end that is scheduled after this call must not suppress it.
    let receivers = state.withLock { $0.queue.receivers(of: number) }
    if receivers.isEmpty { return }
    (scheduler ?? .shared).perform {
      for receiver in receivers where !receiver.end.isReached.load(ordering: .acquiring) { body(receiver) }
    }
  }

  private func finish(_ number: Int, _ request: URLRequest, _ outcome: Outcome) {
    // Before the download leaves the queue: see `add`.
    if case .success(let image) = outcome.result, let cache = imageCache,
      cache.shouldCache(image, for: request, withAdditionalIdentifier: nil)
    {
      cache.add(image, for: request, withAdditionalIdentifier: nil)
    }
    let now = now()
    let (receivers, tasks) = state.withLock { state -> ([Receiver], [URLSessionDataTask]) in
      guard let download = state.queue.finish(number) else {
        if state.pending[number] != nil { state.pending[number] = outcome }
        return ([], [])
      }
      state.loads[number] = nil
      let url = request.url?.absoluteString ?? ""
      switch outcome.result {
      case .success: state.failures.forget(url)
      case .failure(let error):
        state.failures.remember(error, statusCode: outcome.response?.statusCode, for: url, now: now)
      }
      return (download.receivers.values, state.startable())
    }
    for task in tasks { task.resume() }
    deliver(outcome, to: receivers)
  }

  private func deliver(_ outcome: Outcome, to receivers: [Receiver]) {
    @Sendable func call(_ receiver: Receiver) {
      receiver.end.isReached.store(true, ordering: .releasing)
      switch outcome.result {
      case .success(let image): receiver.success?(receiver.request, outcome.response, image)
      case .failure(let error): receiver.failure?(receiver.request, outcome.response, error)
      }
    }
    for receiver in receivers where receiver.isAwaited { call(receiver) }
    let others = receivers.filter { !$0.isAwaited }
    if !others.isEmpty { (scheduler ?? .shared).perform { for receiver in others { call(receiver) } } }
  }
}

extension AFImageDownloader {
  /// What a request does next.
  fileprivate enum Step {
    /// A download has ended meanwhile: read the cache again.
    case again
    case needsTask
    case answered(Outcome)
    case joined(Load, Int)
    /// With the outcome of a task that is over already, and the tasks to start.
    case added(URLSessionDataTask, Int, Outcome?, [URLSessionDataTask])
  }
}

extension AFImageDownloader.State {
  fileprivate mutating func step(
    _ receiver: AFImageDownloader.Receiver, _ call: Int, _ priority: AFImageDownloadPriority,
    _ created: (number: Int, load: AFImageDownloader.Load)?, ended: Int, now: UInt64
  ) -> AFImageDownloader.Step {
    let request = receiver.request
    if let number = queue.number(of: request), let load = loads[number],
      queue.join(request, call: call, receiver, priority: priority)
    {
      return .joined(load, number)
    }
    if AFImageDownloader.permitsCache(request) {
      if let error = failures.error(for: request.url?.absoluteString ?? "", now: now) {
        return .answered(AFImageDownloader.Outcome(response: nil, result: .failure(error)))
      }
      if queue.endedCount != ended { return .again }
    }
    guard let (number, load) = created else { return .needsTask }
    let early = pending.removeValue(forKey: number) ?? nil
    queue.add(number, request, call: call, receiver, priority: priority)
    loads[number] = load
    return .added(load.task, number, early, startable())
  }
}
