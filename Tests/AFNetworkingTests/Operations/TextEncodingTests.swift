import Foundation
import LarkspurTestServer
import Testing

@testable import AFNetworking

/// Tests text in the character sets that servers name.
@Suite struct TextEncodingTests {
  /// Each row has the names of an encoding, bytes and their text. The bytes come from another implementation (Python's
  /// codecs).
  static let rows: [(names: String, bytes: [UInt8], text: String)] = [
    ("utf-8 UTF8", [0xE2, 0x82, 0xAC], "\u{20AC}"), ("us-ascii", [0x61], "a"),
    ("iso-8859-1 latin1 ISO8859-1", [0xE4], "\u{E4}"), ("iso-8859-2", [0xB1], "\u{105}"),
    ("iso-8859-3", [0xA1], "\u{126}"), ("iso-8859-4", [0xA1], "\u{104}"), ("iso-8859-5", [0xD0], "\u{430}"),
    ("iso-8859-6 ISO-8859-6-I", [0xC7], "\u{627}"), ("iso-8859-7", [0xE1], "\u{3B1}"),
    ("iso-8859-8 iso-8859-8-i logical", [0xE0], "\u{5D0}"), ("iso-8859-9 latin5", [0xFD], "\u{131}"),
    ("iso-8859-10", [0xA1], "\u{104}"), ("iso-8859-11 tis-620 TIS620", [0xA1], "\u{E01}"),
    ("iso-8859-13", [0xA1], "\u{201D}"), ("iso-8859-14", [0xA1], "\u{1E02}"),
    ("iso-8859-15 latin-9", [0xA4], "\u{20AC}"), ("iso-8859-16", [0xA4], "\u{20AC}"),
    ("windows-1250 cp1250", [0xB9], "\u{105}"), ("windows-1251 CP1251", [0xEF, 0xF0], "\u{43F}\u{440}"),
    ("windows-1252", [0x80], "\u{20AC}"), ("windows-1253", [0xE1], "\u{3B1}"), ("windows-1254", [0xFD], "\u{131}"),
    ("windows-1255", [0xE0], "\u{5D0}"), ("windows-1256", [0xC7], "\u{627}"), ("windows-1257", [0xE0], "\u{105}"),
    ("windows-1258", [0xD0], "\u{110}"), ("windows-874", [0xA1], "\u{E01}"),
    ("koi8-r KOI8-R", [0xD0, 0xD2], "\u{43F}\u{440}"), ("koi8-u", [0xA4], "\u{454}"),
    ("cp866 ibm866 866", [0xAF], "\u{43F}"), ("ibm437 cp437", [0x84], "\u{E4}"), ("ibm850", [0xD5], "\u{131}"),
    ("ibm852", [0xA5], "\u{105}"),
    ("macintosh x-mac-roman", [0xDB, 0x8A, 0xA0], "\u{20AC}\u{E4}\u{2020}"), ("x-mac-cyrillic", [0xE0], "\u{430}"),
    ("gb2312 GB_2312-80 gbk gb18030 x-gbk", [0xD6, 0xD0, 0xCE, 0xC4], "\u{4E2D}\u{6587}"),
    // These characters are in GBK only, but pages use them under the name GB2312.
    ("gb2312 gbk", [0xE9, 0x46], "\u{9555}"), ("gb2312 gbk", [0xA3, 0xA7], "\u{FF07}"),
    ("gb18030", [0x94, 0x39, 0xDA, 0x33], "\u{1F4A9}"), ("hz-gb-2312", Array("~{VPND~}".utf8), "\u{4E2D}\u{6587}"),
    ("big5 Big5-HKSCS", [0xA4, 0xA4, 0xA4, 0xE5], "\u{4E2D}\u{6587}"), ("euc-tw", [0xC4, 0xE3], "\u{4E2D}"),
    ("euc-kr ks_c_5601-1987 windows-949", [0xC7, 0xD1], "\u{D55C}"), ("euc-kr", [0x81, 0x41], "\u{AC02}"),
    ("iso-2022-kr", [0x1B, 0x24, 0x29, 0x43, 0x0E, 0x47, 0x51, 0x0F], "\u{D55C}"),
    ("shift_jis Shift-JIS sjis x-sjis windows-31j", [0x93, 0xFA, 0x83, 0x5C], "\u{65E5}\u{30BD}"),
    ("euc-jp EUC-JP x-euc-jp", [0xC6, 0xFC, 0xA5, 0xBD, 0x61, 0x8E, 0xB1], "\u{65E5}\u{30BD}a\u{FF71}"),
    ("euc-jp", [0xC6, 0xFC, 0x8F, 0xB0, 0xA1, 0xC6, 0xFC], "\u{65E5}\u{4E02}\u{65E5}"),
    ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x1B, 0x28, 0x42], "\u{65E5}"),
    ("utf-16be", [0x20, 0xAC], "\u{20AC}"), ("utf-16le", [0xAC, 0x20], "\u{20AC}"),
    ("utf-7", Array("+IKw-".utf8), "\u{20AC}"),
  ]

  @Test(arguments: TextEncodingTests.rows.indices) func decoding(row: Int) throws {
    let (names, bytes, text) = Self.rows[row]
    for name in names.split(separator: " ") {
      let encoding = try #require(TextEncodingName.encoding(of: String(name)), "\(name)")
      #expect(TextCoding.text(of: Data(bytes), in: encoding) == text, "\(name)")
      // An encoding that can be read has a name for requests.
      #expect(TextEncodingName.name(of: encoding) != nil, "\(name)")
    }
  }

  @Test(
    arguments: [
      ("\u{65E5}\u{672C}", String.Encoding.shiftJIS, [0x93, 0xFA, 0x96, 0x7B]),
      ("\u{65E5}\u{20AC}", .shiftJIS, nil), ("\u{43F}", .windowsCP1251, [0xEF]), ("\u{65E5}", .windowsCP1251, nil),
      ("\u{E4}\u{20AC}", .macOSRoman, [0x8A, 0xDB]), ("\u{FB02}", .macOSRoman, [0xDF]), ("\u{65E5}", .macOSRoman, nil),
      ("\u{65E5}a\u{FF71}\u{30BD}", .japaneseEUC, [0xC6, 0xFC, 0x61, 0x8E, 0xB1, 0xA5, 0xBD]),
      ("\u{20AC}", .japaneseEUC, nil),
      ("\u{2460}", .japaneseEUC, [0xAD, 0xA1]), ("\u{E4}", .ascii, nil), ("a", String.Encoding(rawValue: 9_999), nil),
      ("a", String.Encoding(rawValue: .max), nil), ("", .japaneseEUC, []),
    ] as [(String, String.Encoding, [UInt8]?)])
  func encoding(text: String, encoding: String.Encoding, bytes: [UInt8]?) {
    #expect(TextCoding.bytes(of: text, in: encoding).map(Array.init) == bytes)
  }

  /// Each character of the rows of JIS X 0208 survives decoding and encoding.
  @Test func japaneseThereAndBack() throws {
    for row in UInt8(0xA1)...0xFE {
      for cell in UInt8(0xA1)...0xFE {
        guard let text = TextCoding.text(of: Data([row, cell]), in: .japaneseEUC) else { continue }
        guard let bytes = TextCoding.bytes(of: text, in: .japaneseEUC) else { continue }
        #expect(TextCoding.text(of: bytes, in: .japaneseEUC) == text)
      }
    }
    #expect(TextCoding.text(of: Data([0xF4, 0xA6]), in: .japaneseEUC) == "\u{7199}")
  }

  @Test(
    arguments: [
      [0x80], [0xA1], [0xA1, 0x20], [0x8E], [0x8E, 0x20], [0x8F, 0xA1], [0x8F, 0xA1, 0x20], [0xFF, 0xA1],
    ] as [[UInt8]])
  func notJapanese(bytes: [UInt8]) { #expect(TextCoding.text(of: Data(bytes), in: .japaneseEUC) == nil) }

  @Test(arguments: ["", "x-unknown", "johab", "viscii", "iso-2022-jp-3", "iso-8859-12", "iso-8859-17", "windows-1259"])
  func unknownNames(name: String) { #expect(TextEncodingName.encoding(of: name) == nil) }

  @Test(
    arguments: [
      (String.Encoding.utf8, "utf-8"), (.shiftJIS, "shift_jis"), (.windowsCP1251, "windows-1251"),
      (.isoLatin1, "iso-8859-1"), (.macOSRoman, "macintosh"), (.japaneseEUC, "euc-jp"),
      (String.Encoding(rawValue: 0x8000_0632), "gb18030"), (String.Encoding(rawValue: 0x8000_0A02), "koi8-r"),
      (String.Encoding(rawValue: 0x8000_0207), "iso-8859-7"), (String.Encoding(rawValue: 0x8000_0940), "euc-kr"),
      (.nonLossyASCII, nil), (.symbol, nil), (String.Encoding(rawValue: 9_999), nil),
    ] as [(String.Encoding, String?)])
  func names(encoding: String.Encoding, name: String?) { #expect(TextEncodingName.name(of: encoding) == name) }

  // MARK: - Requests

  private func client(_ encoding: String.Encoding) throws -> AFHTTPClient {
    let client = AFHTTPClient(baseURL: try #require(URL(string: "http://a.example/")))
    client.stringEncoding = encoding.rawValue
    return client
  }

  @Test func aFormNamesItsCharset() throws {
    for (encoding, name, text) in [
      (String.Encoding.shiftJIS, "shift_jis", "k=%93%FA"), (.windowsCP1251, "windows-1251", "k=%EF"),
      (.japaneseEUC, "euc-jp", "k=%C6%FC"),
    ] {
      let value = encoding == .windowsCP1251 ? "\u{43F}" : "\u{65E5}"
      let request = try client(encoding).request(withMethod: "POST", path: "p", parameters: ["k": value])
      #expect(request.httpBody == Data(text.utf8))
      #expect(
        request.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded; charset=\(name)")
      let query = try client(encoding).request(withMethod: "GET", path: "p", parameters: ["k": value])
      #expect(query.url?.absoluteString == "http://a.example/p?" + text)
    }
  }

  @Test(arguments: ["POST", "GET"], [String.Encoding.shiftJIS, .windowsCP1251, .ascii])
  func whatCannotBeWrittenIsNotSent(method: String, encoding: String.Encoding) throws {
    for parameters in [["k": "\u{1F4A9}"], ["\u{1F4A9}": "v"]] {
      let request = try client(encoding).request(withMethod: method, path: "p", parameters: parameters)
      #expect(request.url == nil && request.httpBody == nil)
    }
    let form = try client(encoding).multipartFormRequest(withMethod: "POST", path: "p", parameters: ["k": "\u{1F4A9}"])
    { _ in }
    #expect(form.url == nil)
    #expect(AFQueryStringFromParametersWithEncoding(["k": "\u{1F4A9}"], encoding.rawValue) == "")
  }

  /// A request in an encoding that has no name is refused, since the server could not read it.
  @Test func anEncodingWithoutANameIsNotSent() throws {
    let request = try client(.nonLossyASCII).request(withMethod: "POST", path: "p", parameters: ["k": "v"])
    #expect(request.url == nil)
  }

  @Test func jsonIsInUTF8WhateverIsSet() throws {
    for encoding in [AFHTTPClientParameterEncoding.json, .propertyList] {
      let client = try client(.shiftJIS)
      client.parameterEncoding = encoding
      let request = client.request(withMethod: "POST", path: "p", parameters: ["k": "\u{65E5}\u{20AC}"])
      let type = try #require(request.value(forHTTPHeaderField: "Content-Type"))
      #expect(type.hasSuffix("; charset=utf-8"))
      #expect(request.httpBody.map { String(decoding: $0, as: UTF8.self).contains("\u{65E5}\u{20AC}") } == true)
    }
  }

  @Test func aResponseIsReadAsItSays() async throws {
    let server = try TestServer()
    server.route("GET", "/text") { _ in
      .init(fields: ["Content-Type": "text/plain; charset=EUC-JP"], body: .bytes([0xC6, 0xFC]))
    }
    let operation = try OperationKit.operation(AFURLConnectionOperation.self, server.url("/text"))
    await operation.run()
    #expect(operation.responseString == "\u{65E5}")
    #expect(operation.responseStringEncoding == String.Encoding.japaneseEUC.rawValue)
  }
}
