import Foundation
import LarkspurTestServer
import Synchronization
import Testing

@testable import Larkspur

/// Tests a session with a cache, from the caller to the server and back.
@Suite struct CacheTaskTests {
  private let fixture: CacheFixture

  init() throws { fixture = try CacheFixture() }

  // MARK: - Conditions

  /// If the request carries its own condition, the caller gets the server's answer, including a 304.
  @Test func aConditionOfTheCallers() async throws {
    fixture.serve("/a", ["ETag": "\"tag\"", "Cache-Control": "no-cache"])
    let answer = try await fixture.load("/a", ["If-None-Match": "\"tag\""])
    #expect(answer == .init(304, ""))
    #expect(fixture.latest?.fields["If-None-Match"] == "\"tag\"")
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    // The caller still gets the 304 when the cache holds an entry that needs validation.
    #expect(try await fixture.load("/a", ["If-None-Match": "\"tag\""]) == .init(304, ""))
    #expect(try await fixture.load("/a", ["If-None-Match": "\"other\""]) == .init(200, "v2"))
    #expect(fixture.requests == 4)
  }

  /// The cache adds a condition of its own, and the caller gets the stored body in place of the 304.
  @Test func aConditionOfTheCaches() async throws {
    fixture.serve("/a", ["ETag": "\"tag\"", "Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    fixture.clock.advance(seconds: 20)
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(fixture.latest?.fields["If-None-Match"] == "\"tag\"")
    #expect(fixture.requests == 2)
    // The 304 made the entry fresh again.
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(fixture.requests == 2)
  }

  // MARK: - Methods

  @Test func headIsAnsweredFromGet() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    let head = try await fixture.load("/a", method: "HEAD")
    #expect(head == .init(200, ""))
    #expect(head.fields["cache-control"] == "max-age=10")
    #expect(fixture.requests == 1)
    // GET is not answered from a stored HEAD response.
    fixture.serve("/b", ["Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/b", method: "HEAD").status == 200)
    #expect(try await fixture.load("/b").status == 200)
    #expect(fixture.requests == 3)
  }

  @Test(arguments: [(200, true), (303, true), (404, false), (500, false)])
  func postInvalidates(status: Int, isInvalidated: Bool) async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    fixture.serve("/b", ["Cache-Control": "max-age=10"])
    fixture.server.route("POST", "/a") { _ in TestServer.Response(status: status, fields: ["Content-Location": "/b"]) }
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(try await fixture.load("/b") == .init(200, "v1"))
    _ = try await fixture.load("/a", method: "POST")
    let next = isInvalidated ? "v2" : "v1"
    #expect(try await fixture.load("/a") == .init(200, next))
    #expect(try await fixture.load("/b") == .init(200, next))
  }

  /// `Content-Location` with characters that a URL does not allow invalidates the URL in its encoded form.
  @Test func anInvalidReferenceInvalidates() async throws {
    fixture.serve("/a%20%5B1%5D", ["Cache-Control": "max-age=10"])
    fixture.server.route("POST", "/b") { _ in TestServer.Response(fields: ["Content-Location": "/a%20[1]"]) }
    #expect(try await fixture.load("/a%20%5B1%5D") == .init(200, "v1"))
    #expect(try await fixture.load("/a%20%5B1%5D") == .init(200, "v1"))
    _ = try await fixture.load("/b", method: "POST")
    #expect(try await fixture.load("/a%20%5B1%5D") == .init(200, "v2"))
  }

  // MARK: - Variants and parts

  @Test func variants() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10", "Vary": "X-Kind"])
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "v1"))
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "v2"))
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "v1"))
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "v2"))
    #expect(try await fixture.load("/a") == .init(200, "v3"))
    #expect(fixture.requests == 3)
    fixture.serve("/any", ["Cache-Control": "max-age=10", "Vary": "*"])
    #expect(try await fixture.load("/any") == .init(200, "v1"))
    #expect(try await fixture.load("/any") == .init(200, "v2"))
  }

  /// A server that begins to distinguish requests when it confirms a stored response: other requests no longer get the
  /// response.
  @Test(arguments: ["X-Kind", "*"], ["GET", "HEAD"]) func variantsFromAValidation(vary: String, method: String)
    async throws
  {
    fixture.server.route("GET", "/a") { request in
      let kind = request.fields["X-Kind"] ?? ""
      let tag = "\"\(kind)\""
      var fields: TestServer.Fields = ["ETag": tag, "Cache-Control": "max-age=0"]
      guard request.fields["If-None-Match"] == tag || request.method == "HEAD" else {
        return TestServer.Response(fields: fields, body: .text(kind))
      }
      fields["Cache-Control"] = "max-age=60"
      fields["Vary"] = vary
      return TestServer.Response(status: request.method == "HEAD" ? 200 : 304, fields: fields)
    }
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "one"))
    _ = try await fixture.load("/a", ["X-Kind": "one"], method: method)
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "two"))
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "one"))
  }

  /// With a date as its only validator, the stored response may be that of another request: it is loaded again.
  @Test func aValidationByDateThatVaries() async throws {
    let date = "Thu, 01 Jan 1970 00:00:00 GMT"
    fixture.server.route("GET", "/a") { request in
      var fields: TestServer.Fields = ["Last-Modified": date, "Cache-Control": "no-cache"]
      if request.fields["If-Modified-Since"] != nil {
        fields["Vary"] = "X-Kind"
        return TestServer.Response(status: 304, fields: fields)
      }
      return TestServer.Response(fields: fields, body: .text(request.fields["X-Kind"] ?? ""))
    }
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "one"))
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "two"))
    #expect(fixture.requests == 3)
  }

  /// The caller's own condition: the answer is the server's, and the stored response follows it.
  @Test func variantsFromAConditionOfTheCallers() async throws {
    fixture.server.route("GET", "/a") { request in
      guard request.fields["If-None-Match"] != nil else {
        let fields: TestServer.Fields = ["ETag": "\"tag\"", "Cache-Control": "max-age=60"]
        return TestServer.Response(fields: fields, body: .text(request.fields["X-Kind"] ?? ""))
      }
      return TestServer.Response(status: 304, fields: ["ETag": "\"tag\"", "Vary": "*"])
    }
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "one"))
    #expect(try await fixture.load("/a", ["If-None-Match": "\"x\""]).status == 304)
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "two"))
  }

  /// Two sessions with different credentials share a cache and do not get each other's responses.
  @Test(arguments: ["Authorization", "Cookie"]) func usersOfOneCache(name: String) async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10", "Vary": "Authorization, Cookie"])
    let other = try CacheFixture(cache: fixture.cache, clock: fixture.clock) {
      $0.httpAdditionalHeaders = [name: "other"]
    }
    let url = try fixture.url("/a")
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(try await String(decoding: other.session.data(from: url).0, as: UTF8.self) == "v2")
    #expect(try await fixture.load("/a") == .init(200, "v1"))
  }

  /// Two servers that get requests with one `Host` value have separate entries.
  @Test func oneHostOfTwoServers() async throws {
    let other = try CacheFixture(cache: fixture.cache, clock: fixture.clock)
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    other.serve("/a", ["Cache-Control": "max-age=10"])
    for some in [fixture, other] {
      for _ in 0..<2 { #expect(try await some.load("/a", ["Host": "a.example"]) == .init(200, "v1")) }
      #expect(some.requests == 1)
    }
  }

  /// The `Host` field of a request is part of the cache key.
  @Test func hosts() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/a", ["Host": "a.example"]) == .init(200, "v1"))
    #expect(try await fixture.load("/a", ["Host": "b.example"]) == .init(200, "v2"))
    #expect(try await fixture.load("/a") == .init(200, "v3"))
    #expect(try await fixture.load("/a", ["Host": "A.example:80"]) == .init(200, "v1"))
    var request = URLRequest(url: try fixture.url("/a"))
    request.setValue("b.example", forHTTPHeaderField: "Host")
    #expect(fixture.cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) } == "v2")
    fixture.server.route("POST", "/a") { _ in TestServer.Response(status: 200) }
    _ = try await fixture.load("/a", ["Host": "b.example"], method: "POST")
    #expect(try await fixture.load("/a", ["Host": "b.example"]) == .init(200, "v4"))
    #expect(try await fixture.load("/a", ["Host": "a.example"]) == .init(200, "v1"))
  }

  /// A request that sets `Accept-Encoding` itself gets the coded bytes; one that does not gets the decoded content.
  @Test func codedForOneAndNotForTheOther() async throws {
    let gzip = try #require(Data(base64Encoded: "H4sIAAAAAAAAA8vPBgBH3dx5AgAAAA=="))
    fixture.server.route("GET", "/a") { _ in
      TestServer.Response(
        fields: ["Cache-Control": "max-age=10", "Content-Encoding": "gzip"], body: .bytes(Array(gzip)))
    }
    var coded = URLRequest(url: try fixture.url("/a"))
    coded.setValue("gzip", forHTTPHeaderField: "Accept-Encoding")
    for _ in 0..<2 {
      #expect(try await fixture.session.data(for: coded).0 == gzip)
      await fixture.settle()
      #expect(try await fixture.load("/a") == .init(200, "ok"))
      #expect(try await fixture.load("/a") == .init(200, "ok"))
    }
    #expect(fixture.requests == 4)
  }

  @Test func partsOfAWhole() async throws {
    let whole = "0123456789"
    fixture.server.route("GET", "/a") { _ in
      TestServer.Response(
        fields: ["Cache-Control": "max-age=10", "ETag": "\"tag\"", "Accept-Ranges": "bytes"], body: .text(whole))
    }
    #expect(try await fixture.load("/a") == .init(200, whole))
    let part = try await fixture.load("/a", ["Range": "bytes=2-4"])
    #expect(part == .init(206, "234"))
    #expect(part.fields["content-range"] == "bytes 2-4/10")
    #expect(fixture.requests == 1)
  }

  @Test func aWholeOfParts() async throws {
    let whole = Array("0123456789".utf8)
    fixture.server.route("GET", "/a") { request in
      let isFirst = request.fields["Range"] == "bytes=0-4"
      return TestServer.Response(
        status: 206,
        fields: [
          "Cache-Control": "max-age=10", "ETag": "\"tag\"", "Content-Range": isFirst ? "bytes 0-4/10" : "bytes 5-9/10",
        ], body: .bytes(Array(isFirst ? whole[..<5] : whole[5...])))
    }
    #expect(try await fixture.load("/a", ["Range": "bytes=0-4"]) == .init(206, "01234"))
    #expect(try await fixture.load("/a", ["Range": "bytes=0-4"]) == .init(206, "01234"))
    #expect(try await fixture.load("/a", ["Range": "bytes=5-9"]) == .init(206, "56789"))
    #expect(fixture.requests == 2)
    #expect(try await fixture.load("/a") == .init(200, "0123456789"))
    #expect(fixture.requests == 2)
  }

  // MARK: - Policies

  @Test func onlyIfCached() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/a", ["Cache-Control": "only-if-cached"]).status == 504)
    #expect(fixture.requests == 0)
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(try await fixture.load("/a", ["Cache-Control": "only-if-cached"]) == .init(200, "v1"))
    #expect(fixture.requests == 1)
  }

  /// Fields of the configuration count for the cache as those of a request do, even if nothing is stored.
  @Test func fieldsOfTheConfiguration() async throws {
    let fixture = try CacheFixture { $0.httpAdditionalHeaders = ["Cache-Control": "only-if-cached"] }
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/a").status == 504)
    #expect(fixture.requests == 0)
  }

  /// With a `Host` of the program's own a request has a key of its own: it neither gets the other's response nor misses
  /// its own.
  @Test func aHostOfTheProgramsOwn() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(try await fixture.load("/a", ["Host": "other.example"]) == .init(200, "v2"))
    #expect(try await fixture.load("/a", ["Host": "other.example"]) == .init(200, "v2"))
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(fixture.requests == 2)
  }

  enum LoadOutcome: Sendable, CustomTestStringConvertible {
    /// The response came from the cache; nothing was sent.
    case stored
    /// The server was asked to validate the stored response.
    case validated
    /// The server got a request without a condition.
    case loaded
    case failed

    var testDescription: String { "\(self)" }
  }

  struct PolicyCase: Sendable {
    var policy: URLRequest.CachePolicy
    var none: LoadOutcome
    var fresh: LoadOutcome
    var stale: LoadOutcome
  }

  /// Tests every cache policy against an empty cache, a fresh entry and a stale entry. `reloadIgnoringCacheData` is
  /// another name of `reloadIgnoringLocalCacheData`.
  @Test(arguments: [
    PolicyCase(policy: .useProtocolCachePolicy, none: .loaded, fresh: .stored, stale: .validated),
    PolicyCase(policy: .reloadIgnoringLocalCacheData, none: .loaded, fresh: .loaded, stale: .loaded),
    PolicyCase(policy: .reloadIgnoringCacheData, none: .loaded, fresh: .loaded, stale: .loaded),
    PolicyCase(policy: .reloadIgnoringLocalAndRemoteCacheData, none: .loaded, fresh: .loaded, stale: .loaded),
    PolicyCase(policy: .returnCacheDataElseLoad, none: .loaded, fresh: .stored, stale: .stored),
    PolicyCase(policy: .returnCacheDataDontLoad, none: .failed, fresh: .stored, stale: .stored),
    PolicyCase(policy: .reloadRevalidatingCacheData, none: .loaded, fresh: .validated, stale: .validated),
  ])
  func policies(_ row: PolicyCase) async throws {
    for (age, expected) in [(nil, row.none), (5.0, row.fresh), (50.0, row.stale)] {
      for isOfSession in [false, true] {
        let fixture = try CacheFixture { if isOfSession { $0.requestCachePolicy = row.policy } }
        fixture.serve("/a", ["ETag": "\"tag\"", "Cache-Control": "max-age=10"])
        if let age {
          // Stores an entry. A request's policy overrides the session's only if it is not `useProtocolCachePolicy`.
          #expect(try await fixture.load("/a", policy: .reloadIgnoringLocalCacheData) == .init(200, "v1"))
          fixture.clock.advance(seconds: age)
        }
        let before = fixture.requests
        let ending: LoadOutcome
        do {
          let loaded = try await fixture.load("/a", policy: isOfSession ? .useProtocolCachePolicy : row.policy)
          #expect(loaded.status == 200)
          if fixture.requests == before {
            ending = .stored
          } else {
            ending = fixture.latest?.fields["If-None-Match"] == nil ? .loaded : .validated
          }
          #expect(loaded.text == (age == nil || ending != .loaded ? "v1" : "v2"))
        } catch let error as URLError {
          #expect(error.code == .resourceUnavailable)
          ending = .failed
        }
        #expect(ending == expected, "age \(age.map { "\($0)" } ?? "none"), of the session: \(isOfSession)")
        if row.policy == .reloadIgnoringLocalAndRemoteCacheData {
          #expect(fixture.latest?.fields["Cache-Control"] == "no-cache")
        }
      }
    }
  }

  // MARK: - Redirections

  @Test func redirectionsOutOfTheCache() async throws {
    fixture.server.route("GET", "/from") { _ in
      TestServer.Response(status: 301, fields: ["Location": "/to", "Cache-Control": "max-age=10"])
    }
    fixture.serve("/to", ["Cache-Control": "no-store"])
    #expect(try await fixture.load("/from") == .init(200, "v1"))
    #expect(fixture.requests == 2)
    #expect(try await fixture.load("/from") == .init(200, "v2"))
    #expect(fixture.server.requests.map(\.path) == ["/from", "/to", "/to"])
    // The delegate decides about a redirection from the cache, too.
    #expect(try await fixture.load("/from", delegate: Refusing()).status == 301)
    #expect(fixture.requests == 3)
  }

  private final class Refusing: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }
  }

  /// A redirection is stored with its decoded content; a redirection whose content is cut short is not stored.
  @Test(arguments: [false, true]) func aRedirectionWithContent(isCutShort: Bool) async throws {
    let hello = try #require(Data(base64Encoded: "H4sIAAAAAAAC/8tIzcnJBwCGphA2BQAAAA=="))
    let body = Array(isCutShort ? hello.dropLast(9) : hello)
    fixture.server.route("GET", "/from") { _ in
      TestServer.Response(
        status: 301, fields: ["Location": "/get", "Cache-Control": "max-age=10", "Content-Encoding": "gzip"],
        body: .bytes(body))
    }
    #expect(try await fixture.load("/from").status == 200)
    #expect(fixture.requests == 2)
    if isCutShort {
      #expect(fixture.cache.currentMemoryUsage == 0)
    } else {
      #expect(try await fixture.load("/from", delegate: Refusing()) == .init(301, "hello"))
      #expect(fixture.requests == 2)
    }
  }

  // MARK: - Stale responses

  @Test func staleWhileRevalidate() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10, stale-while-revalidate=60"])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    fixture.clock.advance(seconds: 20)
    // The stale response is delivered at once, and a background revalidation fetches a new one for the next caller.
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(fixture.requests == 2)
    #expect(try await fixture.load("/a") == .init(200, "v2"))
    #expect(fixture.requests == 2)
    fixture.clock.advance(seconds: 100)
    #expect(try await fixture.load("/a") == .init(200, "v3"))
    #expect(fixture.requests == 3)
  }

  /// A background revalidation calls no delegate method and is not in the session's list of tasks, since the program
  /// did not create it.
  @Test func aRevalidationCallsNoDelegate() async throws {
    let recorder = SessionRecorder()
    let fixture = try CacheFixture(delegate: recorder)
    let (arrived, proceed) = (TestServer.Signal(), TestServer.Signal())
    let fields: TestServer.Fields = ["Cache-Control": "max-age=10, stale-while-revalidate=60"]
    fixture.serve("/a", fields)
    let url = try fixture.url("/a")
    let first = fixture.session.dataTask(with: url)
    first.resume()
    await recorder.waitForEnds(1)
    await fixture.settle()
    fixture.server.route(
      "GET", "/a",
      script: [
        .fire(arrived), .wait(proceed),
        .respond(TestServer.Response(status: 302, fields: ["Location": "/b", "Cache-Control": "max-age=10"])),
      ])
    fixture.clock.advance(seconds: 20)
    let second = fixture.session.dataTask(with: url)
    second.resume()
    await recorder.waitForEnds(2)
    try await arrived.wait()
    #expect(await fixture.session.allTasks.isEmpty)
    // A second background revalidation does not start while one runs.
    let third = fixture.session.dataTask(with: url)
    third.resume()
    await recorder.waitForEnds(3)
    #expect(fixture.session.core.tasks.count { $0.state == .running } == 1)
    proceed.fire()
    await fixture.settle()
    fixture.session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    let known = [first, second, third].map(\.taskIdentifier)
    #expect(recorder.events.filter { if case .created = $0 { true } else { false } } == known.map { .created($0) })
    #expect(recorder.metrics.count == 3)
    // The background revalidation did not follow the redirection, since the delegate was not asked.
    #expect(!recorder.events.contains { if case .redirected = $0 { true } else { false } })
    #expect(fixture.requests == 2)
  }

  /// After a background revalidation has failed, the next request starts another.
  @Test func aRevalidationThatFailed() async throws {
    let fields: TestServer.Fields = ["Cache-Control": "max-age=10, stale-while-revalidate=60"]
    fixture.serve("/a", fields)
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    fixture.clock.advance(seconds: 20)
    fixture.server.route("GET", "/a", script: [.reset])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    fixture.server.route("GET", "/a") { _ in TestServer.Response(fields: fields, body: .text("v2")) }
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(try await fixture.load("/a") == .init(200, "v2"))
  }

  @Test(arguments: [true, false]) func staleIfError(isReset: Bool) async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10, stale-if-error=60"])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    if isReset {
      fixture.server.route("GET", "/a", script: [.reset])
    } else {
      fixture.server.route("GET", "/a") { _ in TestServer.Response(status: 503) }
    }
    fixture.clock.advance(seconds: 20)
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    #expect(fixture.requests >= 2)
    fixture.clock.advance(seconds: 100)
    if isReset {
      await #expect(throws: URLError.self) { try await fixture.load("/a") }
    } else {
      #expect(try await fixture.load("/a").status == 503)
    }
  }

  // MARK: - Order of operations

  /// A lookup waits for the stores that precede it, even if the cache is slow.
  @Test func partsOneAfterAnother() async throws {
    fixture.server.route("GET", "/a") { request in
      let isFirst = request.fields["Range"] == "bytes=0-4"
      let fields: TestServer.Fields = [
        "Cache-Control": "max-age=100", "ETag": "\"tag\"", "Content-Range": isFirst ? "bytes 0-4/10" : "bytes 5-9/10",
      ]
      return TestServer.Response(status: 206, fields: fields, body: .text(isFirst ? "01234" : "56789"))
    }
    func request(_ range: String?, _ policy: URLRequest.CachePolicy) throws -> URLRequest {
      var request = URLRequest(url: try fixture.url("/a"), cachePolicy: policy)
      request.setValue(range, forHTTPHeaderField: "Range")
      return request
    }
    let gate = DispatchSemaphore(value: 0)
    fixture.cache.core.run { gate.wait() }
    _ = try await fixture.session.data(for: try request("bytes=0-4", .useProtocolCachePolicy))
    async let part = fixture.session.data(for: try request("bytes=0-4", .returnCacheDataDontLoad)).0
    gate.signal()
    #expect(try await part == Data("01234".utf8))
    let secondGate = DispatchSemaphore(value: 0)
    fixture.cache.core.run { secondGate.wait() }
    _ = try await fixture.session.data(for: try request("bytes=5-9", .useProtocolCachePolicy))
    async let whole = fixture.session.data(for: try request(nil, .returnCacheDataDontLoad)).0
    secondGate.signal()
    #expect(try await whole == Data("0123456789".utf8))
    #expect(fixture.requests == 2)
  }

  @Test func aConditionalRequestAndTheNextRequest() async throws {
    fixture.serve("/a", ["Cache-Control": "max-age=10", "ETag": "\"tag\""])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
    fixture.clock.advance(seconds: 20)
    let gate = DispatchSemaphore(value: 0)
    fixture.cache.core.run { gate.wait() }
    var request = URLRequest(url: try fixture.url("/a"))
    request.setValue("\"tag\"", forHTTPHeaderField: "If-None-Match")
    let answer = try await fixture.session.data(for: request).1 as? HTTPURLResponse
    #expect(answer?.statusCode == 304)
    async let next = fixture.session.data(from: try fixture.url("/a")).0
    gate.signal()
    #expect(try await next == Data("v1".utf8))
    #expect(fixture.requests == 2)
  }

  /// RFC 9111 4.4: a response to a request sent before an invalidation is not stored, since it may be as old as the
  /// removed entry.
  @Test func anAnswerThatWasOnItsWay() async throws {
    let (arrived, proceed) = (TestServer.Signal(), TestServer.Signal())
    let fields: TestServer.Fields = ["Cache-Control": "max-age=100"]
    fixture.server.route(
      "GET", "/a",
      script: [.fire(arrived), .wait(proceed), .respond(TestServer.Response(fields: fields, body: .text("old")))])
    fixture.server.route("PUT", "/a") { _ in TestServer.Response(status: 204) }
    async let old = fixture.load("/a")
    try await arrived.wait()
    fixture.clock.advance(seconds: 1)
    var put = URLRequest(url: try fixture.url("/a"))
    put.httpMethod = "PUT"
    #expect((try await fixture.session.data(for: put).1 as? HTTPURLResponse)?.statusCode == 204)
    proceed.fire()
    #expect(try await old == .init(200, "old"))
    fixture.server.route("GET", "/a") { _ in TestServer.Response(fields: fields, body: .text("new")) }
    for _ in 0..<2 { #expect(try await fixture.load("/a") == .init(200, "new")) }
    #expect(fixture.requests == 3)
  }

  /// A response whose head arrived before an invalidation, and whose body arrived after it, is not stored.
  @Test(arguments: [true, false]) func anAnswerThatWasHalfThere(isInvalidated: Bool) async throws {
    let (arrived, proceed) = (TestServer.Signal(), TestServer.Signal())
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 3\r\n\r\no"
    fixture.server.route("GET", "/a", script: [.send(head), .fire(arrived), .wait(proceed), .send("ld")])
    fixture.server.route("PUT", "/a") { _ in TestServer.Response(status: 204) }
    let (bytes, _) = try await fixture.session.bytes(from: try fixture.url("/a"))
    async let old = bytes.reduce(into: Data()) { $0.append($1) }
    try await arrived.wait()
    fixture.clock.advance(seconds: 1)
    var put = URLRequest(url: try fixture.url("/a"))
    put.httpMethod = "PUT"
    if isInvalidated { _ = try await fixture.session.data(for: put) }
    proceed.fire()
    #expect(try await old == Data("old".utf8))
    await fixture.settle()
    put.httpMethod = "GET"
    #expect((fixture.cache.cachedResponse(for: put) == nil) == isInvalidated)
  }

  /// A removal also covers a part that is still waiting to be combined with others.
  @Test func aPartAndARemoval() async throws {
    let url = try fixture.url("/a")
    fixture.server.route("GET", "/a") { _ in
      let fields: TestServer.Fields = [
        "Cache-Control": "max-age=100", "ETag": "\"tag\"", "Content-Range": "bytes 0-4/10",
      ]
      return TestServer.Response(status: 206, fields: fields, body: .text("01234"))
    }
    var request = URLRequest(url: url)
    request.setValue("bytes=0-4", forHTTPHeaderField: "Range")
    let gate = DispatchSemaphore(value: 0)
    fixture.cache.core.run { gate.wait() }
    _ = try await fixture.session.data(for: request)
    fixture.cache.core.removeAll()
    gate.signal()
    fixture.cache.core.settle()
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  /// The cache records `invalidatedMax` invalidated keys. Beyond that, no response to an earlier request is stored.
  @Test func manyInvalidations() throws {
    let start = fixture.clock.now.timeIntervalSince1970
    func stored(_ key: String, requested seconds: Double) -> Bool {
      let cache = fixture.cache.core
      cache.store(entry(key, "x").prepared(key: key, now: start), requested: start + seconds, now: start)
      defer { cache.remove(key) }
      if case .inMemory(let found) = cache.find({ key }, now: start) { return !found.isEmpty }
      return false
    }
    for index in 0...CacheCore.invalidatedMax { fixture.cache.core.invalidate("k\(index)", now: start + Double(index)) }
    let last = Double(CacheCore.invalidatedMax)
    // The clock was set back behind the invalidations, so their order is unknown, and the response is stored.
    #expect(stored("k5", requested: 10))
    fixture.clock.advance(seconds: last)
    #expect(!stored("k5", requested: 10) && !stored("other", requested: 10))
    #expect(stored("k5", requested: last) && stored("other", requested: last))
  }
}
