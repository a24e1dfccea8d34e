import Foundation
import LarkspurHTTP

// The interface of the cache to a session's tasks: plan, send, `received`, and, when the body is complete, `store`.
//
//     plan ──► load / validate ──► received ──► deliver
//          │                    │             ├► deliverAndStore ──► willCacheResponse ──► store
//          ├► serve             │             └► useStored
//          └► fail              └ (no answer) ► failed ──► a stand-in, or the error
//
// `planNow`, `received`, `failed` and `store` never block and may be called on a loop. Only
// `plan(for:fields:policy:now:then:)` reads the disk, on the cache's queue. All writes happen on that queue, later.
extension URLCache {
  /// The maximum share of the disk's capacity for one response of a session. Apple's documentation of
  /// `willCacheResponse` says that a response larger than about 5 % is not offered. Without the limit, one large file
  /// would evict everything else.
  static let diskShareMax = 0.05
  /// The maximum share of the memory's capacity for one response of a session. Memory is smaller and soon filled again.
  static let memoryShareMax = 0.25

  /// Returns the plan if it can be made without the disk.
  ///
  /// - Parameters:
  ///   - request: Provides the URL, the method, and whether there is a body.
  ///   - fields: The fields that are going to be sent, including the session's fields and cookies.
  ///   - policy: The request's cache policy, or the configuration's if the request has no policy.
  ///   - task: The request's task, to be passed to a subclass of the cache.
  /// - Returns: The plan, or `nil` if ``plan(for:fields:policy:now:then:)`` has to make it.
  func planNow(
    for request: URLRequest, fields: FieldList, policy: URLRequest.CachePolicy, now: Date,
    task: URLSessionDataTask? = nil
  ) -> CachePlan? {
    guard let exchange = CacheExchange(request, fields, policy, now) else {
      return policy == .returnCacheDataDontLoad ? .fail(.resourceUnavailable) : nil
    }
    // The request has to be sent whatever is stored.
    guard exchange.request.looksAtStored else {
      return Self.plan(exchange.of(CacheSubject(request: request, task: task), in: self), among: [])
    }
    if isSubclass { return nil }
    switch core.find({ exchange.key }, now: exchange.requestTime) {
    case .inMemory(let entries): return Self.plan(exchange, among: entries)
    case .alsoOnDisk(let entries):
      guard !entries.isEmpty else { return nil }
      let plan = Self.plan(exchange, among: entries)
      // An entry in memory is at least as new as its file.
      switch plan {
      case .serve, .validate: return plan
      case .load, .fail: return nil
      }
    case .later: return nil
    }
  }

  /// Makes the plan, reading the disk if needed. `body` is called once: either before this returns, or later on the
  /// cache's queue, where it must not block. With a subclass of the cache, `body` may be called on any thread, more
  /// than once or never.
  func plan(
    for request: URLRequest, fields: FieldList, policy: URLRequest.CachePolicy, now: Date,
    task: URLSessionDataTask? = nil, then body: @escaping @Sendable (CachePlan) -> Void
  ) {
    if let plan = planNow(for: request, fields: fields, policy: policy, now: now, task: task) { return body(plan) }
    guard let exchange = CacheExchange(request, fields, policy, now), let key = exchange.key else {
      // The request has no URL that can be a key, so nothing is stored for it. Sending the request reports the error.
      return body(policy == .returnCacheDataDontLoad ? .fail(.resourceUnavailable) : .uncached(request, fields, now))
    }
    if isSubclass {
      let subject = CacheSubject(request: request, task: task)
      let exchange = exchange.of(subject, in: self)
      return find(subject) { found in
        let found = found?.prepared(key: key, for: exchange.request.fields, now: exchange.requestTime)
        body(Self.plan(exchange, among: [found].compactMap(\.self)))
      }
    }
    core.look(for: key, now: exchange.requestTime) { entries in body(Self.plan(exchange, among: entries)) }
  }

  private static func plan(_ exchange: CacheExchange, among entries: [CachedURLResponse]) -> CachePlan {
    let takesAny = exchange.request.policy == .storedElseLoad || exchange.request.policy == .storedOnly
    let known = entries.compactMap { entry in
      (entry.origin?.stored ?? (takesAny ? entry.storedAsHTTP : nil)).map { (entry: entry, stored: $0) }
    }
    switch CacheDecision.decide(exchange.request, among: known.map(\.stored), now: exchange.requestTime) {
    case .fail(.notStored): return .fail(.resourceUnavailable)
    case .fail(.onlyIfCached): return .serve(.gatewayTimeout(exchange))
    case .load(let standIn, let adding):
      return .load(exchange.expecting(standIn.map { known[$0].entry }, isValidated: false, adding))
    case .validate(let candidate, let adding):
      return .validate(exchange.expecting(known[candidate].entry, isValidated: true, adding))
    case .serve(let serving):
      let (entry, stored) = known[serving.candidate]
      var answer = CacheAnswer(entry, stored, serving.form, age: serving.age, url: exchange.url)
      answer.isStale = serving.isStale
      if let fields = serving.refresh {
        answer.refresh = exchange.expecting(entry, isValidated: stored.hasValidator, fields)
      }
      return .serve(answer)
    }
  }
}

extension CachedURLResponse {
  /// A stored response that is not of HTTP, presented as an HTTP response.
  fileprivate var storedAsHTTP: StoredResponse {
    let time = origin?.storedTime ?? 0
    let charset = response.textEncodingName.map { "; charset=\($0)" } ?? ""
    let type = response.mimeType.map { Field("Content-Type", $0 + charset) }
    return StoredResponse(
      status: 200, fields: [type, Field("Content-Length", "\(data.count)")].compactMap(\.self),
      requestTime: time, responseTime: time, bodyCount: data.count)
  }
}

extension CacheExchange {
  convenience init?(_ request: URLRequest, _ fields: FieldList, _ policy: URLRequest.CachePolicy, _ now: Date) {
    guard let url = request.url else { return nil }
    var hasBody = true
    if case .none = request.own.body { hasBody = false }
    self.init(
      url: url,
      request: CacheRequest(
        method: request.httpMethod ?? "GET", fields: fields, policy: CacheRequest.Policy(policy), hasBody: hasBody,
        isDecoding: request.value(forHTTPHeaderField: "Accept-Encoding") == nil),
      requestTime: now.timeIntervalSince1970)
  }

  /// Returns the exchange with a stored response as its candidate.
  func expecting(_ candidate: CachedURLResponse?, isValidated: Bool, _ fields: FieldList) -> CacheExchange {
    CacheExchange(
      url: url, request: request, requestTime: requestTime, candidate: candidate, isValidated: isValidated,
      addedFields: fields, subject: subject)
  }

  /// Returns the exchange with a subject if the cache is a subclass, and itself otherwise.
  fileprivate func of(_ subject: CacheSubject, in cache: URLCache) -> CacheExchange {
    guard cache.isSubclass else { return self }
    return CacheExchange(url: url, request: request, requestTime: requestTime, subject: subject)
  }
}

extension CacheRequest {
  /// Whether a stored response can change how the request is handled.
  fileprivate var looksAtStored: Bool {
    guard isGet || isHead, !hasBody else { return false }
    return policy != .ignoringStored && policy != .ignoringAllCaches
  }
}

extension CacheRequest.Policy {
  init(_ policy: URLRequest.CachePolicy) {
    self =
      switch policy {
      case .useProtocolCachePolicy: .byProtocol
      case .reloadIgnoringLocalCacheData: .ignoringStored
      case .returnCacheDataElseLoad: .storedElseLoad
      case .returnCacheDataDontLoad: .storedOnly
      case .reloadIgnoringLocalAndRemoteCacheData: .ignoringAllCaches
      case .reloadRevalidatingCacheData: .revalidating
      }
  }
}

extension CachePlan {
  /// Returns the plan of a request that cannot be looked up.
  static func uncached(_ request: URLRequest, _ fields: FieldList, _ now: Date) -> CachePlan {
    let exchange = CacheExchange(
      url: request.url ?? URL(fileURLWithPath: "/"),
      request: CacheRequest(method: request.httpMethod ?? "GET", fields: fields, hasBody: true),
      requestTime: now.timeIntervalSince1970)
    return .load(exchange)
  }
}

extension CacheAnswer {
  init(
    _ entry: CachedURLResponse, _ stored: StoredResponse, _ form: CacheServing.Form, age: Int?, url: URL
  ) {
    var fields = stored.fields
    // RFC 9111 5.1: a response from a cache states its age.
    if let age { fields.replace("Age", with: "\(age)") }
    var status = stored.status
    var data = entry.data
    switch form {
    case .whole: break
    case .head: data = Data()
    case .notModified:
      status = 304
      data = Data()
      // RFC 9110 15.4.5: the size of a body that is not sent would mislead.
      fields.removeAll(named: "Content-Length")
    case .part(let bytes, let range):
      status = 206
      let start = data.startIndex
      // Copy, because programs assume that the indices of `Data` start at 0.
      data =
        bytes.upperBound <= data.count
        ? Data(data[(start + bytes.lowerBound)..<(start + bytes.upperBound)]) : Data()
      fields.replace("Content-Range", with: range.text)
      fields.replace("Content-Length", with: "\(bytes.count)")
    }
    let version = (entry.response as? HTTPURLResponse)?.httpVersion ?? "HTTP/1.1"
    response = HTTPURLResponse.make(
      url: url, status: status, version: version, fields: fields, isDecoded: stored.isDecoded)
    self.data = data
  }

  /// Returns the response to `only-if-cached` when nothing is stored (RFC 9111 5.2.1.7).
  static func gatewayTimeout(_ exchange: CacheExchange) -> CacheAnswer {
    let response = HTTPURLResponse.make(
      url: exchange.url, status: 504, version: "HTTP/1.1", fields: [Field("Content-Length", "0")],
      isDecoded: false)
    return CacheAnswer(response: response, data: Data())
  }
}
