import LarkspurBytes
import LarkspurIO

extension TestServer {
  /// Recorded exchanges, which a server can answer from: see ``TestServer/init(replaying:_:options:tls:)``.
  public struct Recording: Hashable, Sendable {
    /// A request and its response.
    public struct Entry: Hashable, Sendable {
      /// The method of the request.
      public var method: String
      /// The absolute URL. A server that answers compares path and query.
      public var url: String
      /// The fields of the request.
      public var requestFields: Fields
      /// The body of the request.
      public var requestBody: [UInt8]
      /// The status of the response, from 200 to 999.
      public var status: Int
      /// The fields of the response. The server adds those that frame the body.
      public var fields: Fields
      /// The body of the response.
      public var body: [UInt8]
      /// The time from the request's end to the response's first byte.
      public var wait: Duration
      /// The time from there to the last byte.
      public var receive: Duration

      /// Creates an entry.
      public init(
        _ method: String, _ url: String, requestFields: Fields = [:], requestBody: [UInt8] = [], status: Int = 200,
        fields: Fields = [:], body: [UInt8] = [], wait: Duration = .zero, receive: Duration = .zero
      ) {
        self.method = method
        self.url = url
        self.requestFields = requestFields
        self.requestBody = requestBody
        self.status = status
        self.fields = fields
        self.body = body
        self.wait = wait
        self.receive = receive
      }
    }

    /// The reason, in words, why a file is no recording to answer from.
    public struct Invalid: Error, Hashable, CustomStringConvertible {
      /// The reason, with the number of the entry or the offset in bytes.
      public let description: String
    }

    /// The exchanges in their order.
    public var entries: [Entry]

    /// Maximum length of an archive in bytes.
    public static let bytesMax = 256 << 20
    /// Maximum number of entries of an archive.
    public static let entriesMax = 100_000

    /// Creates a recording of entries that a test has made or chosen.
    public init(_ entries: [Entry]) { self.entries = entries }

    /// Reads an HTTP Archive (HAR 1.2), of `HARRecorder`, of `larkspur get --har`, or of a browser.
    ///
    /// - Throws: ``Invalid`` if the file cannot be read or is longer than ``bytesMax``, or for a reason of
    ///   `init(har:)`.
    public init(contentsOf path: String) throws(Invalid) {
      let bytes: [UInt8]?
      do {
        bytes = try OpenFile(readingRegular: path).readToEnd(max: Self.bytesMax)
      } catch {
        throw Invalid(description: "\(path) cannot be read: \(error)")
      }
      guard let bytes else { throw Invalid(description: "\(path) is longer than \(Self.bytesMax) bytes") }
      do throws(Invalid) {
        try self.init(har: bytes)
      } catch {
        throw Invalid(description: "\(path): \(error)")
      }
    }

    /// Reads the text of an HTTP Archive. Exchanges without a response are left out.
    ///
    /// - Throws: ``Invalid`` for a text that is no JSON, lacks what an archive has, has more than ``entriesMax`` entries, or has
    ///   the beginning of a body only.
    public init(har bytes: [UInt8]) throws(Invalid) {
      let json: JSON
      do {
        json = try JSONReader.value(bytes)
      } catch {
        throw Invalid(description: "the archive is no JSON: \(error)")
      }
      guard let list = json["log"]?["entries"]?.elements else {
        throw Invalid(description: "the archive lacks log.entries")
      }
      guard list.count <= Self.entriesMax else {
        throw Invalid(description: "the archive has more than \(Self.entriesMax) entries")
      }
      entries = []
      for (index, value) in list.enumerated() {
        var reader = EntryReader(value, name: "entry \(index + 1)")
        if let entry = try reader.entry() { entries.append(entry) }
      }
    }
  }
}

/// Reads an entry of an archive.
private struct EntryReader {
  typealias Invalid = TestServer.Recording.Invalid

  private let json: TestServer.JSON
  private let name: String

  init(_ json: TestServer.JSON, name: String) {
    self.json = json
    self.name = name
  }

  private func value(_ path: [String]) -> TestServer.JSON? {
    path.reduce(json as TestServer.JSON?) { $0?[$1] }
  }

  private func invalid(_ reason: String) -> Invalid { Invalid(description: "\(name): \(reason)") }

  private func text(_ path: String...) throws(Invalid) -> String {
    guard let text = value(path)?.textValue else { throw invalid("\(path.joined(separator: ".")) is no text") }
    return text
  }

  private func fields(_ path: String...) throws(Invalid) -> TestServer.Fields {
    guard let elements = value(path)?.elements else { throw invalid("\(path.joined(separator: ".")) is no list") }
    var fields = TestServer.Fields()
    for element in elements {
      guard let name = element["name"]?.textValue, let value = element["value"]?.textValue, !name.isEmpty,
        !(name + value).utf8.contains(where: { $0 == 0 || $0 == 0x0a || $0 == 0x0d })
      else { throw invalid("\(path.joined(separator: ".")) has an element that is no field") }
      fields.add(name, value)
    }
    return fields
  }

  private func bytes(_ content: TestServer.JSON?, encoding: String, _ what: String) throws(Invalid) -> [UInt8] {
    guard content?["_truncated"] != .bool(true) else { throw invalid("only the beginning of the \(what) is recorded") }
    guard let text = content?["text"]?.textValue else { return [] }
    switch content?[encoding]?.textValue {
    case nil, "": return Array(text.utf8)
    case "base64":
      guard let bytes = Base64.decodeForgiving(Array(text.utf8)) else { throw invalid("the \(what) is no Base64") }
      return bytes
    case let encoding?: throw invalid("the \(what) has the unknown encoding \(encoding.debugDescription)")
    }
  }

  /// The duration of a part in milliseconds. A part that did not take place is -1.
  private func duration(_ part: String) -> Duration {
    let milliseconds = value(["timings", part])?.numberValue ?? 0
    return .milliseconds(Int64(min(max(milliseconds, 0), 86_400_000)))
  }

  /// - Returns: The entry, or `nil` if it has no response.
  mutating func entry() throws(Invalid) -> TestServer.Recording.Entry? {
    guard let number = value(["response", "status"])?.numberValue, let status = Int(exactly: number) else {
      throw invalid("response.status is no number")
    }
    guard status != 0 else { return nil }
    guard 200...999 ~= status else { throw invalid("response.status is \(status)") }
    let content = value(["response", "content"])
    var responseFields = try fields("response", "headers")
    // The content of an archive has no codings, and the server frames it itself.
    if content?["_coded"] != .bool(true) { responseFields["Content-Encoding"] = nil }
    for name in ["Transfer-Encoding", "Connection", "Keep-Alive", "Trailer"] { responseFields[name] = nil }
    let method = try text("request", "method")
    if method != "HEAD", status != 304 { responseFields["Content-Length"] = nil }
    return TestServer.Recording.Entry(
      method, try text("request", "url"), requestFields: try fields("request", "headers"),
      requestBody: try bytes(value(["request", "postData"]), encoding: "_encoding", "request's body"), status: status,
      fields: responseFields, body: try bytes(content, encoding: "encoding", "response's body"), wait: duration("wait"),
      receive: duration("receive"))
  }
}
