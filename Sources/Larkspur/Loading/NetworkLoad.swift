import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// One request of a load, with all that its stages have prepared. It belongs to the loop.
final class NetworkLoad {
  let request: URLRequest
  let target: LoadTarget

  // The prepared parts, in the order of their preparation.
  var route: SessionEngine.ResolvedRoute?
  var hasFields = false
  var hasCookies = false
  var plan: CachePlan?
  var isPlanned = false
  var body: UploadBody?
  var poolRequest: PoolRequest?

  var additions = RequestComposer.AdditionalFields()
  var caching: CacheExchange?
  /// When the request was looked up in the cache, which counts as the time of sending. `nil` if there is no cache.
  var sendDate: Date?

  /// The response, once its head has arrived.
  var arrival: Arrival?

  init(_ request: URLRequest, to target: LoadTarget) {
    self.request = request
    self.target = target
  }

  /// The proxy that the request goes to in place of the host, or `nil` if it goes to the host or through a tunnel.
  var forwarder: Proxy? { route?.forwarder(toSecure: target.isSecure) }
}

/// A response that has been classified, with the load's next step. It belongs to the loop.
final class Arrival {
  /// The source of the content.
  enum Content {
    case network(Exchange, ContentDecoding?)
    case cache(Data)
  }

  enum Chore {
    case keepCookies
    case call(@Sendable () -> Void)
  }

  let response: HTTPURLResponse
  let content: Content
  var step: TaskMachine.Step
  /// The stored response that is used in place of this one, which is drained.
  var stored: CacheAnswer?
  /// How the content is stored when it is complete.
  var storing: CacheStoring?
  /// How a redirection is stored before it is followed.
  var storingRedirection: CacheStoring?
  /// Calls of the program's storages that must be made before the response is used.
  var chores: [Chore] = []
  /// Whether the rest of the response has been read and thrown away.
  var isDrained = false
  /// Whether the interceptors have decided that the response is delivered.
  var isDecided = false
  /// Whether the cached content has been taken.
  var isTaken = false
  /// When a stored response was found, for the metrics.
  let foundDate: Date?

  init(_ response: HTTPURLResponse, _ content: Content, _ step: TaskMachine.Step, found: Date? = nil) {
    self.response = response
    self.content = content
    self.step = step
    foundDate = found
  }

  /// Whether the rest of the response has to be read before the connection can be given back.
  var isUndrained: Bool {
    guard !isDrained, case .network(let exchange, _) = content else { return false }
    return exchange.isReceiving || storingRedirection != nil
  }

  /// The length of the content in bytes, or -1 if it is not known.
  var contentLength: Int64 {
    switch content {
    case .cache: response.expectedContentLength
    case .network(let exchange, let decoder): decoder != nil ? -1 : Int64(exchange.contentLength ?? -1)
    }
  }
}

/// The effect of a session's settings on a request.
extension SessionCore {
  func trafficClass(of request: URLRequest) -> UInt8 {
    let own = request.own.networkServiceType
    return (own == .default ? settings.networkServiceType : own).trafficClass
  }

  func policy(of request: URLRequest) -> URLRequest.CachePolicy {
    let own = request.cachePolicy
    return own == .useProtocolCachePolicy ? settings.requestCachePolicy : own
  }

  /// Whether the cache has no influence before the request is sent: no field of the request concerns a cache, and
  /// either nothing is stored for the request or the method is one that always goes to the server.
  func isOutsideCache(_ request: URLRequest, _ cache: URLCache, now: Date) -> Bool {
    guard !composer.concernsCache, request.own.fields?.concernCache != true else { return false }
    switch policy(of: request) {
    case .useProtocolCachePolicy, .reloadIgnoringLocalCacheData:
      if request.own.method == "GET" { return cache.holdsNothing(for: request.url, now: now) }
      return !request.isSafe && !cache.isSubclass
    default: return false
    }
  }

  /// Returns the exchange that a plan would have made, for a request that was sent without a plan.
  func lateExchange(for request: URLRequest, _ additions: RequestComposer.AdditionalFields, sent date: Date?)
    -> CacheExchange?
  {
    guard let date else { return nil }
    return CacheExchange(request, composer.fields(of: request, additions), policy(of: request), date)
  }

  /// Returns the additions to a request: cookies, and the fields that a proxy needs.
  ///
  /// - Parameter isRedirected: Whether the request is the result of a redirection.
  func additions(
    of request: URLRequest, by route: SessionEngine.ResolvedRoute, to target: LoadTarget, isRedirected: Bool
  ) -> RequestComposer.AdditionalFields {
    var additions = RequestComposer.AdditionalFields()
    if let jar = cookieStorage, jar.mayHaveCookies, !jar.isSubclass,
      handlesCookies(of: request, isRedirected: isRedirected), let url = request.url
    {
      additions.cookie = jar.cookieField(
        for: url, mainDocument: request.mainDocumentURL, isSafeMethod: request.isSafe,
        isTopLevel: request.isTopLevel, now: Date())
    }
    if route.forwarder(toSecure: target.isSecure) != nil {
      additions.isForwarded = true
      let isGiven = request.own.exactForm != nil && request.own.fields?.firstValue(named: "Proxy-Authorization") != nil
      if !isGiven { additions.proxyAuthorization = route.endpoint.route.proxy?.authorization }
    }
    return additions
  }

  /// Whether the request gets cookies from the storage. A `Cookie` field that the program has set replaces them, as
  /// Apple documents it, except after a redirection, whose response may have set other cookies.
  func handlesCookies(of request: URLRequest, isRedirected: Bool) -> Bool {
    request.httpShouldHandleCookies && settings.shouldSetCookies
      && (isRedirected || request.own.fields?.firstValue(named: "Cookie") == nil)
  }

  /// Stores the cookies that a response sets, in a storage that is not a subclass.
  func keepCookies(of response: HTTPURLResponse, _ request: URLRequest) {
    guard request.httpShouldHandleCookies, let jar = cookieStorage, let url = request.url else { return }
    jar.store(
      setCookieFields: response.fields.values(of: "Set-Cookie"), from: url, mainDocument: request.mainDocumentURL,
      isTopLevel: request.isTopLevel, policy: settings.cookieAcceptPolicy?.wrappedValue, now: Date())
  }

  func poolRequest(
    for request: URLRequest, to target: LoadTarget, by route: SessionEngine.ResolvedRoute,
    _ additions: RequestComposer.AdditionalFields,
    _ body: RequestBody = .none, _ length: RequestWriter.Body = .none, priority: UInt8
  ) throws(URLError) -> PoolRequest {
    let isExact = request.own.exactForm != nil
    if request.own.method == "GET", !isExact {
      // Darwin refuses these requests, too: a server on the way may take the body of a GET for the next request.
      guard case .none = body else {
        throw URLError.make(.dataLengthExceedsMaximum, "a GET request must not have a body", url: request.url)
      }
    }
    var additions = additions
    if length != .none, request.own.method == "POST", !isExact { additions.addsDefaultContentType = true }
    do throws(RequestError) {
      let head = try composer.head(for: request, to: target, cache: route.headCache, body: length, additions: additions)
      var poolRequest = PoolRequest(head, body: body, priority: priority)
      if let exchangeTimeouts { poolRequest.timeouts = exchangeTimeouts }
      // Connections to a proxy that makes the requests itself serve all origins: surplus bytes of one origin must not
      // be taken for the answer of another.
      poolRequest.mayBePipelined =
        (settings.shouldUsePipelining || request.httpShouldUsePipelining)
        && route.forwarder(toSecure: target.isSecure) == nil
      return poolRequest
    } catch {
      throw URLError.make(.badURL, "the request cannot be sent: \(error)", url: request.url)
    }
  }
}
