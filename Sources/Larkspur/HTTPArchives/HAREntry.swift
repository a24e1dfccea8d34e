import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP
import LarkspurIO

/// An entry of an HTTP Archive. Members whose names begin with an underscore are extensions, which the format allows.
struct HAREntry: Encodable {
  struct Pair: Encodable {
    var name: String
    var value: String
  }

  struct Content: Encodable {
    var size: Int
    var compression: Int?
    var mimeType: String
    var text: String?
    var encoding: String?
    /// Whether `text` is the beginning of the content only.
    var _truncated: Bool?
    /// Whether `text` still has the codings that `Content-Encoding` names.
    var _coded: Bool?
  }

  struct PostData: Encodable {
    var mimeType: String
    var params: [Pair] = []
    var text: String
    /// `base64` for content that is no text. The format has this member for responses only.
    var _encoding: String?
    var _truncated: Bool?
  }

  struct Request: Encodable {
    var method: String
    var url: String
    var httpVersion = "HTTP/1.1"
    var cookies: [Pair]
    var headers: [Pair]
    var queryString: [Pair]
    var postData: PostData?
    var headersSize: Int
    var bodySize: Int
  }

  struct Response: Encodable {
    var status: Int
    var statusText: String
    var httpVersion: String
    var cookies: [Pair]
    var headers: [Pair]
    var content: Content
    var redirectURL: String
    var headersSize: Int
    var bodySize: Int
    var _error: String?
  }

  struct Cache: Encodable {}

  /// Milliseconds, or -1 for a part that did not take place. `connect` includes `ssl`.
  struct Timings: Encodable {
    var blocked: Double
    var dns: Double
    var connect: Double
    var ssl: Double
    var send: Double
    var wait: Double
    var receive: Double
  }

  var startedDateTime: String
  var time: Double
  var request: Request
  var response: Response
  var cache = Cache()
  var timings: Timings
  var serverIPAddress: String?
  var connection: String?
}

extension HAREntry {
  init(_ exchange: HARLedger.Exchange, bodyBytesMax: Int, includesSecrets: Bool) {
    let recorded = includesSecrets ? exchange : exchange.redacted
    request = Request(recorded, bodyBytesMax)
    response = Response(recorded, bodyBytesMax)
    timings = Timings(exchange)
    time = [timings.blocked, timings.dns, timings.connect, timings.send, timings.wait, timings.receive]
      .filter { $0 > 0 }.reduce(0, +)
    // The events have the time of a clock that is never set.
    let age = LinuxKernel.shared.now().duration(since: exchange.requested)
    let date = Date(timeIntervalSince1970: MachineClock.wallSeconds).addingTimeInterval(-age.interval)
    startedDateTime = date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    serverIPAddress = exchange.address.flatMap { Self.host(of: $0) }
    connection = exchange.connection.map { "\($0)" }
  }
}

extension HAREntry {
  /// Returns the IP address without its zone, or `nil` for a socket in the file system.
  private static func host(of address: SocketAddress) -> String? {
    guard address.family != .unix else { return nil }
    let text = "\(address)"
    guard let colon = text.lastIndex(of: ":") else { return text }
    let host = text[..<colon].trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    return String(host.prefix { $0 != "%" })
  }
}

extension HARLedger.Exchange {
  /// The exchange without secrets.
  fileprivate var redacted: Self {
    var copy = self
    copy.url = Redaction.url(url)
    let requestType = HARHead(requestHead).values("Content-Type").first
    copy.requestHead = Redaction.head(requestHead)
    copy.requestBody = Redaction.content(requestBody, type: requestType)
    // A response is redacted when its codings have been undone: see `Response`.
    copy.isRedacted = true
    return copy
  }
}

extension HAREntry.Request {
  fileprivate init(_ exchange: HARLedger.Exchange, _ bodyBytesMax: Int) {
    let head = HARHead(exchange.requestHead)
    method = exchange.method
    url = exchange.url
    headers = head.fields
    cookies = head.values("Cookie").flatMap { $0.split(separator: ";") }.map { HAREntry.Pair(cookie: String($0)) }
    queryString = (URLComponents(string: exchange.url)?.queryItems ?? []).map {
      HAREntry.Pair(name: $0.name, value: $0.value ?? "")
    }
    headersSize = exchange.requestHead.count
    bodySize = max(exchange.requestBodyCount, exchange.requestBody.count)
    if bodySize > 0 {
      let text = HARText(exchange.requestBody)
      postData = HAREntry.PostData(
        mimeType: head.values("Content-Type").first ?? "", text: text.text, _encoding: text.encoding,
        _truncated: exchange.requestBody.count >= bodyBytesMax && bodySize > bodyBytesMax ? true : nil)
    }
  }
}

extension HAREntry.Response {
  fileprivate init(_ exchange: HARLedger.Exchange, _ bodyBytesMax: Int) {
    let plain = HARHead(exchange.responseHead)
    let head = exchange.isRedacted ? HARHead(Redaction.head(exchange.responseHead)) : plain
    status = exchange.status
    let words = head.firstLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    httpVersion = words.first.map(String.init) ?? ""
    statusText = words.count > 2 ? String(words[2]) : ""
    headers = head.fields
    cookies = head.values("Set-Cookie").map { HAREntry.Pair(cookie: String($0.prefix { $0 != ";" })) }
    redirectURL = head.values("Location").first ?? ""
    headersSize = exchange.responseHead.isEmpty ? -1 : exchange.responseHead.count
    bodySize = exchange.responseHead.isEmpty ? -1 : exchange.responseBodyCount
    _error = exchange.failure
    let type = head.values("Content-Type").first ?? ""
    var bytes = exchange.responseBody
    let isWhole = exchange.responseBodyCount == bytes.count && exchange.failure == nil
    var isCoded = false
    if let codings = try? ContentCodings(fieldValues: head.values("Content-Encoding")) {
      isCoded = codings.hasUnknown
      if !codings.isEmpty {
        let decoded = isWhole ? Self.decoded(bytes, codings, atMost: bodyBytesMax) : nil
        (bytes, isCoded) = (decoded ?? bytes, decoded == nil)
      }
    } else {
      isCoded = true
    }
    let size = isCoded || isWhole ? bytes.count : exchange.responseBodyCount
    if exchange.isRedacted, !isCoded { bytes = Redaction.content(bytes, type: type) }
    let text = HARText(bytes)
    content = HAREntry.Content(
      size: size, compression: !isCoded && isWhole ? size - exchange.responseBodyCount : nil, mimeType: type,
      text: bytes.isEmpty ? nil : text.text, encoding: bytes.isEmpty ? nil : text.encoding,
      _truncated: isWhole || exchange.responseHead.isEmpty ? nil : true, _coded: isCoded ? true : nil)
  }

  /// How much longer than its coded form recorded content may be.
  private static let growthMax = 16

  /// - Returns: The content without its codings, or `nil` if it cannot be decoded, or is too long.
  private static func decoded(_ bytes: [UInt8], _ codings: ContentCodings, atMost limit: Int) -> [UInt8]? {
    do {
      var decompressor = try Decompressor(codings.layers, limits: CodingLimits())
      var output: [UInt8] = []
      var consumed = 0
      while try decompressor.decode(bytes.span, consumed: &consumed, appendingTo: &output) == .hasMore {
        guard output.count / growthMax <= limit else { return nil }
      }
      try decompressor.finish()
      return output
    } catch {
      return nil
    }
  }
}

extension HAREntry.Timings {
  fileprivate init(_ exchange: HARLedger.Exchange) {
    func milliseconds(_ start: Deadline?, _ end: Deadline?) -> Double {
      guard let start, let end else { return -1 }
      return max(0, end.duration(since: start).interval * 1000)
    }
    let opening = exchange.opening
    dns = milliseconds(opening?.lookUp?.start, opening?.lookUp?.end)
    ssl = milliseconds(opening?.handshake?.start, opening?.handshake?.end)
    connect = milliseconds(opening?.connect?.start, opening?.handshake?.end ?? opening?.connect?.end)
    blocked = milliseconds(exchange.requested, exchange.started) - max(0, dns) - max(0, connect)
    blocked = max(0, blocked)
    let answered = exchange.answered ?? exchange.ended
    let sent = min(exchange.sent ?? answered, answered)
    send = milliseconds(exchange.started, sent)
    wait = milliseconds(sent, answered)
    receive = milliseconds(answered, exchange.ended)
  }
}

extension HAREntry.Pair {
  fileprivate init(cookie: String) {
    let parts = cookie.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    name = parts[0].trimmingCharacters(in: .whitespaces)
    value = parts.count > 1 ? String(parts[1]) : ""
  }
}

/// The first line and the fields of a head as it is on the wire.
private struct HARHead {
  var firstLine = ""
  var fields: [HAREntry.Pair] = []

  init(_ bytes: [UInt8]) {
    for (index, raw) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let line = String(decoding: raw.last == UInt8(ascii: "\r") ? raw.dropLast() : raw, as: UTF8.self)
      if index == 0 {
        firstLine = line
      } else if line.hasPrefix(" ") || line.hasPrefix("\t") {
        if let last = fields.indices.last { fields[last].value += " " + line.trimmingCharacters(in: .whitespaces) }
      } else if let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) {
        let value = line[line.utf8.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        fields.append(HAREntry.Pair(name: String(line[..<colon]), value: value))
      }
    }
  }

  func values(_ name: String) -> [String] { fields.filter { $0.name.equalsIgnoringCase(name) }.map(\.value) }
}

/// Content as a text of JSON: in Base64 unless it is UTF-8.
private struct HARText {
  var text: String
  var encoding: String?

  init(_ bytes: [UInt8]) {
    if let text = String(validating: bytes, as: UTF8.self) {
      self.text = text
    } else {
      text = Data(bytes).base64EncodedString()
      encoding = "base64"
    }
  }
}
