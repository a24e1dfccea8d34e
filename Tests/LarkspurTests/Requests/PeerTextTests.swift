import Foundation
import LarkspurHTTP
import TestKit
import Testing

@testable import Larkspur

/// Every URL made of a peer's text is accepted by Foundation unchanged, without a second percent-encoding.
@Suite struct PeerTextTests {
  /// Tests every byte value at each marked position.
  @Test(arguments: [
    "http://us*er:pass@host/", "http://user:pa*ss@host/", "http://h*ost/", "http://host*/", "http://*host/",
    "http://[::*1]/", "http://[fe80::1%25z*]/", "http://[fe80::1%z*]/", "http://[::1]*/", "http://host:*/",
    "http://host:8*0/",
    "/a*b", "a*b/c", "*", "?a*b", "#a*b", "/a%4*", "/a%*1", "//*", "//host*", "moc*k:a", "mock:*a", "mock://*/",
    "http:*",
    "http://b\u{fc}*cher.example/",
  ])
  func everyByte(template: String) throws {
    let base = try #require(URL(string: "http://user:x%5B@base.example/a/%5B?b%5D#c%5E"))
    let parts = template.split(separator: "*", omittingEmptySubsequences: false).map { Array($0.utf8) }
    for byte in UInt8.min...UInt8.max {
      let bytes = parts[0] + [byte] + parts[1]
      guard let text = LocationValue.target(bytes, from: base.absoluteString) else {
        #expect(template == "*" && byte <= 0x20)
        continue
      }
      let url = URL(peerText: bytes, at: base, inheritsFragment: true)
      if text.utf8.allSatisfy({ $0 < 0x80 }) {
        #expect(url?.absoluteString == text, "\(template) with \(byte)")
      } else {
        #expect(url != nil, "\(template) with \(byte)")
      }
      // Parsing the result again does not change it.
      if let again = url?.absoluteString {
        #expect(URL(peerText: Array(again.utf8), at: base, inheritsFragment: true)?.absoluteString == again)
      }
    }
  }

  @Test func mixtures() throws {
    var random = SeededGenerator(for: "text of peers")
    let pieces = [
      "http:", "https:", "mock:", "//", "/", "?", "#", "[", "]", "@", ":", "%", "%41", "%5B", "%zz", "a", "8", ".",
      "..", "::1",
      "fe80::1%lo", " ", "\\", "^", "|", "\u{fc}", "\u{fffd}", "+", "&",
    ]
    let base = try #require(URL(string: "http://base.example/a/b?c#d"))
    for _ in 0..<3000 {
      let text = (0..<Int.random(in: 1...9, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
        .joined()
      guard LocationValue.reference(text) != nil else { continue }
      let url = URL(peerText: Array(text.utf8), at: base)
      #expect(url != nil, "\(text)")
      guard let once = url?.absoluteString else { continue }
      #expect(URL(string: once, encodingInvalidCharacters: false) != nil, "\(text)")
      #expect(URL(peerText: Array(once.utf8), at: base)?.absoluteString == once, "\(text)")
    }
  }

  @Test func withoutABase() throws {
    #expect(URL(peerText: Array("http://a.example/[%5B".utf8))?.absoluteString == "http://a.example/%5B%5B")
    #expect(URL(peerText: Array("/[%5B".utf8))?.absoluteString == "/%5B%5B")
    #expect(URL(peerText: [0x20]) == nil)
    let url = try #require(URL(string: "http://a.example/"))
    let field = ["Set-Cookie": "a=b; Version=1; CommentURL=http://a.example/[%5B"]
    let cookie = HTTPCookie.cookies(withResponseHeaderFields: field, for: url).first
    #expect(cookie?.commentURL?.absoluteString == "http://a.example/%5B%5B")
  }
}
