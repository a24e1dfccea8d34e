import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// A load's upload of a file in the way that can be resumed (draft-ietf-httpbis-resumable-upload): one request creates
/// the upload, and further ones find the offset and append the rest. Made for upload tasks from files only. It belongs
/// to the loop.
///
/// The machine decides, and this class carries the decisions out by the load's stages: the load repeats its stages for
/// each of the machine's requests, as it does for a redirection. The task machine keeps the program's request, so that
/// the task's current request and its error name the program's URL, and not the upload resource's.
final class ResumableUpload {
  typealias Action = ResumableUploadMachine.Action

  /// A question to the delegate: whether the upload may use an upload resource of another origin.
  struct Question {
    /// The URL in the machine's words.
    var location: String
    /// The response that names the URL.
    var response: HTTPURLResponse
    /// The request to propose: the one that sends the rest of the file.
    var request: URLRequest
  }

  /// What follows an action of the machine.
  enum Outcome {
    /// The latest response is the task's response.
    case deliver
    /// Another request has to be made.
    case another
    /// The delegate has to be asked. The fact that has led here is then reported again.
    case ask(Question)
  }

  /// The number of bytes after which a new offset is worth a call of the handler of upload points.
  private static let pointBytes = 1 << 20

  private let task: URLSessionUploadTask
  private let settings: ResumableUploadMachine.Settings
  /// `nil` until the file has been opened.
  private var machine: ResumableUploadMachine?
  private var file: OpenFile?
  private var status: FileStatus?
  /// The path of the file.
  private let path: String
  /// The program's request, after the redirections so far.
  private var own: URLRequest
  /// The machine's latest request, which is sent next or has been sent.
  private var current: UploadRequest?
  /// Whether the current request has been prepared: another preparation sends it again.
  private var isPrepared = false
  /// The current request, if it goes to the upload resource. `nil` for the program's own request.
  private(set) var resourceRequest: URLRequest?
  /// The interim response that has named the upload resource.
  private var announcement: HTTPURLResponse?
  /// The delegate's requests to upload resources of other origins, by the machine's URLs. The machine limits their
  /// number.
  private var agreements: [String: URLRequest] = [:]
  /// The delay before the machine's next request.
  private var delay: Duration?
  /// The machine's decision that ends the request in flight.
  private var interruption: Action?
  /// Whether the request in flight has to be cancelled.
  var isInterrupted: Bool { interruption != nil }
  /// The offset that the handler of upload points was called with.
  private var notedOffset = 0
  private var hasNotedPoint = false
  /// Whether an informational response of status 104 has arrived.
  private var hasBeenInformed = false

  /// Creates the upload of a file, or returns `nil` if the request cannot be resumed.
  init?(of task: URLSessionUploadTask, _ request: URLRequest, file url: URL, _ core: SessionCore) {
    guard let version = core.settings.resumableUploadVersion, url.isFileURL,
      !core.composer.hasUploadFields(request), request.own.exactForm == nil,
      Redirection.isOfHTTP(request.url)
    else { return nil }
    self.task = task
    own = request
    path = url.path
    settings = Self.settings(version, core)
  }

  /// Continues an upload.
  init(of task: URLSessionUploadTask, _ request: URLRequest, from data: UploadResumeData, _ core: SessionCore) {
    self.task = task
    own = request
    path = data.path
    settings = Self.settings(data.point.version, core)
    status = data.file
    machine = ResumableUploadMachine(settings: settings, url: data.url, point: data.point)
    notedOffset = data.point.acknowledged
    hasNotedPoint = true
  }

  private static func settings(
    _ version: ResumableUploadVersion, _ core: SessionCore
  ) -> ResumableUploadMachine.Settings {
    var settings = ResumableUploadMachine.Settings()
    settings.version = version
    if let retry = core.uploadRetry {
      settings.retry = retry
    } else {
      // As on Darwin a session bridges short interruptions, and a background session all of them.
      settings.retry.failuresMax = core.isBackground ? nil : 4
    }
    return settings
  }

  /// The time of the wall clock at the machine's start, as the clocks were when the upload began.
  private let bootTime = MachineClock.wallSeconds - MachineClock.bootSeconds
  /// The time in seconds since 1970, by a clock that nothing sets while the upload runs.
  private var now: Double { bootTime + MachineClock.bootSeconds }
  private var fraction: Double { .random(in: 0...1) }

  /// Whether the current request goes to the upload resource.
  var isAtResource: Bool { resourceRequest != nil }

  /// Whether the upload decides on further requests: the server has an upload resource, or is to lose it.
  var decidesByItself: Bool { machine?.point != nil || current?.kind == .cancellation || isInterrupted }

  /// Whether the current request goes to another origin than the program's. No credentials are found for it.
  var isElsewhere: Bool { isAtResource && current?.leavesOrigin == true }

  /// Whether the current request sends the whole file.
  var sendsWhole: Bool { resourceRequest == nil && (current.map { $0.content.count == machine?.length } ?? true) }

  // MARK: - Before a request

  /// Prepares the machine's next request. Called before each request of the load.
  ///
  /// - Parameter request: The program's request, after the redirections so far.
  /// - Returns: The delay to wait for first, or the question to ask, if any.
  func next(after request: URLRequest) throws(URLError) -> Load.Need? {
    own = request
    if current == nil, machine != nil, case .ask(let question) = try resume() { return .uploadResource(question) }
    return delay.map { .delay($0) }
  }

  /// Starts to continue the upload of another task: the file has to be the one that was uploaded.
  private func resume() throws(URLError) -> Outcome {
    do throws(Errno) {
      file = try OpenFile(readingRegular: path)
    } catch {
      throw TaskUpload.failure(error, path)
    }
    guard let action = hasFileChanged ? machine?.fileChanged() : machine?.start(now: now) else { return .another }
    return try perform(action)
  }

  /// Takes the delegate's answer: the request to an upload resource of another origin, or `nil` if the upload must not
  /// use it.
  func answered(_ question: Question, _ answer: URLRequest?) {
    var answer = answer
    // A request to another URL is no agreement to the one that the server has named.
    if answer?.url != question.request.url { answer = nil }
    agreements[question.location] = answer.map { answer in
      var request = Self.prepared(answer)
      // Another origin must not get cookies meant for the origin of the program's request, and must not set any.
      request.httpShouldHandleCookies = false
      return request
    }
    machine?.answered(question.location, isAgreed: answer != nil)
  }

  /// The delay before the machine's next request is over.
  func waited() throws(URLError) {
    delay = nil
    if let action = machine?.waited(now: now) { _ = try perform(action) }
  }

  /// Whether a request to the upload resource is about to be prepared for the first time.
  var isNewAtResource: Bool { isAtResource && !isPrepared }

  /// Returns the body of the current request, and adds the request's fields.
  ///
  /// - Returns: `nil` if the program's own request begins the upload: for the first time, or again because of a
  ///   challenge, a redirection or a new network. `begin` makes its body.
  func ownBody(of load: NetworkLoad) throws(URLError) -> UploadBody? {
    resourceRequest == nil && (current == nil || isPrepared) ? nil : body(of: load, current)
  }

  /// Begins the upload, by the program's own request.
  ///
  /// - Parameter whole: The body of that request without the upload.
  /// - Returns: `nil` if the request does not send a regular file.
  func begin(_ whole: UploadBody?, of load: NetworkLoad) throws(URLError) -> UploadBody? {
    guard case .file(let file, _, let length, let status?)? = whole?.content, let url = load.request.url else {
      return nil
    }
    self.file = file
    self.status = status
    interruption = nil
    hasBeenInformed = false
    announcement = nil
    var machine = ResumableUploadMachine(settings: settings, url: url.absoluteString, length: length)
    let action = machine.start(now: now)
    self.machine = machine
    _ = try perform(action)
    return body(of: load, current)
  }

  private func body(of load: NetworkLoad, _ request: UploadRequest?) -> UploadBody {
    guard let request else { return UploadBody() }
    isPrepared = true
    load.additions.replacements = request.fields
    if isElsewhere { load.additions.hasLeftOrigin = true }
    switch request.kind {
    case .offsetRetrieval, .cancellation: return UploadBody()
    case .creation, .append:
      let (content, count) = (request.content, request.content.count)
      var body = UploadBody(content: .none, length: .length(UInt(count)))
      if let file, let status, count > 0 {
        // A change since the upload's start, however long ago, makes the exchange fail before its last byte.
        body.content = .file(file, offset: content.lowerBound, length: count, unchangedSince: status)
      }
      body.part = UploadBody.Part(offset: Int64(content.lowerBound), whole: Int64(machine?.length ?? count))
      return body
    }
  }

  /// The longest time of a request that deletes the upload resource, or `nil` for other requests.
  var timeMax: Duration? { current?.kind == .cancellation ? settings.retry.cancellationTimeMax : nil }

  // MARK: - While a request is in flight

  /// - Parameter count: The number of bytes of the request's content that the connection has taken.
  func sent(_ count: Int) { machine?.sentContent(count) }

  /// All of the request's content has been sent.
  func allSent() { machine?.sentContent(current?.content.count ?? 0) }

  /// An informational response has arrived.
  ///
  /// - Returns: Whether the response reports nothing but progress.
  func informed(_ status: Int, _ fields: ResponseFields, from url: URL?) -> Bool {
    guard status == 104, let url else { return false }
    defer { hasBeenInformed = true }
    let facts = response(status, fields, url)
    if facts.location != nil, machine?.point == nil {
      announcement = HTTPURLResponse(
        url: url, statusCode: status, httpVersion: "HTTP/1.1", fields: fields, isDecoded: false)
    }
    switch machine?.informed(facts, now: now) ?? .proceed {
    case .proceed: notePoint()
    // The machine has ended, and the response comes too late.
    case .finish: break
    // The machine never asks while a request is in flight.
    case .ask: break
    case let action: if interruption == nil { interruption = action }
    }
    return hasBeenInformed
  }

  private func response(_ status: Int, _ fields: ResponseFields, _ url: URL) -> UploadResponse {
    UploadResponse(
      status: status, url: url.absoluteString, version: settings.version, now: now, fields: { fields.values(of: $0) })
  }

  // MARK: - After a request

  /// Decides what the head of a response means.
  ///
  /// Called again with the same response after a question.
  func outcome(of response: HTTPURLResponse, to request: URLRequest) throws(URLError) -> Outcome {
    guard let current, machine != nil, let url = request.url else { return .deliver }
    if let action = interruption.take() { return try perform(action) }
    // The bytes that the server has may be those of two files.
    if current.kind != .cancellation, machine?.point != nil, hasFileChanged, let action = machine?.fileChanged() {
      return try perform(action)
    }
    let facts = self.response(response.statusCode, response.fields, url)
    guard let action = machine?.responded(facts, now: now, fraction: fraction) else { return .deliver }
    notePoint()
    return try perform(action, after: facts.location == nil ? announcement : response)
  }

  /// Decides whether the upload continues after a request without a response.
  ///
  /// Called again with the same error after a question.
  ///
  /// - Returns: `nil` if the load fails with the transport's error, or repeats the program's request.
  func outcome(of error: TransportError) throws(URLError) -> Outcome? {
    if let action = interruption.take() {
      _ = try perform(action)
      return .another
    }
    guard let current, machine?.point != nil || current.kind == .cancellation else { return nil }
    let hasChanged = current.kind != .cancellation && (error == .bodyFailed(.fileChanged) || hasFileChanged)
    let action =
      hasChanged
      ? machine?.fileChanged() : machine?.failed(isFutile: !error.isOfConnection, now: now, fraction: fraction)
    guard let action, action != .fail(.connection) else { return nil }
    return try perform(action)
  }

  private var hasFileChanged: Bool {
    guard let file, let status else { return false }
    return (try? file.status()) != status
  }

  // MARK: - Actions

  /// Carries out an action of the machine.
  ///
  /// - Parameter response: The response that has led to the action, or `nil` if no response has.
  private func perform(_ action: Action, after response: HTTPURLResponse? = nil) throws(URLError) -> Outcome {
    switch action {
    case .proceed: return .another
    case .ask(let location): return .ask(try question(location, response ?? announcement))
    case .deliver, .deliverRetrieval:
      notePoint()
      return .deliver
    case .wait(let delay):
      self.delay = delay
      return .another
    case .finish: throw URLError.make(.cancelled, "cancelled", url: own.url)
    case .fail(let failure): throw URLError(failure, url: own.url)
    case .send(let request):
      if request.kind == .append, hasFileChanged, let action = machine?.fileChanged() { return try perform(action) }
      try send(request)
      return .another
    }
  }

  private func send(_ request: UploadRequest) throws(URLError) {
    current = request
    isPrepared = false
    resourceRequest = try request.url.map { (url) throws(URLError) in try self.request(request, to: url) }
  }

  /// Returns the request to an upload resource.
  private func request(_ upload: UploadRequest, to target: String) throws(URLError) -> URLRequest {
    var request: URLRequest
    if upload.leavesOrigin {
      guard let agreement = agreements[target] else { throw Load.inconsistency }
      request = agreement
    } else {
      let url = try Self.url(target)
      // The machine compares texts, and the request goes to the URL that Foundation reads from the text.
      guard let first = own.url, Redirection.isSameOrigin(url, first) else { throw Self.unusable }
      request = Self.prepared(own)
      request.url = url.withCredential(of: first)
    }
    request.httpMethod = upload.method
    return request
  }

  /// Returns the question about a URL of another origin. As for a redirection, the request to propose is made from the
  /// request before, without what is private to that one's origin.
  private func question(_ location: String, _ response: HTTPURLResponse?) throws(URLError) -> Question {
    var request = Self.prepared(resourceRequest ?? own)
    let before = request.url
    request.url = try Self.url(location)
    request.httpMethod = "PATCH"
    Redirection.dropPrivateFields(of: &request)
    request.httpShouldHandleCookies = false
    // Resume data holds no response: the one that has named the upload resource is made up.
    let named =
      response
      ?? before.flatMap {
        HTTPURLResponse(url: $0, statusCode: 104, httpVersion: "HTTP/1.1", headerFields: ["Location": location])
      }
    guard let named else { throw Self.unusable }
    return Question(location: location, response: named, request: request)
  }

  private static func url(_ text: String) throws(URLError) -> URL {
    guard let url = URL(peerText: Array(text.utf8)) else { throw unusable }
    return url
  }

  private static var unusable: URLError {
    .make(.badServerResponse, "the URL of the upload resource cannot be used")
  }

  /// Returns a request without its content and without what concerns its own resource.
  private static func prepared(_ request: URLRequest) -> URLRequest {
    var request = request
    Redirection.dropBody(of: &request)
    for name in Self.leftOut where request.own.fields?.firstValue(named: name) != nil {
      request.setValue(nil, forHTTPHeaderField: name)
    }
    request.cachePolicy = .reloadIgnoringLocalCacheData
    return request
  }

  /// Fields of the program's request that concern the resource of that request, not the upload resource.
  private static let leftOut = [
    "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range", "Content-Digest",
    "Repr-Digest", "Content-Disposition", "Trailer",
  ]

  // MARK: - The point to continue from

  /// Returns what a later upload can continue from after this one has failed.
  func resumeData(after failure: URLError) -> Data? {
    notePoint(isLast: true)
    // As for downloads: a program that cancels without asking for resume data does not get any.
    if failure.code == .cancelled, !task.needsResumeData { return nil }
    return snapshot.flatMap { SignedUploadData.encode($0) }
  }

  private var snapshot: UploadResumeData? {
    guard let point = machine?.point, let status, let request = task.originalRequest,
      let url = request.url?.absoluteString
    else { return nil }
    return UploadResumeData(
      point: point, url: url, method: request.own.method,
      fields: (request.own.fields ?? []).map { Field($0.name, $0.value) }, path: path,
      file: status, attributes: RequestSettings(request).encoded)
  }

  /// Calls the task's handler of upload points, if the point is new enough.
  ///
  /// - Parameter isLast: Whether the load is about to end. Before, the load may have sent any byte by the time at which
  ///   the point is used.
  private func notePoint(isLast: Bool = false) {
    guard let handler = task.uploadPointHandler else { return }
    guard let point = machine?.point else {
      guard hasNotedPoint else { return }
      hasNotedPoint = false
      return handler(nil)
    }
    let isWhole = point.acknowledged == point.length && notedOffset < point.length
    let isNew = !hasNotedPoint || isLast || isWhole || point.acknowledged - notedOffset >= Self.pointBytes
    guard isNew, var snapshot else { return }
    if !isLast { snapshot.point.sent = point.length }
    hasNotedPoint = true
    notedOffset = point.acknowledged
    handler(snapshot)
  }
}

extension Load {
  /// Waits before the next request of a resumable upload. The idle time does not count meanwhile, because no byte is
  /// expected.
  func waitToUpload(for delay: Duration) async throws(URLError) {
    stopIdleTime()
    defer { countIdleTime() }
    try await wait(for: delay, "between two tries of the upload")
    try resumable?.waited()
  }

  /// Returns whether an upload continues after a request without a response.
  func continues(_ upload: ResumableUpload, after error: TransportError) async throws(URLError) -> Bool {
    while true {
      switch try upload.outcome(of: error) {
      case nil: return false
      case .ask(let question)?: upload.answered(question, try await askDelegate(question))
      case .deliver?, .another?: return true
      }
    }
  }
}

extension URL {
  /// The URL with the user and password of another URL, if it has no user.
  fileprivate func withCredential(of other: URL?) -> URL {
    guard let user = other?.user(), self.user() == nil,
      var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
    else { return self }
    parts.percentEncodedUser = user
    parts.percentEncodedPassword = other?.password()
    return parts.url ?? self
  }
}

extension URLError {
  /// Whether the error is one of the connection or its server's absence, so that another try may succeed.
  var isOfConnection: Bool {
    transportError?.isOfConnection ?? [.networkConnectionLost, .timedOut, .notConnectedToInternet].contains(code)
  }
}
