import Dispatch
import Foundation
import Larkspur
import Synchronization

/// An operation that loads one request, with dependencies, a priority, and pauses.
///
/// This is AFNetworking 2's class of this name on a `URLSession`: operations with the default settings share one
/// session. Safe to use from any thread. Blocks that decide about the load are called on the session's queue; all
/// others are called on ``completionQueue``, or else on the main queue: a program whose main thread does not serve the
/// main queue (`dispatchMain()`, `RunLoop.main.run()`) has to set a queue.
///
/// An operation in a queue is started by its queue. An operation outside a queue begins with ``start()``.
open class AFURLConnectionOperation: Operation, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// Parameters: bytes of the last piece, bytes in total, and bytes expected, which is negative if unknown.
  typealias ProgressBlock = (UInt, Int64, Int64) -> Void
  typealias ChallengeBlock = (NSURLConnection, URLAuthenticationChallenge) -> Void
  typealias RedirectBlock = (NSURLConnection, URLRequest, URLResponse) -> URLRequest?
  typealias CacheBlock = (NSURLConnection, CachedURLResponse) -> CachedURLResponse?

  /// The blocks belong to the program, and need not be `Sendable`: see the type's documentation for their threads.
  struct Details: @unchecked Sendable {
    var machine = OperationMachine()
    /// The request that the operation was created with.
    var request: URLRequest
    /// The latest request sent: after a pause, one for the missing range.
    var sentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var responseData: Data?
    var responseString: String?
    /// The current load.
    var load: OperationLoad?
    /// Created for the first load, and kept over pauses.
    var output: OperationOutput?
    var outputStream: OutputStream?
    var bytesRead: Int64 = 0

    var runLoopModes: Set<AnyHashable> = [RunLoop.Mode.common]
    var userInfo: [AnyHashable: Any] = [:]
    var usesCredentialStorage = true
    var credential: URLCredential?
    var securityPolicy = AFSecurityPolicy.default()
    var completionQueue: DispatchQueue?
    var completionGroup: DispatchGroup?
    var completion: (@Sendable () -> Void)?
    var progressQueue: DispatchQueue?
    var uploadProgress: ProgressBlock?
    var downloadProgress: ProgressBlock?
    var challengeBlock: ChallengeBlock?
    var redirectBlock: RedirectBlock?
    var cacheBlock: CacheBlock?
    var exitHold: ExitHold?
    /// The dependencies of a finished operation.
    var formerDependencies: [Operation] = []

    // State of AFHTTPRequestOperation.
    var responseSerializer: AFHTTPResponseSerializer?
    var responseObject: Any?
    var serializationError: (any Error)?
    var isSerialized = false
    var successQueue: DispatchQueue?
    var failureQueue: DispatchQueue?
    var usesOldDomain = false
  }

  let details: Mutex<Details>

  func read<T>(_ body: (inout Details) -> T) -> T { details.withLockUnchecked(body) }

  /// Creates an operation for `urlRequest`. Loading begins when the operation is started.
  public required init(request urlRequest: URLRequest) {
    details = Mutex(Details(request: urlRequest))
    super.init()
  }

  deinit {
    leave(super.dependencies)
    read { $0.outputStream }?.close()
  }

  // MARK: - Properties

  /// Stored, but without effect: the operation uses no run loop.
  open var runLoopModes: Set<AnyHashable> {
    get { read { $0.runLoopModes } }
    set { read { $0.runLoopModes = newValue } }
  }

  /// The request that the operation was created with, or, after a pause, the request that was sent to continue: with
  /// the fields `Range` and `If-Range`.
  open var request: URLRequest { read { $0.sentRequest ?? $0.request } }

  /// The latest response, or `nil` before there is one.
  open var response: URLResponse! { read { $0.response } }

  /// The error, or `nil` while the operation runs and after a success. The error of a cancelled operation is
  /// `URLError.cancelled`.
  open var error: (any Error)! { read { $0.error } }

  /// The content, or `nil` before the load has succeeded, or if ``outputStream`` is not a stream to memory.
  open var responseData: Data! { read { $0.responseData } }

  /// The content as text in ``responseStringEncoding``, or `nil` if there is none, or the bytes are not valid in that
  /// encoding.
  open var responseString: String! {
    let encoding = responseStringEncoding
    return read { details in
      if details.responseString == nil, details.response != nil, let data = details.responseData {
        details.responseString = TextCoding.text(of: data, in: String.Encoding(rawValue: encoding))
      }
      return details.responseString
    }
  }

  /// The text encoding of the content, as the raw value of a `String.Encoding`: the one that the response names, or
  /// UTF-8 if it names no known encoding.
  ///
  /// Known are the names in the IANA registry, and common alternatives, of ASCII and all of Unicode's encodings,
  /// ISO-8859-1 to -16, windows-1250 to -1258 and -874, the IBM code pages 437 to 950, KOI8-R and -U, TIS-620, GB2312,
  /// GBK and GB18030, HZ, Big5 and Big5-HKSCS, EUC-TW, EUC-KR, ISO-2022-KR, Shift_JIS, EUC-JP, ISO-2022-JP, -JP-1 and
  /// -JP-2, ISO-2022-CN, and of Macintosh's Western, Greek, Cyrillic, Central European and Turkish. As in browsers
  /// (WHATWG Encoding 4.2), GB2312 is read as GBK, and EUC-KR as windows-949. Foundation on Linux cannot decode Johab,
  /// VISCII, ISO-2022-JP-3, Shift_JISX0213 and Macintosh's other sets: these count as unknown.
  open var responseStringEncoding: UInt {
    let name = read { $0.response }?.textEncodingName
    return (name.flatMap { TextEncodingName.encoding(of: $0) } ?? .utf8).rawValue
  }

  /// Whether credentials come from the storage if ``credential`` does not answer a challenge. `true` by default.
  open var shouldUseCredentialStorage: Bool {
    get { read { $0.usesCredentialStorage } }
    set { read { $0.usesCredentialStorage = newValue } }
  }

  /// The credential for a challenge's first attempt, if the challenge comes from the request's own origin. A user name
  /// in the request's URL takes precedence.
  open var credential: URLCredential! {
    get { read { $0.credential } }
    set { details.put(newValue, at: \.credential) }
  }

  /// The policy that decides whether a server is trusted. Set it before the operation starts.
  open var securityPolicy: AFSecurityPolicy {
    get { read { $0.securityPolicy } }
    set { details.put(newValue, at: \.securityPolicy) }
  }

  /// The stream that the request's body is read from. A stream that cannot be copied can be sent only once: a
  /// redirection or a challenge that needs the body again then fails.
  open var inputStream: InputStream! {
    get { request.httpBodyStream }
    set { details.put(newValue, at: \.request.httpBodyStream) }
  }

  /// The stream that receives the content, piece by piece. The operation opens it when the response arrives, and
  /// closes it when it finishes. Unless this is a stream to memory, ``responseData`` stays `nil`. Writes may block,
  /// which delays other operations. Setting the stream while the operation runs has no effect.
  ///
  /// If it has not been set, the first read creates a stream to memory. Once the content is in ``responseData``, this
  /// property is `nil`.
  open var outputStream: OutputStream! {
    get {
      read { details in
        if details.outputStream == nil, details.output == nil, details.machine.state != .finished {
          details.outputStream = .toMemory()
        }
        return details.outputStream
      }
    }
    set {
      let old = read { details -> OutputStream? in
        // The current stream is in use.
        guard details.output == nil else { return newValue }
        defer { details.outputStream = newValue }
        return details.outputStream
      }
      if let old, old !== newValue { old.close() }
    }
  }

  /// The queue for ``completionBlock``, progress and results, or `nil`, the default, for the main queue.
  open var completionQueue: DispatchQueue? {
    get { read { $0.completionQueue } }
    set { details.put(newValue, at: \.completionQueue) }
  }

  /// The dispatch group for the completion block and the results, or `nil`, the default, for a group that all
  /// operations without one share.
  open var completionGroup: DispatchGroup? {
    get { read { $0.completionGroup } }
    set { details.put(newValue, at: \.completionGroup) }
  }

  /// Values of the program. The operation does not use them.
  open var userInfo: [AnyHashable: Any] {
    get { read { $0.userInfo } }
    set { details.put(newValue, at: \.userInfo) }
  }

  // MARK: - Blocks

  /// Called once on ``completionQueue`` when the operation has finished, and then released.
  open override var completionBlock: (@Sendable () -> Void)? {
    get { read { $0.completion } }
    set { details.put(newValue, at: \.completion) }
  }

  /// Sets the block that is called while the body is sent: bytes since the last call, bytes in total, and bytes
  /// expected, which is negative if unknown. One call after another, on ``completionQueue``.
  open func setUploadProgressBlock(_ block: ((UInt, Int64, Int64) -> Void)?) {
    details.put(block, at: \.uploadProgress)
  }

  /// Sets the block that is called while the content arrives: bytes since the last call, bytes in total, and bytes
  /// expected, which is negative if the server does not state it. One call after another, on ``completionQueue``.
  open func setDownloadProgressBlock(_ block: ((UInt, Int64, Int64) -> Void)?) {
    details.put(block, at: \.downloadProgress)
  }

  /// Sets the block that is called for every challenge, in place of ``securityPolicy`` and ``credential``. The block
  /// answers through the challenge's sender, at once or later, on any thread. If the block releases a challenge without
  /// an answer, the challenge is cancelled.
  ///
  /// The operation then has private connections, so that no other operation uses a connection that this block has
  /// trusted.
  open func setWillSendRequestForAuthenticationChallengeBlock(
    _ block: ((NSURLConnection, URLAuthenticationChallenge) -> Void)?
  ) { details.put(block, at: \.challengeBlock) }

  /// Sets the block that is called for every redirection. It returns the next request, or `nil` to make the redirecting
  /// response the result. Not called for the first request, unlike NSURLConnection's delegate method.
  open func setRedirectResponseBlock(_ block: ((NSURLConnection, URLRequest, URLResponse) -> URLRequest?)?) {
    details.put(block, at: \.redirectBlock)
  }

  /// Sets the block that is called before a response is stored in the cache. It returns the response to store, or `nil`
  /// for none.
  open func setCacheResponseBlock(_ block: ((NSURLConnection, CachedURLResponse) -> CachedURLResponse?)?) {
    details.put(block, at: \.cacheBlock)
  }

  // MARK: - States

  /// Whether the operation can be started: it has not begun, is not paused, and waits for no other operation.
  open override var isReady: Bool { read { $0.machine.state } == .ready && super.isReady }
  /// Whether the operation is loading. A paused operation is not.
  open override var isExecuting: Bool { read { $0.machine.state } == .executing }
  /// Whether the operation has ended: with a response, an error, or by cancellation.
  open override var isFinished: Bool { read { $0.machine.state } == .finished }
  /// Whether the operation has been cancelled. It may still have to finish.
  open override var isCancelled: Bool { read { $0.machine.isCancelled } }
  /// Always `true`: the operation returns from `start()` at once, and loads on other threads.
  open override var isAsynchronous: Bool { true }

  /// The operations that this one depends on, or depended on before it finished.
  open override var dependencies: [Operation] { read { $0.formerDependencies } + super.dependencies }

  /// Starts loading, unless the operation has begun or waits for other operations. A paused operation begins when it is
  /// resumed. This call returns at once.
  ///
  /// A queue calls this method for its operations. Calling it for an operation that waits in a queue confuses
  /// Foundation's queue.
  open override func start() {
    let isReady = super.isReady
    handle { $0.started(isReady: isReady) }
  }

  /// Cancels the operation, which then finishes with `URLError.cancelled`: when its task has ended, or, if it has not
  /// begun, when it is started. An operation that is paused, and whose task has ended, finishes at once.
  open override func cancel() {
    let decision = decide { $0.cancelled() }
    guard decision.action != .nothing else { return }
    super.cancel()
    perform(decision)
  }

  /// Pauses the operation. A paused operation is neither ready nor executing nor finished, and stays in its queue
  /// until it is resumed or cancelled. No effect if the operation is paused, cancelled or finished already, or about to
  /// finish.
  open func pause() { handle { $0.paused() } }

  /// Whether the operation is paused.
  open func isPaused() -> Bool { read { $0.machine.state } == .paused }

  /// Resumes the operation. It loads the request again from the beginning; an ``AFHTTPRequestOperation`` loads only the
  /// missing part if possible. An operation that had not begun when it was paused becomes ready again, and begins when
  /// its queue or the program starts it.
  open func resume() { handle { $0.resumed() } }

  // MARK: - Overridden by subclasses in this module

  /// Returns the value that continues the load of a response after a pause, or `nil` to load everything again.
  func continuation(after response: URLResponse) -> RangeContinuation? { nil }

  // MARK: - Archives and copies

  open class var supportsSecureCoding: Bool { true }

  private enum Key {
    static let request = "request"
    static let state = "state"
    static let response = "response"
    static let errorDomain = "errorDomain"
    static let errorCode = "errorCode"
    static let errorKeys = "errorKeys"
    static let errorTexts = "errorTexts"
    static let responseData = "responseData"
    static let totalBytesRead = "totalBytesRead"
  }

  /// Creates an operation from an archive.
  ///
  /// - Returns: The operation, or `nil` if the archive has no request.
  public required init?(coder decoder: NSCoder) {
    guard let request = decoder.object(NSURLRequest.self, forKey: Key.request) else { return nil }
    var details = Details(request: request as URLRequest)
    let state = OperationMachine.State(rawValue: Int(clamping: decoder.decodeInt64(forKey: Key.state)))
    details.machine = OperationMachine(state: state == .finished ? .finished : .ready)
    details.response = decoder.object(HTTPURLResponse.self, forKey: Key.response)
    details.error = Self.error(in: decoder)
    details.responseData = decoder.object(NSData.self, forKey: Key.responseData).map { Data(referencing: $0) }
    details.bytesRead = max(0, decoder.decodeInt64(forKey: Key.totalBytesRead))
    self.details = Mutex(details)
    super.init()
  }

  /// Pauses the operation, and writes its state without blocks and streams. An operation that has not finished is ready
  /// to start from the beginning after decoding. Of an error's `userInfo`, texts and URLs are kept.
  open func encode(with coder: NSCoder) {
    pause()
    let details = read { $0 }
    coder.encode(details.request as NSURLRequest, forKey: Key.request)
    let isFinished = details.machine.state == .finished
    let state = isFinished ? OperationMachine.State.finished : .ready
    coder.encode(Int64(state.rawValue), forKey: Key.state)
    if let response = details.response as? HTTPURLResponse { coder.encode(response, forKey: Key.response) }
    if let error = details.error { Self.encode(error as NSError, with: coder) }
    if let data = details.responseData { coder.encode(data as NSData, forKey: Key.responseData) }
    coder.encode(isFinished ? details.bytesRead : 0, forKey: Key.totalBytesRead)
  }

  /// Writes the parts of the error: Foundation's own archiving of errors ends the process.
  private static func encode(_ error: NSError, with coder: NSCoder) {
    var texts: [String: String] = [:]
    for (key, value) in error.userInfo {
      texts[key] = value as? String ?? (value as? URL)?.absoluteString
    }
    coder.encode(error.domain as NSString, forKey: Key.errorDomain)
    coder.encode(Int64(error.code), forKey: Key.errorCode)
    coder.encode(texts: Array(texts.keys), forKey: Key.errorKeys)
    coder.encode(texts: Array(texts.values), forKey: Key.errorTexts)
  }

  private static func error(in decoder: NSCoder) -> NSError? {
    guard let domain = decoder.text(forKey: Key.errorDomain) else { return nil }
    let (keys, texts) = (decoder.texts(forKey: Key.errorKeys) ?? [], decoder.texts(forKey: Key.errorTexts) ?? [])
    let code = Int(clamping: decoder.decodeInt64(forKey: Key.errorCode))
    return NSError(domain: domain, code: code, userInfo: Dictionary(zip(keys, texts)) { $1 })
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a new operation for a further attempt at the request, with the same blocks and queues, but without
  /// ``completionBlock`` and streams.
  open func copy(with zone: NSZone? = nil) -> Any {
    let own = read { $0 }
    let other = type(of: self).init(request: own.request)
    other.read { details in
      details.uploadProgress = own.uploadProgress
      details.downloadProgress = own.downloadProgress
      details.challengeBlock = own.challengeBlock
      details.redirectBlock = own.redirectBlock
      details.cacheBlock = own.cacheBlock
      details.completionQueue = own.completionQueue
      details.completionGroup = own.completionGroup
      details.securityPolicy = own.securityPolicy
      details.credential = own.credential
      details.usesCredentialStorage = own.usesCredentialStorage
    }
    return other
  }

  open override var description: String {
    let (request, state, isCancelled, response) = read {
      ($0.request, $0.machine.state, $0.machine.isCancelled, $0.response)
    }
    let parts = [
      "state: \(state)", "cancelled: \(isCancelled)",
      "request: \(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")",
      "response: \(response?.description ?? "none")",
    ]
    return "<\(type(of: self)), \(parts.joined(separator: ", "))>"
  }
}
