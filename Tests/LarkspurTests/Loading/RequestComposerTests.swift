import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur
@testable import LarkspurEngine

@Suite struct RequestComposerTests {
  private static let fields: [[String: String]] = [
    [:], ["X-One": "1"], ["X-One": "2"], ["X-One": "1", "User-Agent": "mine"], ["Cookie": "own=1"],
    ["Authorization": "mine"], ["Host": "b.example", "X-One": "1"], ["Content-Length": "7", "X-One": "1"],
    ["Content-Type": "text/plain"], ["Bad Name": "1"],
  ]

  private static func additions(_ change: (inout RequestComposer.AdditionalFields) -> Void)
    -> RequestComposer.AdditionalFields
  {
    var additions = RequestComposer.AdditionalFields()
    change(&additions)
    return additions
  }

  private static var additions: [RequestComposer.AdditionalFields] {
    [
      RequestComposer.AdditionalFields(), additions { $0.cookie = "a=1" }, additions { $0.authorization = "Basic x" },
      additions { $0.proxyAuthorization = "Basic y" },
      additions { $0.conditions = [Field("If-None-Match", "\"t\"")] },
      additions { $0.hasLeftOrigin = true }, additions { $0.addsDefaultContentType = true },
    ]
  }

  private static let configurations: [[String: String]?] = [
    nil, ["X-All": "1"], ["Authorization": "ours", "X-All": "1"], ["Cookie": "ours=1"],
  ]

  private static let url = URL(string: "http://a.example/path")
  /// One shared object, so that a cached head for it can apply.
  private static let target = try? LoadTarget.of(#require(url), after: nil)

  private func head(
    _ composer: RequestComposer, _ fields: [String: String], _ additions: RequestComposer.AdditionalFields,
    cache: HeadCache? = nil,
    method: String = "GET", to other: LoadTarget? = nil
  ) throws -> String? {
    var request = URLRequest(url: try #require(Self.url))
    request.httpMethod = method
    request.allHTTPHeaderFields = fields.isEmpty ? nil : fields
    let target = try other ?? #require(Self.target)
    guard
      let head = try? composer.head(for: request, to: target, cache: cache, body: .none, additions: additions)
    else { return nil }
    return String(decoding: head.bytes, as: UTF8.self)
  }

  /// Framing fields of the configuration are not sent: the body alone determines the framing.
  @Test func framingOfTheConfigurationIsNotSent() throws {
    let composer = RequestComposer(additional: ["content-length": "9", "Transfer-Encoding": "chunked", "X-All": 1])
    let text = try #require(try head(composer, [:], RequestComposer.AdditionalFields()))
    #expect(text.contains("X-All: 1\r\n"))
    #expect(!text.lowercased().contains("content-length") && !text.lowercased().contains("transfer-encoding"))
  }

  /// The head of a request does not depend on earlier requests, nor on cached field bytes. CVE-2015-3236: credentials
  /// of an earlier request were sent with a later one.
  @Test(arguments: configurations.indices) func afterOthers(configuration: Int) throws {
    let additional = Self.configurations[configuration]
    for fields in Self.fields {
      for additions in Self.additions {
        let expected = try head(RequestComposer(additional: additional), fields, additions)
        for others in Self.fields {
          for otherAdditions in Self.additions {
            let (composer, cache) = (RequestComposer(additional: additional), HeadCache())
            for _ in 0..<3 { _ = try head(composer, others, otherAdditions, cache: cache) }
            for _ in 0..<3 { #expect(try head(composer, fields, additions, cache: cache) == expected) }
          }
        }
      }
    }
  }

  /// The fields by which the cache selects a variant are those that are sent, without the cache's own conditions,
  /// fields for proxies and the URL's host.
  @Test(arguments: configurations.indices) func theCacheChoosesByWhatIsSent(configuration: Int) throws {
    let composer = RequestComposer(additional: Self.configurations[configuration])
    for fields in Self.fields {
      for additions in Self.additions {
        var request = URLRequest(url: try #require(URL(string: "http://a.example/path")))
        request.allHTTPHeaderFields = fields
        guard let sent = try head(composer, fields, additions) else { continue }
        let isOthers = ["Host: a.example", "Proxy-Authorization:", "Content-Type: application/x-www", "If-None-Match:"]
        let lines = sent.split(separator: "\r\n").dropFirst().map(String.init)
        let framing = composer.fields(of: request, additions).map { "\($0.name): \($0.value)" }
        #expect(
          Set(framing.filter { !$0.hasPrefix("Content-Length") })
            == Set(lines.filter { line in !isOthers.contains { line.hasPrefix($0) } }))
      }
    }
  }

  @Test func whatIsSent() throws {
    let composer = RequestComposer(additional: ["X-All": "1", "Cookie": "ours=1"])
    let lines = try head(composer, ["X-One": "1", "Accept": "text/plain"], Self.additions { $0.cookie = "a=1" })?
      .split(separator: "\r\n").filter { !$0.hasPrefix("User-Agent") && !$0.hasPrefix("Accept-Language") }
    #expect(
      lines == [
        "GET /path HTTP/1.1", "Host: a.example", "Accept: text/plain", "X-One: 1", "X-All: 1",
        "Accept-Encoding: gzip, deflate", "Cookie: a=1",
      ])
  }

  /// `Proxy-Authorization` is sent to a forwarding proxy only, and credentials that the session found take precedence.
  /// CVE-2023-32681: the field was sent to the origin through a tunnel.
  @Test(arguments: [
    ([:], ["proxy-authorization": "all"], "all"),
    (["Proxy-Authorization": "own"], ["Proxy-Authorization": "all"], "own"),
    (["Proxy-Authorization": "own"], [:], "own"),
  ])
  func credentialsForProxies(fields: [String: String], additional: [String: String], sent: String) throws {
    let composer = RequestComposer(additional: additional)
    for (additions, expected) in [
      (RequestComposer.AdditionalFields(), nil), (Self.additions { $0.isForwarded = true }, sent),
      (
        Self.additions {
          $0.proxyAuthorization = "found"
          $0.isForwarded = true
        }, "found"
      ),
    ] {
      for cache in [nil, HeadCache()] {
        for _ in 0..<3 {
          let lines = try #require(try head(composer, fields, additions, cache: cache)).split(separator: "\r\n")
          let values = lines.filter { $0.lowercased().hasPrefix("proxy-authorization: ") }.map { $0.dropFirst(21) }
          #expect(values == (expected.map { [$0[...]] } ?? []))
        }
      }
    }
  }

  /// A cached head is used only for its target and method, and only for a request without fields of its own.
  @Test func aKnownHeadIsForOneTarget() throws {
    let (composer, cache) = (RequestComposer(additional: nil), HeadCache())
    let other = try LoadTarget(try #require(URL(string: "http://a.example/other")))
    let none = RequestComposer.AdditionalFields()
    #expect(try cache.bareHead(to: #require(Self.target)) == nil)
    for _ in 0..<2 {
      _ = try head(composer, [:], none, cache: cache)
      #expect(try cache.bareHead(to: #require(Self.target)) != nil)
      let cookie = try head(composer, [:], Self.additions { $0.cookie = "a=1" }, cache: cache)
      #expect(cookie?.contains("Cookie: a=1\r\n") == true)
      let forwarded = try head(composer, [:], Self.additions { $0.isForwarded = true }, cache: cache)
      #expect(forwarded?.hasPrefix("GET http://a.example/path ") == true)
      #expect(try head(composer, [:], none, cache: cache)?.hasPrefix("GET /path HTTP/1.1\r\n") == true)
      #expect(try head(composer, [:], none, cache: cache, to: other)?.hasPrefix("GET /other HTTP/1.1\r\n") == true)
      #expect(try head(composer, [:], none, cache: cache, method: "HEAD")?.hasPrefix("HEAD /path ") == true)
      #expect(try head(composer, ["X-One": "1"], none, cache: cache)?.contains("X-One: 1\r\n") == true)
    }
  }

  /// The `Host` of the configuration is not sent once the request has left its original origin.
  @Test func aHostOfTheConfigurations() throws {
    let composer = RequestComposer(additional: ["Host": "all.example"])
    let texts = try [[:], ["Host": "own.example"]].map { try head(composer, $0, .init()) ?? "" }
    #expect(texts[0].contains("\r\nHost: all.example\r\n") && texts[1].contains("\r\nHost: own.example\r\n"))
    let elsewhere = try #require(try head(composer, [:], Self.additions { $0.hasLeftOrigin = true }))
    #expect(elsewhere.contains("\r\nHost: a.example\r\n") && !elsewhere.contains("all.example"))
  }

  /// A request with `Range` asks for the `identity` coding, unless the program sets `Accept-Encoding`.
  @Test(arguments: [
    ([:], [:], "gzip, deflate"), (["range": "bytes=5-"], [:], "identity"),
    (["Range": "bytes=5-", "Accept-Encoding": "gzip"], [:], "gzip"),
    (["Range": "bytes=5-"], ["accept-encoding": "deflate"], "deflate"), ([:], ["Range": "bytes=5-"], "identity"),
    (["Accept-Encoding": "gzip"], ["Range": "bytes=5-"], "gzip"),
  ])
  func theCodingOfParts(fields: [String: String], additional: [String: String], coding: String) throws {
    let composer = RequestComposer(additional: additional)
    for cache in [nil, HeadCache()] {
      for _ in 0..<3 {
        let lines = try head(composer, fields, .init(), cache: cache)?.split(separator: "\r\n") ?? []
        let codings = lines.filter { $0.lowercased().hasPrefix("accept-encoding: ") }.map { $0.dropFirst(17) }
        #expect(codings == [coding[...]])
      }
    }
  }

  @Test func languages() {
    #expect(RequestComposer.acceptLanguage([]) == "en" && RequestComposer.acceptLanguage(["en-001"]) == "en")
    #expect(RequestComposer.acceptLanguage(["de-AT", "en-001"]) == "de-AT, en;q=0.8")
    #expect(RequestComposer.acceptLanguage(["en-001", "en", "de"]) == "en, de;q=0.8")
  }

  /// Codings that the session cannot decode are removed from the configuration's `Accept-Encoding`. A request's own
  /// field is sent unchanged, since the program then decodes itself.
  @Test(arguments: [
    ("br;q=1.0, gzip;q=0.9, deflate;q=0.8", "gzip;q=0.9, deflate;q=0.8"), ("gzip", "gzip"), ("br", "identity"),
    ("zstd, *", "identity"), ("GZIP , br", "GZIP"),
    ("br, identity;q=0", "identity"),
  ])
  func codingsThatCannotBeDecoded(offer: String, sent: String) throws {
    let composer = RequestComposer(additional: ["accept-encoding": offer])
    let head = try #require(try head(composer, [:], RequestComposer.AdditionalFields()))
    #expect(head.contains("\r\naccept-encoding: \(sent)\r\n"))
    let own = try #require(try self.head(composer, ["Accept-Encoding": "br"], RequestComposer.AdditionalFields()))
    #expect(own.contains("\r\nAccept-Encoding: br\r\n"))
  }

  @Test func foldedValues() throws {
    let head = try head(RequestComposer(additional: nil), ["X-One": "a\r\n\tb"], RequestComposer.AdditionalFields())
    #expect(try #require(head).contains("\r\nX-One: a \tb\r\n"))
    let common = try self.head(
      RequestComposer(additional: ["X-Two": "a\r\n b"]), [:], RequestComposer.AdditionalFields())
    #expect(try #require(common).contains("\r\nX-Two: a  b\r\n"))
    #expect(
      try self.head(RequestComposer(additional: nil), ["X-One": "a\r\nb: c"], RequestComposer.AdditionalFields()) == nil
    )
  }
}
