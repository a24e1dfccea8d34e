import AFNetworking
import Foundation
import Larkspur
import Testing

/// Tests the composition of forms.
@Suite struct MultipartFormTests {
  typealias Part = ReadForm.Part

  let serializer = AFHTTPRequestSerializer()
  let directory: FormDirectory

  init() throws { directory = try FormDirectory() }

  @Test func streamsThatAreSaidToBeEndless() throws {
    let request = try serializer.form { form in
      for length in [Int64.max, .max, .min] {
        form.appendPart(with: InputStream(data: Data()), name: "a", fileName: "b", length: length, mimeType: "c/d")
      }
    }
    #expect(request.value(forHTTPHeaderField: "Content-Length") == "\(Int64.max)")
  }

  @Test func everyKindOfPartIsWhereItBelongs() throws {
    let file = try directory.file("notes.txt", Array("from a file".utf8))
    let request = try serializer.form { form in
      form.appendPart(withForm: Data("a field".utf8), name: "field")
      form.appendPart(withFileData: Data("bytes".utf8), name: "data", fileName: "d.bin", mimeType: "a/b")
      try? form.appendPart(withFileURL: file, name: "file")
      try? form.appendPart(withFileURL: file, name: "named", fileName: "other.png", mimeType: "image/png")
      form.appendPart(
        with: InputStream(data: Data("from a stream".utf8)), name: "stream", fileName: "s", length: 13, mimeType: "c/d")
      form.appendPart(with: nil, name: "none", fileName: "n", length: 9, mimeType: "e/f")
      form.appendPart(withHeaders: ["X-B": "2", "Content-Type": "g/h", "X-A": "1"], body: Data("raw".utf8))
      form.appendPart(withHeaders: nil, body: Data("bare".utf8))
    }
    func head(_ name: String, _ fileName: String, _ type: String) -> [String] {
      [
        "Content-Disposition: form-data; name=\"\(name)\"; filename=\"\(fileName)\"", "Content-Type: \(type)",
      ]
    }
    #expect(
      try request.readForm().parts == [
        Part(["Content-Disposition: form-data; name=\"field\""], "a field"),
        Part(head("data", "d.bin", "a/b"), "bytes"),
        Part(head("file", "notes.txt", "text/plain"), "from a file"),
        Part(head("named", "other.png", "image/png"), "from a file"), Part(head("stream", "s", "c/d"), "from a stream"),
        Part(head("none", "n", "e/f"), ""), Part(["Content-Type: g/h", "X-A: 1", "X-B: 2"], "raw"), Part([], "bare"),
      ])
  }

  @Test func parametersAreFields() throws {
    let request = try serializer.multipartFormRequest(
      withMethod: "POST", urlString: "http://a",
      parameters: [
        "user": ["name": "x", "tags": ["a", "b"]], "data": Data([0, 255]), "null": NSNull(), "yes": true,
      ],
      constructingBodyWith: { $0.appendPart(withForm: Data("last".utf8), name: "last") })
    func field(_ name: String) -> [String] { ["Content-Disposition: form-data; name=\"\(name)\""] }
    #expect(
      try request.readForm().parts == [
        Part(field("data"), [0, 255]), Part(field("null"), ""), Part(field("user[name]"), "x"),
        Part(field("user[tags][]"), "a"), Part(field("user[tags][]"), "b"), Part(field("yes"), "1"),
        Part(field("last"), "last"),
      ])
  }

  @Test func parametersAreInTheSerializersEncoding() throws {
    serializer.stringEncoding = String.Encoding.isoLatin1.rawValue
    let request = try serializer.multipartFormRequest(
      withMethod: "POST", urlString: "http://a", parameters: ["a": "\u{FC}"], constructingBodyWith: nil)
    #expect(try request.readForm().parts.map(\.body) == [[0xFC]])
    // A value that cannot be encoded is an error: a form without the field would not be what the program asked for.
    #expect(throws: (any Error).self) {
      try serializer.multipartFormRequest(
        withMethod: "POST", urlString: "http://a", parameters: ["a": "\u{FC}", "b": "\u{20AC}"],
        constructingBodyWith: nil)
    }
  }

  /// Names are escaped as the section "multipart form data" of the WHATWG HTML standard says.
  @Test(arguments: [
    ("plain", "plain", "plain"), ("a\"b", "a%22b", "a%22b"), ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
    ("a\nb", "a%0D%0Ab", "a%0Ab"), ("a\rb", "a%0D%0Ab", "a%0Db"), ("a\r", "a%0D%0A", "a%0D"),
    ("a\n\r\nb", "a%0D%0A%0D%0Ab", "a%0A%0D%0Ab"), ("back\\slash%22", "back\\slash%22", "back\\slash%22"),
    ("\u{1F474}\u{1F3FF}\u{FC}", "\u{1F474}\u{1F3FF}\u{FC}", "\u{1F474}\u{1F3FF}\u{FC}"),
  ])
  func namesAreEscaped(name: String, fieldName: String, fileName: String) throws {
    let request = try serializer.form { form in
      form.appendPart(withForm: Data(), name: name)
      form.appendPart(withFileData: Data(), name: "x", fileName: name, mimeType: "a/b")
    }
    let parts = try request.readForm().parts
    #expect(
      parts.map { $0.fields[0] } == [
        "Content-Disposition: form-data; name=\"\(fieldName)\"",
        "Content-Disposition: form-data; name=\"x\"; filename=\"\(fileName)\"",
      ])
  }

  @Test func valuesAddNoFieldsToAPart() throws {
    let request = try serializer.form { form in
      form.appendPart(
        withHeaders: ["X-Good": "a\r\nX-Bad: b\r\n\r\nbody", "X Bad": "c", "": "d", "X-\u{FC}": "e"], body: Data([1]))
      form.appendPart(withFileData: Data([2]), name: "n", fileName: "f", mimeType: "a/b\r\n\r\nbody")
    }
    let parts = try request.readForm().parts
    #expect(parts.map(\.body) == [[1], [2]])
    #expect(parts[0].fields == ["X-Good: a  X-Bad: b    body"])
    #expect(parts[1].fields[1] == "Content-Type: a/b    body")
  }

  /// CVE-2025-22150: boundaries are random, since a guessed boundary lets a peer's content add parts to a form.
  @Test func boundariesAreNeverTheSame() throws {
    let types = try (0..<100).map { _ in
      try serializer.form { $0.appendPart(withForm: Data(), name: "a") }.value(forHTTPHeaderField: "Content-Type")
    }
    #expect(Set(types).count == 100)
    #expect(types.allSatisfy { $0?.wholeMatch(of: /multipart\/form-data; boundary=Boundary\+[0-9A-F]{32}/) != nil })
  }

  @Test func aFormWithoutPartsIsNone() throws {
    let request = try serializer.form { _ in }
    #expect(request.httpBodyStream == nil)
    #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded")
    let json = try AFJSONRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "http://a", parameters: [:], constructingBodyWith: nil)
    #expect(json.httpBodyStream == nil && json.httpBody == nil)
  }

  @Test(arguments: ["GET", "HEAD", "get"])
  func theseMethodsHaveNoForm(method: String) {
    var error: NSError?
    let request = serializer.multipartFormRequest(
      withMethod: method, urlString: "http://a", parameters: nil,
      constructingBodyWith: { $0.appendPart(withForm: Data(), name: "a") }, error: &error)
    #expect(error?.domain == AFURLRequestSerializationErrorDomain)
    #expect(request.url == nil && request.httpBodyStream == nil)
  }

  @Test func anEmptyFileIsAnEmptyPart() throws {
    let file = try directory.file("empty", [])
    let request = try serializer.form { try? $0.appendPart(withFileURL: file, name: "a") }
    #expect(try request.readForm().parts.map(\.body) == [[]])
  }

  @Test func aLinkToAFileIsTheFile() throws {
    let file = try directory.file("real.txt", Array("content".utf8))
    let link = directory.url.appending(path: "link.json")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
    let request = try serializer.form { try? $0.appendPart(withFileURL: link, name: "a") }
    let part = try #require(try request.readForm().parts.first)
    #expect(part.body == Array("content".utf8))
    #expect(part.fields[1] == "Content-Type: application/json")
  }

  @Test func whatIsNoFileIsAnError() throws {
    var errors: [NSError] = []
    let urls = [URL(string: "http://example.com/a"), directory.url.appending(path: "missing"), directory.url]
    let request = try serializer.form { form in
      for url in urls.compactMap({ $0 }) {
        do { try form.appendPart(withFileURL: url, name: "a") } catch { errors.append(error as NSError) }
      }
    }
    #expect(errors.count == 3)
    #expect(errors.allSatisfy { $0.domain == AFURLRequestSerializationErrorDomain })
    #expect(errors.allSatisfy { $0.code == URLError.Code.badURL.rawValue })
    #expect(errors.first?.localizedFailureReason == "Expected URL to be a file URL")
    #expect(errors.dropFirst().first?.localizedFailureReason == "File URL not reachable.")
    #expect(request.httpBodyStream == nil)
  }

  @Test func largeFilesAreCountedInFull() throws {
    let file = try directory.file("large", [])
    try FileHandle(forWritingTo: file).truncate(atOffset: 5 << 32)
    let request = try serializer.form { try? $0.appendPart(withFileURL: file, name: "a") }
    let count = try #require(Int(request.value(forHTTPHeaderField: "Content-Length") ?? ""))
    #expect(count > 5 << 32 && count < 5 << 32 + 1_000)
  }
}
