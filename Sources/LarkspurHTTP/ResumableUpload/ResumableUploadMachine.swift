/// Decides on the requests of a resumable upload (draft-ietf-httpbis-resumable-upload; section numbers are those of
/// draft 10 unless another draft is named).
///
/// Theory of operation. The owner reports facts; each fact has one action as its answer, which the owner carries out
/// and reports the outcome of. The upload starts as the program's own request with a few fields more (section 12.1.1,
/// "Upgrading To Resumable Uploads"). Unless a 104 names an upload resource, nothing else happens: the server knows no
/// resumable uploads, and the request ends as any other.
///
/// ```
///          start                 2xx, other final status
///   idle --------> creating ------------------------------------> closed (deliver)
///    |                |  104: the upload resource is known
///    | with a         |  network error, retried status
///    | point          v
///    |             waiting <---------------+---------------+
///    |                |  waited            | network error,|
///    |                v                    | retried status|
///    '----------> retrieving --------------'               |
///                     |  2xx with an offset                |
///                     v                                    |
///   next part +-> appending -------------------------------'  409 as well
///             '-------|
///                     |  the upload is complete
///                     v
///                  closed (deliver)
///
///   cancelling: a failure that the server should know of, a changed file, or the program's wish; then closed
/// ```
///
/// The machine does not depend on connections, files, time or random numbers: the owner passes in the time in seconds
/// since 1970, and a fraction that spreads delays. Invariants: one request at a time; `send` answered while a request
/// is in flight replaces it, and the owner ends that one first; the content of a request lies within the representation
/// and starts at the offset that the server has named last; a fact that does not fit the state changes nothing; no
/// request goes to another origin than the program's before the owner has agreed to the URL, and no cancellation ever
/// does. The drafts say nothing about other origins: the rule is that of redirections.
package struct ResumableUploadMachine: Sendable {
  package struct Settings: Hashable, Sendable {
    package var version = ResumableUploadVersion.interop8
    package var retry = UploadRetry()
    /// The number of redirections of one request to the upload resource that are followed.
    package var redirectsMax = 5
    /// The maximum size in bytes of the content of one request, or `nil` for no maximum.
    package var contentMax: Int?
    /// The limits of a server that is known to support resumable uploads, such as from `OPTIONS` (section 4.1.4). With
    /// limits on the size of an append, the creation sends a first part only.
    package var knownLimits: UploadLimits?

    package init() {}
  }

  package enum State: Hashable, Sendable, CaseIterable {
    case idle, creating, retrieving, appending, waiting, cancelling, closed
  }

  package enum Action: Hashable, Sendable {
    /// Send this request. A request that is in flight is ended first.
    case send(UploadRequest)
    /// Let this time pass.
    case wait(Duration)
    /// Continue the request in flight.
    case proceed
    /// Find out whether the upload may use this URL of another origin, call `answered(_:isAgreed:)`, and report the fact
    /// again. The fact has changed nothing.
    case ask(String)
    /// The latest response, with its body, is the response to the program's request.
    case deliver
    /// The upload is complete, and its response was lost. The latest response, to a HEAD request, has the fields that
    /// the server repeats for this case (section 11).
    case deliverRetrieval
    /// End without a response: the program has cancelled.
    case finish
    case fail(UploadFailure)
  }

  package internal(set) var state = State.idle
  package let settings: Settings
  /// The URL of the program's request.
  let url: String
  /// Size of the representation in bytes.
  package let length: Int
  /// The URL of the upload resource, or `nil` if it is unknown or must not be used any more.
  var resource: String?
  /// The URL that the next request goes to: the upload resource, or where it has redirected to.
  var target: String?
  var redirectCount = 0
  /// The URLs of other origins that the owner has agreed to.
  private var agreed: Set<String> = []
  /// Whether the owner has refused a URL of another origin. No other such URL is used then.
  private var isConfined = false
  package internal(set) var acknowledged = 0
  package internal(set) var sent = 0
  var limits: UploadLimits
  var expiry: Double?
  /// The content of the latest request that transfers bytes.
  var content = 0..<0
  /// The number of requests without progress that failed.
  package internal(set) var failureCount = 0
  /// The number of times that a server has lowered the size of an append.
  var reductionCount = 0
  /// The failure that follows the cancellation, or `nil` if the program has cancelled.
  var pendingFailure: UploadFailure?

  /// The number of times that a server may lower the size of an append. More would let it cut an upload into any number
  /// of requests.
  package static let reductionsMax = 8

  /// The number of URLs of other origins that the owner is asked about. They count like the redirections of a task.
  package static let agreementsMax = RedirectPolicy.countMax

  /// Creates the machine of a new upload.
  ///
  /// - Parameters:
  ///   - url: The absolute URL of the program's request.
  ///   - length: Size of the representation in bytes.
  package init(settings: Settings = Settings(), url: String, length: Int) {
    self.settings = settings
    self.url = url
    self.length = max(length, 0)
    limits = settings.knownLimits ?? UploadLimits()
  }

  /// Creates the machine of an upload that continues. The point's version replaces that of the settings.
  package init(settings: Settings = Settings(), url: String, point: UploadPoint) {
    var settings = settings
    settings.version = point.version
    self.init(settings: settings, url: url, length: point.length)
    resource = point.resource
    limits = point.limits
    expiry = point.expiry
    sent = min(max(point.sent, 0), self.length)
    acknowledged = min(max(point.acknowledged, 0), self.length)
  }

  /// The point from which the upload can be continued, or `nil` if it can only start over or is over.
  package var point: UploadPoint? {
    guard let resource else { return nil }
    return UploadPoint(
      version: version, resource: resource, length: length, acknowledged: acknowledged, sent: sent, limits: limits,
      expiry: expiry)
  }

  var version: ResumableUploadVersion { settings.version }

  /// Whether a structured field can hold the size. A larger upload is sent as if there were no resumable uploads.
  var isExpressible: Bool { length <= StructuredItem.integerMax }

  /// Whether the request in flight ends with the last byte.
  var isFinal: Bool { content.upperBound == length }

  // MARK: - Facts

  /// The program resumes its task.
  package mutating func start(now: Double) -> Action {
    guard state == .idle else { return unfitting }
    guard let resource else { return create() }
    // The point may come from a file.
    guard mayUse(resource, from: url) else { return lose(.otherOrigin) }
    return asking { $0.retrieve(now) }
  }

  /// The owner has found out whether a URL of another origin may be used.
  package mutating func answered(_ location: String, isAgreed: Bool) {
    guard !isAgreed else {
      agreed.insert(location)
      return
    }
    isConfined = true
    if state != .idle, let resource, !isAllowed(resource) { self.resource = nil }
  }

  /// An interim response has arrived, with any status (sections 4.2 and 5).
  package mutating func informed(_ response: UploadResponse, now: Double) -> Action {
    guard state == .creating || state == .appending, response.status == 104, isExpressible,
      response.interopVersion == version.rawValue
    else { return unfitting }
    // Section 4.4.2: interim responses to an append have no `Location`.
    if state == .creating, let location = response.location {
      if let resource, resource != location { return stop(.locationChanged) }
      guard mayUse(location, from: response.url) else { return .proceed }
      resource = location
    }
    // A resource of another origin has no influence before there is a reason to use it.
    guard let resource, isAllowed(resource) else { return .proceed }
    learn(response, now)
    if let failure = limitFailure { return stop(failure) }
    if version.hasLimits, let offset = response.offset {
      if let fault = fault(of: offset) { return stop(fault) }
      advance(to: offset)
    }
    // Section 4.1.4: larger requests than the server allows must not be sent.
    return content.count > limits.maxAppendSize ?? .max ? reduced(now) : .proceed
  }

  /// The connection has taken this number of bytes of the request's content.
  package mutating func sentContent(_ count: Int) {
    guard state == .creating || state == .appending else { return }
    sent = max(sent, content.lowerBound + min(max(count, 0), content.count))
  }

  /// The head of a final response has arrived. Redirections of the program's request, and challenges, are not reported.
  ///
  /// - Parameters:
  ///   - now: The current time in seconds since 1970.
  ///   - fraction: A random number from 0 to 1.
  package mutating func responded(_ response: UploadResponse, now: Double, fraction: Double) -> Action {
    switch state {
    case .creating: return asking { $0.created(response, now, fraction) }
    case .retrieving: return asking { $0.retrieved(response, now, fraction) }
    case .appending: return asking { $0.appended(response, now, fraction) }
    case .cancelling: return cancelled()
    case .idle, .waiting, .closed: return unfitting
    }
  }

  /// The request in flight has failed without a final response, or in the middle of its response's body.
  ///
  /// - Parameter isFutile: Whether another try would fail in this way, too.
  package mutating func failed(isFutile: Bool, now: Double, fraction: Double) -> Action {
    switch state {
    case .idle, .waiting, .closed: return unfitting
    case .cancelling: return cancelled()
    case .creating, .retrieving, .appending:
      guard resource != nil, !isFutile else { return close(.fail(.connection)) }
      return asking { $0.wait(nil, now, fraction, orElse: .fail(.connection)) }
    }
  }

  /// The delay has passed.
  package mutating func waited(now: Double) -> Action {
    state == .waiting ? retrieve(now) : unfitting
  }

  /// The file is not the one that the upload was started with.
  package mutating func fileChanged() -> Action {
    state == .closed || state == .cancelling ? unfitting : stop(.fileChanged)
  }

  /// The program cancels, and does not want to continue (section 4.5).
  package mutating func cancel() -> Action {
    if state == .closed || state == .cancelling { return unfitting }
    if let action = sendCancellation() { return action }
    resource = nil
    return close(.finish)
  }

  /// The program cancels to continue later. The request in flight is ended, and the upload resource stays.
  ///
  /// - Returns: The point from which the upload can be continued, or `nil` if it can only start over.
  package mutating func pause() -> UploadPoint? {
    guard state != .closed, state != .cancelling else { return nil }
    state = .closed
    return point
  }

  // MARK: - Other origins

  /// Whether a URL has the origin of the program's request.
  func isOwn(_ location: String) -> Bool {
    Self.origin(of: location).map { $0 == Self.origin(of: url) } ?? false
  }

  /// Whether requests may go to a URL.
  private func isAllowed(_ location: String) -> Bool { isOwn(location) || agreed.contains(location) }

  /// Whether the URL can name an upload resource: an absolute one of HTTP, which does not leave TLS, and which the owner
  /// has agreed to or can be asked about.
  func mayUse(_ location: String, from base: String) -> Bool {
    guard let origin = Self.origin(of: location) else { return false }
    let leavesTLS = [url, base].contains { Self.origin(of: $0)?.hasPrefix("http://") != true }
    guard origin.hasPrefix("https://") || !leavesTLS else { return false }
    return isAllowed(location) || !isConfined && agreed.count < Self.agreementsMax
  }

  /// Makes a decision, unless it leads to a URL of another origin that the owner has to agree to first.
  private mutating func asking(_ decide: (inout Self) -> Action) -> Action {
    var next = self
    let action = decide(&next)
    let location: String? =
      switch action {
      case .send(let request): request.url
      case .wait: next.resource
      default: nil
      }
    if let location, !isAllowed(location) { return .ask(location) }
    self = next
    return action
  }

  /// The answer to a fact that does not fit the state.
  var unfitting: Action { state == .closed ? .finish : .proceed }
}
