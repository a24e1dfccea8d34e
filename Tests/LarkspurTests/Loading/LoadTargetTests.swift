import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

@Suite struct LoadTargetTests {
  private func target(_ text: String) throws -> LoadTarget { try LoadTarget(try #require(URL(string: text))) }

  @Test func partsOfAURL() throws {
    let plain = try target("http://User:pw@Example.ORG/a/b?c=d#e")
    #expect(!plain.isSecure && plain.host == "example.org" && plain.port == 80)
    #expect(plain.authority == "example.org" && plain.path == "/a/b?c=d")
    let other = try target("https://example.org:8443?q")
    #expect(other.isSecure && other.port == 8443 && other.authority == "example.org:8443" && other.path == "/?q")
    #expect(try target("http://example.org:80/").authority == "example.org")
  }

  @Test(
    arguments: [
      ("/a/../b", "/b"), ("/./b?x=/../y", "/b?x=/../y"), ("/a/b/..", "/a/"), ("/../../a", "/a"),
      ("/a/%2e%2e/b", "/a/%2e%2e/b"),
      ("/.well-known/x", "/.well-known/x"), ("/a/...", "/a/..."), ("?/../x", "/?/../x"), ("/a//../b", "/a/b"),
    ]) func dotSegments(path: String, sent: String) throws
  {
    #expect(try target("http://a.example\(path)").path == sent)
    let last = try target("http://a.example/")
    #expect(try LoadTarget.of(try #require(URL(string: "http://a.example\(path)")), after: last).path == sent)
  }

  /// A target parsed with the previous one as a shortcut equals a target parsed without it.
  @Test func afterAnother() throws {
    let texts = [
      "http://u:p@a.example:81/x?y#z", "http://u:p@a.example:81", "http://u:p@a.example:81/",
      "http://u:p@a.example:8181/x", "http://u:p@a.example:81@b.example/", "http://a.example:81/x",
      "http://u:p@a.example:81?q", "http://u:p@a.example:81#f", "https://u:p@a.example:81/x",
      "http://u:p@a.example:81//x?",
    ]
    func parts(_ target: LoadTarget?) -> [String]? {
      target.map { ["\($0.isSecure)", $0.host, "\($0.port)", $0.authority, $0.path] }
    }
    for first in texts {
      for second in texts {
        guard let last = try? target(first), let url = URL(string: second) else { continue }
        #expect(parts(try? LoadTarget.of(url, after: last)) == parts(try? LoadTarget(url)), "\(second) after \(first)")
      }
    }
  }

  /// CVE-2017-14063, CVE-2020-8169: the host of the connection is the host used for cookies and credentials, however
  /// the URL is written, and a password is never part of it.
  @Test(arguments: [
    ("http://evil.example?@good.example/", "evil.example", "/?@good.example/"),
    ("http://evil.example#@good.example/", "evil.example", "/"),
    ("http://user:p@ss@good.example/", "good.example", "/"),
    ("http://user:p%40evil.example@good.example/", "good.example", "/"),
  ])
  func oneHostForAll(text: String, host: String, path: String) throws {
    let url = try #require(URL(string: text))
    let target = try target(text)
    #expect(target.host == host && target.authority == host && target.path == path)
    #expect(url.asciiHost == host && AuthenticationTarget(origin: url)?.host == host)
  }

  @Test func addresses() throws {
    let address = try target("http://[FE80::1%25eth0]:81/")
    #expect(address.host == "fe80::1%eth0" && address.authority == "[fe80::1]:81")
    // Interface names are case-sensitive: the kernel distinguishes `Eth0` from `eth0`.
    #expect(try target("http://[FE80::1%25Eth0]/").host == "fe80::1%Eth0")
    #expect(try target("http://[fe80::1%25]/").host == "fe80::1%25")
  }

  @Test func namesOfOtherScriptsAreWrittenInASCII() throws {
    #expect(try target("http://b\u{fc}cher.example/").host == "xn--bcher-kva.example")
    #expect(try target("http://b%C3%BCcher.example/").authority == "xn--bcher-kva.example")
    #expect(try target("http://ex%61mple.org/").host == "example.org")
  }

  /// A host with an encoded delimiter is refused, since decoding and non-decoding code would see different hosts.
  /// CVE-2022-27780: an encoded slash in a host.
  @Test(arguments: [
    "http://a.example%2F.b.example/", "http://a.example%40b.example/", "http://a.example%3A81/",
    "http://a.example%00/", "http://a%20b.example/", "http://a.example%23/", "http://a.example%5C.b/",
  ])
  func encodedDelimitersMakeNoHost(text: String) throws {
    let url = try #require(URL(string: text))
    #expect(throws: LoadTarget.Invalid.hostInvalid) { try LoadTarget(url) }
  }

  @Test func whatIsNoTarget() throws {
    #expect(throws: LoadTarget.Invalid.schemeUnsupported) { try target("ftp://a.example/") }
    #expect(throws: LoadTarget.Invalid.hostMissing) { try target("http:///path") }
    #expect(throws: LoadTarget.Invalid.hostMissing) { try target("http:path") }
    #expect(throws: LoadTarget.Invalid.portZero) { try target("http://a.example:0/") }
    #expect(throws: LoadTarget.Invalid.portInvalid) { try target("http://a.example:65536/") }
  }
}
