import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct URLResponseTests {
  private func response(_ fields: [String: String], url: String = "http://a.example/dir/page") throws -> HTTPURLResponse
  {
    try TaskMachineTests.response(200, fields, url: url)
  }

  @Test func namesTakeOneForm() throws {
    let fields = [
      "content-length": "5", "ETAG": "e", "x-oWn": "1", "X-Other": "2", "www-authenticate": "w", "content-md5": "m",
      "p3p": "p", "1a-b2c": "n", "my_field": "f",
    ]
    let names = try response(fields).allHeaderFields.keys.compactMap { $0 as? String }
    #expect(
      Set(names) == [
        "Content-Length", "Etag", "x-oWn", "X-Other", "WWW-Authenticate", "Content-Md5", "P3P", "1A-B2C", "My_Field",
      ])
  }

  @Test func ofNamesThatDifferInCaseOneCounts() throws {
    let fields = try response(["a": "5", "A": "6", "content-length": "1", "Content-Length": "2"])
    #expect(fields.allHeaderFields as? [String: String] == ["A": "6", "Content-Length": "2"])
    #expect(fields.value(forHTTPHeaderField: "a") == "6")
    #expect(fields.expectedContentLength == 2)
  }

  @Test func fieldsAreFoundWhateverTheCase() throws {
    let fields = try response(["X-Thing": "1"])
    #expect(fields.value(forHTTPHeaderField: "x-tHING") == "1")
    #expect(fields.value(forHTTPHeaderField: "thing") == nil)
  }

  @Test func fieldsOfTheWireAreJoined() async throws {
    let server = try TestServer()
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\netag: \"e\"\r\nContent-Length: 0\r\nVary: a\r\nvary: b\r\n\r\n"),
    ])
    let url = try #require(URL(string: server.url("/")))
    let (_, answer) = try await URLSession(configuration: .ephemeral).data(from: url)
    let response = try #require(answer as? HTTPURLResponse)
    #expect(
      response.allHeaderFields as? [String: String] == [
        "x-a": "1, 2", "Etag": "\"e\"", "Content-Length": "0", "Vary": "a, b",
      ])
    #expect(response.value(forHTTPHeaderField: "X-A") == "1, 2")
  }

  @Test(arguments: [
    ("text/html; charset=UTF-8", "text/html", "utf-8"), ("TEXT/Html;charset=\"utf-8\"", "text/html", "utf-8"),
    ("text/html; foo=bar; charset=ISO-8859-4", "text/html", "iso-8859-4"), ("text/html", "text/html", nil),
    ("text/html; charset", "text/html", nil), ("text", "text", nil), ("", nil, nil),
    ("text/html; foo=\"; charset=no\"; charset=yes", "text/html", "yes"),
  ])
  func contentTypes(field: String, type: String?, charset: String?) throws {
    let response = try response(["Content-Type": field])
    #expect(response.mimeType == type)
    #expect(response.textEncodingName == charset)
  }

  @Test(arguments: [
    ("5", 5), ("0", 0), ("-1", -1), ("", -1), ("x", -1), ("5, 6", -1), ("99999999999999999999", -1),
    ("9223372036854775807", 9_223_372_036_854_775_807),
  ])
  func contentLengths(field: String, length: Int64) throws {
    #expect(try response(["Content-Length": field]).expectedContentLength == length)
  }

  @Test(arguments: [
    (nil, "http://a.example", "Unknown"), (nil, "http://a.example/", "Unknown"),
    (nil, "http://a.example/file.txt?query#part", "file.txt"), (nil, "http://a.example/dir/", "dir"),
    (nil, "http://a.example/x%2Fy.txt", "x_y.txt"), (nil, "http://a.example/..", "Unknown"),
    ("attachment; filename=\"a b.txt\"", "http://a.example/z", "a b.txt"),
    ("attachment; filename=a.txt; filename*=UTF-8''%e2%82%ac.txt", "http://a.example/z", "\u{20ac}.txt"),
    ("inline", "http://a.example/z.txt", "z.txt"), ("attachment; filename=\"\"", "http://a.example/z.txt", "z.txt"),
    ("attachment; filename=../../etc/passwd", "http://a.example/z", "_.._etc_passwd"),
    ("attachment; filename=..", "http://a.example/z.txt", "z.txt"),
    ("attachment; FILENAME=q.txt", "http://a.example/z", "q.txt"), (nil, "data:,hello", "Unknown"),
  ])
  func filenames(disposition: String?, url: String, name: String) throws {
    let fields = disposition.map { ["Content-Disposition": $0] } ?? [:]
    #expect(try response(fields, url: url).suggestedFilename == name)
  }

  @Test func aNameGetsTheExtensionOfItsType() throws {
    let html = ["Content-Type": "text/html; charset=utf-8"]
    #expect(try response(html).suggestedFilename == "page.html")
    #expect(try response(html, url: "http://a.example/page.txt").suggestedFilename == "page.txt")
    #expect(try response(html, url: "http://a.example/").suggestedFilename == "Unknown")
    let plain = URLResponse(
      url: try #require(URL(string: "http://a.example/notes")), mimeType: "text/plain", expectedContentLength: 1,
      textEncodingName: nil)
    #expect(plain.suggestedFilename == "notes.txt")
  }

  @Test func descriptions() throws {
    let text = "\(try response(["content-length": "5", "x-foo": "b", "ETAG": "q"], url: "http://a/"))"
    let parts = text.split(separator: " ", maxSplits: 2)
    #expect(parts.first == "<HTTPURLResponse")
    #expect(parts[1].hasPrefix("0x") && parts[1].hasSuffix(">"))
    #expect(
      parts[2] == """
        { URL: http://a/ }{ status: 200, headers {
           "Content-Length" = 5;
           "Etag" = q;
           "x-foo" = b;
        } }
        """)
    #expect("\(try response([:], url: "http://a/"))".hasSuffix("{ status: 200, headers {\n} }"))
    let quoted = ["Content-Type": "a/b", "Content-Disposition": "attachment; filename=f"]
    #expect(
      "\(try response(quoted, url: "http://a/"))".hasSuffix(
        "   \"Content-Disposition\" = \"attachment; filename=f\";\n   \"Content-Type\" = \"a/b\";\n} }"))
  }

  @Test(arguments: [
    (100, "Continue"), (200, "OK"), (218, "Success"), (302, "Found"), (319, "Redirection"), (404, "Not Found"),
    (413, "Payload Too Large"), (422, "Unprocessable Entity"), (499, "Client Error"),
    (511, "Network Authentication Required"),
    (599, "Server Error"), (0, "Server Error"), (-1, "Server Error"),
  ])
  func phrasesForStatuses(status: Int, phrase: String) {
    #expect(HTTPURLResponse.localizedString(forStatusCode: status) == phrase)
  }

  @Test func equality() throws {
    let one = try response(["A": "1"])
    let same = try response(["a": "1"])
    #expect(one == same && one.hash == same.hash)
    #expect(one.copy() as? HTTPURLResponse === one)
    #expect(one != (try response(["A": "2"])))
    #expect(one != (try response(["A": "1"], url: "http://b.example/")))
    #expect(one != (try TaskMachineTests.response(201, ["A": "1"], url: "http://a.example/dir/page")))
    #expect(!one.isEqual("text") && !one.isEqual(nil))
  }

  @Test func hashes() throws {
    let url = try #require(URL(string: "http://a.example/"))
    func plain(_ type: String, _ length: Int, _ charset: String?) -> URLResponse {
      URLResponse(url: url, mimeType: type, expectedContentLength: length, textEncodingName: charset)
    }
    let all = [plain("a/b", 1, nil), plain("a/c", 1, nil), plain("a/b", 2, nil), plain("a/b", 1, "utf-8")]
    #expect(Set(all.map(\.hash)).count == 4 && plain("a/b", 1, nil).hash == all[0].hash)
    let statuses = try [200, 404].map { try TaskMachineTests.response($0, [:], url: "http://a.example/") }
    #expect(statuses[0].hash != statuses[1].hash)
  }

  @Test(arguments: [("5, 5", 5), ("5,5 ,5", 5), ("5, 6", -1), ("x", -1), (",", -1)])
  func listsOfLengths(field: String, length: Int64) throws {
    #expect(try response(["Content-Length": field]).expectedContentLength == length)
  }
}
