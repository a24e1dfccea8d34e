import Dispatch
import Foundation
import Larkspur

/// Loads one request, as an operation: with dependencies, a priority, and a pause.
///
/// It is AFNetworking 2's class of this name on a `URLSession`: operations that need no settings of their own share
/// one session. For any thread. All blocks but those that decide about the load are called on ``completionQueue``, or
/// else on the main queue: a program whose main thread runs no loop (`dispatchMain()`, `RunLoop.main.run()`) has to set
/// a queue.
///
/// An operation that is in a queue is started by its queue. One that is in no queue begins with ``start()``.
open class AFURLConnectionOperation: Operation, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// Bytes of the last piece, bytes in all, bytes expected: below 0 if nobody knows.
  typealias ProgressBlock = (UInt, Int64, Int64) -> Void
  typealias ChallengeBlock = (NSURLConnection, URLAuthenticationChallenge) -> Void
  typealias RedirectBlock = (NSURLConnection, URLRequest, URLResponse) -> URLRequest?
  typealias CacheBlock = (NSURLConnection, CachedURLResponse) -> CachedURLResponse?

  struct Details {
    var machine = OperationMachine()
    /// What the operation was made with.
    var request: URLRequest
    /// What was sent last: after a pause with the range that is missing.
    var sentRequest: URLRequest?
    var response: URLResponse?
    var error: (any Error)?
    var responseData: Data?
    var responseString: String?
    /// Kept while it is under way.
    var load: OperationLoad?
    /// Made for the first load, and kept over pauses.
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
    var exitClaim: ExitGrace.Claim?
    /// Of one that has finished.
    var formerDependencies: [Operation] = []

    // What AFHTTPRequestOperation adds.
    var responseSerializer: AFHTTPResponseSerializer?
    var responseObject: Any?
    var serializationError: (any Error)?
    var isSerialized = false
    var successQueue: DispatchQueue?
    var failureQueue: DispatchQueue?
    var usesOldDomain = false
  }

  let details: Guarded<Details>

  func read<T>(_ body: (inout Details) -> T) -> T { details.read(body) }

  /// An operation for `urlRequest`, which begins when it is started.
  public required init(request urlRequest: URLRequest) {
    details = Guarded(Details(request: urlRequest))
    super.init()
  }

  deinit {
    leave(super.dependencies)
    read { $0.outputStream }?.close()
  }

  // MARK: - What it is

  /// Kept as it is set, without effect: no run loop takes part.
  open var runLoopModes: Set<AnyHashable> {
    get { read { $0.runLoopModes } }
    set { read { $0.runLoopModes = newValue } }
  }

  /// What the operation was made with, or, after a pause, what was sent to go on: with the fields `Range` and
  /// `If-Range`.
  open var request: URLRequest { read { $0.sentRequest ?? $0.request } }

  /// The latest response. Nil until there is one.
  open var response: URLResponse! { read { $0.response } }

  /// Why it failed. Nil while it runs, and when it has succeeded. A cancelled one fails with `URLError.cancelled`.
  open var error: (any Error)! { read { $0.error } }

  /// The content, when the load has succeeded and no other ``outputStream`` took it.
  open var responseData: Data! { read { $0.responseData } }

  /// The content as text, by ``responseStringEncoding``, or `nil` if there is none, or if it is no text in that encoding.
  open var responseString: String! {
    let encoding = responseStringEncoding
    return read { details in
      if details.responseString == nil, details.response != nil, let data = details.responseData {
        details.responseString = TextCoding.text(of: data, in: String.Encoding(rawValue: encoding))
      }
      return details.responseString
    }
  }

  /// The raw value of a `String.Encoding`: what the response says, or UTF-8 if it says nothing that is known.
  ///
  /// Known are the names of the IANA's registry, and what is written in their place, of ASCII and all of Unicode's encodings,
  /// ISO-8859-1 to -16, windows-1250 to -1258 and -874, the IBM code pages 437 to 950, KOI8-R and -U, TIS-620, GB2312, GBK and GB18030,
  /// HZ, Big5 and Big5-HKSCS, EUC-TW, EUC-KR, ISO-2022-KR, Shift_JIS, EUC-JP, ISO-2022-JP, -JP-1 and -JP-2, ISO-2022-CN, and of
  /// Macintosh's Western, Greek, Cyrillic, Central European and Turkish. As browsers do (WHATWG Encoding 4.2), GB2312 is read as GBK, and EUC-KR as
  /// windows-949. Foundation on Linux cannot decode Johab, VISCII, ISO-2022-JP-3, Shift_JISX0213 and Macintosh's other sets: these
  /// count as unknown.
  open var responseStringEncoding: UInt {
    let name = read { $0.response }?.textEncodingName
    return (name.flatMap { TextEncodingName.encoding(of: $0) } ?? .utf8).rawValue
  }

  /// Whether credentials come from the storage if ``credential`` is nil. True at first.
  open var shouldUseCredentialStorage: Bool {
    get { read { $0.usesCredentialStorage } }
    set { read { $0.usesCredentialStorage = newValue } }
  }

  /// What answers a first challenge. A user in the request's URL goes before it.
  open var credential: URLCredential! {
    get { read { $0.credential } }
    set { details.put(newValue, at: \.credential) }
  }

  /// What decides whether a server is trusted. Counts if it is set before the operation starts.
  open var securityPolicy: AFSecurityPolicy {
    get { read { $0.securityPolicy } }
    set { details.put(newValue, at: \.securityPolicy) }
  }

  /// The stream that the request's body is read from. One that cannot be copied can be sent once only: a redirection or
  /// a challenge that wants the body again then fails.
  open var inputStream: InputStream! {
    get { request.httpBodyStream }
    set { details.put(newValue, at: \.request.httpBodyStream) }
  }

  /// Where the content goes, piece by piece. It is opened when the operation starts, and closed at its end. With a
  /// stream that is not to memory ``responseData`` stays nil. Its writes may block, which delays other operations. Set
  /// while the operation runs it has no effect.
  ///
  /// Asked for before anybody has set it, it is a stream to memory; once the content is in ``responseData``, nil.
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
        // It is in use.
        guard details.output == nil else { return newValue }
        defer { details.outputStream = newValue }
        return details.outputStream
      }
      if let old, old !== newValue { old.close() }
    }
  }

  /// Where ``completionBlock``, progress and the results are delivered. Nil, as at first: the main queue.
  open var completionQueue: DispatchQueue? {
    get { read { $0.completionQueue } }
    set { details.put(newValue, at: \.completionQueue) }
  }

  /// The group that those blocks are part of. Nil, as at first: one that all operations without a group share.
  open var completionGroup: DispatchGroup? {
    get { read { $0.completionGroup } }
    set { details.put(newValue, at: \.completionGroup) }
  }

  /// For whoever made the operation. No meaning here.
  open var userInfo: [AnyHashable: Any] {
    get { read { $0.userInfo } }
    set { details.put(newValue, at: \.userInfo) }
  }

  // MARK: - Blocks

  /// Called once when the operation has finished, on ``completionQueue``, and let go then.
  open override var completionBlock: (@Sendable () -> Void)? {
    get { read { $0.completion } }
    set { details.put(newValue, at: \.completion) }
  }

  /// Called when a piece of the body has been sent: bytes since the last call, bytes in all, and bytes expected, which
  /// are below 0 if nobody knows. One call after another, on ``completionQueue``.
  open func setUploadProgressBlock(_ block: ((UInt, Int64, Int64) -> Void)?) {
    details.put(block, at: \.uploadProgress)
  }

  /// Called when a piece of the content has come: bytes since the last call, bytes in all, and bytes expected, which
  /// are below 0 if the server does not say. One call after another, on ``completionQueue``.
  open func setDownloadProgressBlock(_ block: ((UInt, Int64, Int64) -> Void)?) {
    details.put(block, at: \.downloadProgress)
  }

  /// Called for every challenge, in place of ``securityPolicy`` and ``credential``. It answers by the challenge's
  /// sender, now or later and on any thread; a challenge that it lets go of without an answer is cancelled.
  ///
  /// The operation then has connections of its own: what the block trusts, no other operation trusts.
  open func setWillSendRequestForAuthenticationChallengeBlock(
    _ block: ((NSURLConnection, URLAuthenticationChallenge) -> Void)?
  ) { details.put(block, at: \.challengeBlock) }

  /// Called for every redirection. It returns the request that is to be made next; with nil the redirecting response
  /// itself is the result. Not called for the first request, as NSURLConnection's delegate was.
  open func setRedirectResponseBlock(_ block: ((NSURLConnection, URLRequest, URLResponse) -> URLRequest?)?) {
    details.put(block, at: \.redirectBlock)
  }

  /// Called when the response is about to be stored. It returns what is to be stored; nil is nothing.
  open func setCacheResponseBlock(_ block: ((NSURLConnection, CachedURLResponse) -> CachedURLResponse?)?) {
    details.put(block, at: \.cacheBlock)
  }

  // MARK: - States

  open override var isReady: Bool { read { $0.machine.state } == .ready && super.isReady }
  open override var isExecuting: Bool { read { $0.machine.state } == .executing }
  open override var isFinished: Bool { read { $0.machine.state } == .finished }
  open override var isCancelled: Bool { read { $0.machine.isCancelled } }
  open override var isAsynchronous: Bool { true }

  /// What it depends on, and has depended on.
  open override var dependencies: [Operation] { read { $0.formerDependencies } + super.dependencies }

  /// Begins to load, unless it has begun or waits for other operations. If it is paused it begins when it is resumed.
  /// The call returns at once.
  ///
  /// A queue does this for the operations in it. To call it for one that waits in a queue confuses Foundation's queue.
  open override func start() {
    let isReady = super.isReady
    hear { $0.started(isReady: isReady) }
  }

  /// Ends the operation with `URLError.cancelled`: once its task has ended, or, if it has not begun, once it is
  /// started.
  open override func cancel() {
    let decision = decide { $0.cancelled() }
    guard decision.action != .nothing else { return }
    super.cancel()
    perform(decision)
  }

  /// Stops: a paused operation is neither ready nor executing nor finished, and stays in its queue until it is resumed
  /// or cancelled. No effect on one that is paused, cancelled or finished.
  open func pause() { hear { $0.paused() } }

  /// Whether it is paused.
  open func isPaused() -> Bool { read { $0.machine.state } == .paused }

  /// Goes on: loads the request again from its beginning, or, for ``AFHTTPRequestOperation``, what is missing. One that
  /// had not begun when it was paused is ready again, and begins when its queue, or whoever else, starts it.
  open func resume() { hear { $0.resumed() } }

  // MARK: - What subclasses here do otherwise

  /// The request that goes on after a pause, and nil if all has to be loaded again.
  func continuation(of request: URLRequest, after response: URLResponse?, count: Int64) -> URLRequest? { nil }

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

  /// Nil: the archive has no request.
  public required init?(coder decoder: NSCoder) {
    guard let request = decoder.object(NSURLRequest.self, forKey: Key.request) else { return nil }
    var details = Details(request: request as URLRequest)
    let state = OperationMachine.State(rawValue: Int(clamping: decoder.decodeInt64(forKey: Key.state)))
    details.machine = OperationMachine(state: state == .finished ? .finished : .ready)
    details.response = decoder.object(HTTPURLResponse.self, forKey: Key.response)
    details.error = Self.error(in: decoder)
    details.responseData = decoder.object(NSData.self, forKey: Key.responseData).map { Data(referencing: $0) }
    details.bytesRead = max(0, decoder.decodeInt64(forKey: Key.totalBytesRead))
    self.details = Guarded(details)
    super.init()
  }

  /// Pauses the operation, and writes what it has: no blocks and no streams. One that has not finished is ready to
  /// begin anew when it is read again. Of an error's `userInfo` the texts and URLs are kept.
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

  /// Foundation's archives of errors end the process.
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

  /// A new operation for the same request, with the same blocks and queues, but without ``completionBlock`` and
  /// streams: to try again.
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
    let words = [
      "state: \(state)", "cancelled: \(isCancelled)",
      "request: \(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")",
      "response: \(response?.description ?? "none")",
    ]
    return "<\(type(of: self)), \(words.joined(separator: ", "))>"
  }
}
