import Foundation
import LarkspurHTTP

// What a session's tasks ask of a cache: plan, send, `received`, and, once the body is there, `store`.
//
//     plan ──► load / validate ──► received ──► deliver
//          │                    │             ├► deliverAndStore ──► willCacheResponse ──► store
//          ├► serve             │             └► useStored
//          └► fail              └ (no answer) ► failed ──► a stand-in, or the error
//
// `planNow`, `received`, `failed` and `store` never wait and may be called on a loop. The disk is read for a plan
// alone, by `plan(for:fields:policy:now:then:)`, on the cache's queue. Whatever is written is written there, later.
extension URLCache {
  /// The share of the disk's capacity that one response of a session may take: Apple's documentation says of
  /// `willCacheResponse` that one larger than about 5 % is not offered. One large file would drive out everything
  /// else.
  static let diskShareMax = 0.05
  /// The same of memory, which is smaller and soon filled again.
  static let memoryShareMax = 0.25

  /// The plan, if it can be made without the disk. Nil: use ``plan(for:fields:policy:now:then:)``.
  ///
  /// - Parameters:
  ///   - request: Its URL, its method, and whether it has a body.
  ///   - fields: The fields that will be sent, those of the session and cookies among them.
  ///   - policy: That of the request, or of the configuration where the request leaves it to that.
  ///   - task: Whose request it is, if a program's own cache may know.
  func planNow(
    for request: URLRequest, fields: CacheFields, policy: URLRequest.CachePolicy, now: Date,
    task: URLSessionDataTask? = nil
  ) -> CachePlan? {
    guard let exchange = CacheExchange(request, fields, policy, now) else {
      return policy == .returnCacheDataDontLoad ? .fail(.resourceUnavailable) : nil
    }
    // What has to be sent whatever is stored.
    guard exchange.request.looksAtStored else {
      return Self.plan(exchange.of(CacheSubject(request: request, task: task), in: self), among: [])
    }
    if isSubclass { return nil }
    switch core.find({ exchange.key }, now: exchange.requestTime) {
    case .inMemory(let entries): return Self.plan(exchange, among: entries)
    case .alsoOnDisk(let entries):
      guard !entries.isEmpty else { return nil }
      let plan = Self.plan(exchange, among: entries)
      // What is in memory is no older than what is on disk.
      switch plan {
      case .serve, .validate: return plan
      case .load, .fail: return nil
      }
    case .later: return nil
    }
  }

  /// The plan, when the disk has been looked at. `body` is called once, perhaps before this returns and else on the
  /// cache's queue, where it must not linger. (A program's own cache may call it anywhere, and more than once or never.)
  func plan(
    for request: URLRequest, fields: CacheFields, policy: URLRequest.CachePolicy, now: Date,
    task: URLSessionDataTask? = nil, then body: @escaping @Sendable (CachePlan) -> Void
  ) {
    if let plan = planNow(for: request, fields: fields, policy: policy, now: now, task: task) { return body(plan) }
    guard let exchange = CacheExchange(request, fields, policy, now), let key = exchange.key else {
      // No URL, or none that can be a key: nothing is stored for it, and what is wrong with it will be seen
      // elsewhere.
      return body(policy == .returnCacheDataDontLoad ? .fail(.resourceUnavailable) : .uncached(request, fields, now))
    }
    if isSubclass {
      let subject = CacheSubject(request: request, task: task)
      let exchange = exchange.of(subject, in: self)
      return find(subject) { found in
        let found = found?.prepared(key: key, now: exchange.requestTime)
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
  /// What a program has stored with a response that is none of HTTP's, as an answer over HTTP.
  fileprivate var storedAsHTTP: StoredResponse {
    let time = origin?.storedTime ?? 0
    let charset = response.textEncodingName.map { "; charset=\($0)" } ?? ""
    let type = response.mimeType.map { (name: "Content-Type", value: $0 + charset) }
    return StoredResponse(
      status: 200, fields: [type, (name: "Content-Length", value: "\(data.count)")].compactMap(\.self),
      requestTime: time, responseTime: time, bodyCount: data.count)
  }
}

extension CacheExchange {
  convenience init?(_ request: URLRequest, _ fields: CacheFields, _ policy: URLRequest.CachePolicy, _ now: Date) {
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

  /// The same with what is stored for it.
  func expecting(_ candidate: CachedURLResponse?, isValidated: Bool, _ fields: CacheFields) -> CacheExchange {
    CacheExchange(
      url: url, request: request, requestTime: requestTime, candidate: candidate, isValidated: isValidated,
      addedFields: fields, subject: subject)
  }

  /// The same, as it is asked of a cache that is a program's own.
  fileprivate func of(_ subject: CacheSubject, in cache: URLCache) -> CacheExchange {
    guard cache.isSubclass else { return self }
    return CacheExchange(url: url, request: request, requestTime: requestTime, subject: subject)
  }
}

extension CacheRequest {
  /// Whether what is stored makes a difference to what is done.
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
  /// A request that cannot be looked up.
  static func uncached(_ request: URLRequest, _ fields: CacheFields, _ now: Date) -> CachePlan {
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
    // RFC 9111 5.1: whoever answers out of a cache says how old the answer is.
    if let age { fields.replace("Age", with: "\(age)") }
    var status = stored.status
    var data = entry.data
    switch form {
    case .whole: break
    case .head: data = Data()
    case .notModified:
      status = 304
      data = Data()
      // RFC 9110 15.4.5: the size of what is not sent would mislead.
      fields.removeAll(named: "Content-Length")
    case .part(let bytes, let range):
      status = 206
      let start = data.startIndex
      // A copy: programs take it that data starts at 0.
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

  /// What `only-if-cached` gets when there is nothing (RFC 9111 5.2.1.7).
  static func gatewayTimeout(_ exchange: CacheExchange) -> CacheAnswer {
    let response = HTTPURLResponse.make(
      url: exchange.url, status: 504, version: "HTTP/1.1", fields: [(name: "Content-Length", value: "0")],
      isDecoded: false)
    return CacheAnswer(response: response, data: Data())
  }
}
