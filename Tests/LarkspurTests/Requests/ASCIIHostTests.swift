import Foundation
import Larkspur
import LarkspurHTTP
import Testing

@Suite struct ASCIIHostTests {
  @Test(
    arguments: [
      ("http://bücher.example/", "xn--bcher-kva.example"), ("http://BÜCHER.Example/", "xn--bcher-kva.example"),
      ("http://b%C3%BCcher.example/", "xn--bcher-kva.example"), ("http://EXAMPLE.Com:80/", "example.com"),
      // CVE-2016-8625: IDNA2008 applies. IDNA2003 would make `strasse`, which is another host.
      ("http://ex%41mple.com/", "example.com"), ("http://straße.example/", "xn--strae-oqa.example"),
      ("http://例え.テスト/", "xn--r8jz45g.xn--zckzah"), ("http://a。example/", "a.example"),
      ("http://u:p@bücher.example/", "xn--bcher-kva.example"), ("http://[::1]:8080/", "::1"),
      ("http://[FE80::1%25eth0]/", "fe80::1%eth0"), ("http://192.0.2.1/", "192.0.2.1"), ("http://a_b/", "a_b"),
      ("http:///a", nil), ("/a", nil), ("http://%ff/", nil),
    ] as [(String, String?)])
  func reads(text: String, host: String?) throws {
    let url = try #require(URL(string: text))
    #expect(url.asciiHost == host)
  }

  /// A host with characters that percent-decoding reveals is refused as a host name.
  @Test(arguments: ["http://a%2Fb/", "http://a%00b/", "http://a%20b/", "http://a%40b/"]) func refused(text: String)
    throws
  {
    let host = try #require(URL(string: text)?.asciiHost)
    #expect(throws: HostName.Invalid.byteIllegal) { try HostName(host) }
  }
}
