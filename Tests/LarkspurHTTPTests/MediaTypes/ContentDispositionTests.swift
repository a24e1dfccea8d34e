import Foundation
import LarkspurHTTP
import TestKit
import Testing

@Suite struct ContentDispositionTests {
  struct Row: Decodable {
    var header: String
    var filename: String

    /// The field's bytes: the file holds each byte as the character with its number.
    var bytes: [UInt8] { header.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }
  }

  /// Our results where they differ from Chromium's.
  static let ours: [String: String?] = [
    // Charsets for which this library has no tables.
    "attachment; filename=\"=?EUC-JP?Q?=B7=DD=BD=D13=2Epng?=\"": nil,
    "attachment; filename==?eUc-Kr?b?v7m8+iAzLnBuZw==?=": nil,
    "inline; filename=\"=?euc-kr?b?v7m8+iAz?= =?ksc5601?q?=BF=B9=BC=FA=2Epng?=\"": nil,
    "attachment; filename=\"=?windows-1252?Q?caf=E9?=  =?iso-8859-7?b?4eI=?= .png\"": nil,
    "attachment; filename*=EUC-JP''%B7%DD%BD%D13%2Epng": nil,
    "inline; filename*=Euc-Kr'ko'%BF%B9%BC%FA%2Epng": nil,
    // Bytes beyond ASCII that are not UTF-8 are read as Latin-1 (as in Firefox), and not in the encoding of the
    // referring page or of the system's language.
    "attachment; filename=caf\u{e5}.png": "caf\u{e5}.png",
    "attachment; filename=\u{b0}\u{a1}\u{b0}\u{a2}.png": "\u{b0}\u{a1}\u{b0}\u{a2}.png",
    "attachment; filename=foo-\u{e4}.html": "foo-\u{e4}.html",
  ]

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func corpus() throws {
    let rows = try Corpora.decode([Row].self, from: "chromium-net/content_disposition.json")
    #expect(rows.count == 120)
    for row in rows {
      let filename = ContentDisposition.filename(of: row.bytes)
      if let ours = Self.ours[row.header] {
        #expect(filename == ours, "\(row.header)")
        #expect(row.filename != ours ?? "", "\(row.header) is no deviation any more")
      } else {
        #expect(filename ?? "" == row.filename, "\(row.header)")
      }
    }
    let headers = Set(rows.map(\.header))
    for header in Self.ours.keys { #expect(headers.contains(header), "no row is \(header)") }
  }

  /// RFC 2231, sections 3 and 4.1.
  @Test(
    arguments: [
      ("attachment; filename*0=\"foo.\"; filename*1=\"html\"", "foo.html"),
      ("attachment; filename*1=\"html\"; filename*0=\"foo.\"", "foo.html"),
      ("attachment; filename*0*=UTF-8''foo-%c3%a4; filename*1=\".html\"", "foo-ä.html"),
      ("attachment; filename*0*=UTF-8'de'%c3; filename*1*=%a4", "ä"),
      // A later part is missing, or the first one is.
      ("attachment; filename*0=\"a\"; filename*2=\"c\"", "a"),
      ("attachment; filename*1=\"a\"", nil),
      ("attachment; filename*0=a; filename=b", "a"),
      ("attachment; filename*0=a; filename*=utf-8''c; filename=b", "c"),
      ("attachment; filename*0=a; filename*0=b", "a"),
      ("attachment; filename*0*=nonsense; filename=b", "b"),
      ("attachment; filename*999999999999999999999=a", nil), ("attachment; filename*x=a", nil),
      ("attachment; filename**=a", nil),
    ] as [(String, String?)])
  func parts(header: String, filename: String?) {
    #expect(ContentDisposition.filename(of: header) == filename)
  }

  @Test(
    arguments: [
      ("", nil), (";", nil), ("attachment; filename=", nil), ("attachment; filename=\"\"", nil),
      ("attachment; filename=\"a\\", "a\\"), ("attachment; filename=\"a\\\"", "a\\"),
      ("attachment; filename==?utf-8?q?a=?=", nil), ("attachment; filename==?utf-8?x?a?=", nil),
      ("attachment; filename==?utf-8?b?Y?=", nil), ("attachment; filename*=utf-8''%ff; filename=b", "b"),
      ("attachment; filename*=windows-1252''%80.txt", "€.txt"),
      ("attachment; aa=bb\\; filename=\"wrong\"; filename=\"right\"; cc=dd", "right"),
    ] as [(String, String?)])
  func oddities(header: String, filename: String?) {
    #expect(ContentDisposition.filename(of: header) == filename)
  }

  @Test func anyBytes() {
    var generator = SeededGenerator(for: "Content-Disposition")
    let seed = Array(
      "attachment; filename*0*=UTF-8''a%c3%a4; filename=\"=?utf-8?b?YWI=?= x\"; filename*=latin1''%20".utf8)
    for _ in 0..<5000 {
      var bytes = seed
      for _ in 0..<4 {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        bytes[index] = seed.randomElement(using: &generator) ?? 0
        if Bool.random(using: &generator) { bytes.removeLast() }
      }
      // Any text can be read, and the resulting name is usable.
      let name = SuggestedFilename.name(
        disposition: String(decoding: bytes, as: UTF8.self), pathComponent: nil, host: nil, mediaType: nil)
      #expect(!name.isEmpty && !name.contains("/"))
    }
  }
}
