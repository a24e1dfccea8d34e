import LarkspurHTTP
import Testing

@Suite struct HostNameTests {
  @Test(
    arguments: [
      ("example.org", "example.org", "example.org"), ("EXAMPLE.Org", "example.org", "example.org"),
      ("example.org.", "example.org", "example.org."), ("xn--bcher-kva.example", "xn--bcher-kva.example", nil),
      ("a_b.example", "a_b.example", nil), ("1.2.3.4.example", "1.2.3.4.example", nil), ("1e", "1e", nil),
      ("0xg", "0xg", nil), ("x", "x", nil),
    ] as [(String, String, String?)])
  func reads(host: String, text: String, question: String?) throws {
    let name = try HostName(host)
    #expect(name.text == text)
    #expect(name.question == question ?? text)
  }

  @Test(
    arguments: [
      ("", .empty), (".", .empty), ("..", .labelEmpty), (".a", .labelEmpty), ("a..b", .labelEmpty),
      ("a..", .labelEmpty),
      ("a b", .byteIllegal), ("a\0b", .byteIllegal), ("a\u{7f}", .byteIllegal), ("[::1]", .byteIllegal),
      ("::1", .byteIllegal), ("a%b", .byteIllegal), ("a:80", .byteIllegal), ("a/b", .byteIllegal),
      ("*.a", .byteIllegal),
      ("b\u{fc}cher.example", .notASCII), ("127.1", .number), ("0x7f.1", .number), ("0x7f000001", .number),
      ("0X7F000001", .number), ("2130706433", .number), ("010.0.0.1", .number), ("1.2.3.4.", .number),
      ("a.256", .number),
      ("a.0x", .number), ("256.256.256.256", .number),
    ] as [(String, HostName.Invalid)])
  func refuses(host: String, reason: HostName.Invalid) {
    #expect(throws: reason) { try HostName(host) }
  }

  @Test func lengths() throws {
    let label = String(repeating: "a", count: HostName.labelBytesMax)
    #expect(try HostName(label).text == label)
    #expect(throws: HostName.Invalid.labelTooLong) { try HostName(label + "a") }
    let name = [label, label, label, String(repeating: "a", count: 61)].joined(separator: ".")
    #expect(name.utf8.count == HostName.bytesMax)
    #expect(try HostName(name).text == name)
    #expect(try HostName(name + ".").text == name)
    #expect(throws: HostName.Invalid.tooLong) { try HostName(name + "a") }
  }

  @Test(
    arguments: [
      ("localhost", true), ("LocalHost.", true), ("a.localhost", true), ("a.b.LOCALHOST.", true),
      ("localhost.example", false), ("notlocalhost", false), ("localhost.localdomain", false),
    ])
  func localhost(host: String, isLocalhost: Bool) throws {
    #expect(try HostName(host).isLocalhost == isLocalhost)
  }
}
