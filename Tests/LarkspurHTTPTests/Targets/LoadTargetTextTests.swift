import LarkspurHTTP
import Testing

/// `LoadTarget` on text without a URL type. `LoadTargetTests` reads the targets of URLs.
@Suite struct LoadTargetTextTests {
  private func target(_ text: String) throws(LoadTarget.Invalid) -> LoadTarget {
    try LoadTarget(text) { text == "http://b%C3%BCcher.example/" ? "xn--bcher-kva.example" : nil }
  }

  @Test func parts() throws {
    let target = try target("HTTPS://User:pw@Example.ORG:8443/a/./b?c#d")
    #expect(target.isSecure && target.host == "example.org" && target.port == 8443)
    #expect(target.authority == "example.org:8443" && target.path == "/a/b?c")
    #expect(try self.target("http://b%C3%BCcher.example/").host == "xn--bcher-kva.example")
  }

  @Test(arguments: [
    ("ftp://a.example/", LoadTarget.Invalid.schemeUnsupported), ("a.example", .schemeUnsupported),
    ("", .schemeUnsupported),
    ("http:/a.example", .hostMissing), ("http:///x", .hostMissing), ("http://[::1", .hostInvalid),
    ("http://b%2Fc.example/", .hostInvalid), ("http://a.example:8x/", .portInvalid), ("http://a.example:0/", .portZero),
  ])
  func invalid(text: String, reason: LoadTarget.Invalid) {
    #expect(throws: reason) { try target(text) }
  }
}
