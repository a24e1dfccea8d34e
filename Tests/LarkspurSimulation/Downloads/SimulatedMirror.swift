import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurTLS

/// The versions of the file that a world of downloads is about.
struct SimulatedVersions {
  let sizes: [Int]

  /// The version that the servers have in the end.
  var last: Int { sizes.count - 1 }

  /// The number that stands for the bytes of a server that lies.
  static let lie = 9

  /// Returns bytes of a version. No byte is zero, as those of a page that was lost are, and two versions differ
  /// everywhere.
  func bytes(_ range: Range<Int>, of version: Int) -> [UInt8] {
    range.map { UInt8(1 + (7 * $0 + 25 * version) % 251) }
  }

  func bytes(of version: Int) -> [UInt8] { bytes(0..<sizes[version], of: version) }
}

/// A server of a world of downloads, with its habits, which never change, and its faults, which end.
struct SimulatedMirror {
  enum Validator: CaseIterable { case strong, weak, none, date, bare }

  enum Fault: CaseIterable {
    case refused, cut, stalled, status, unavailable, missing, wholeForRange, shortRange, wrongRange, wrongTotal,
      wrongLength
    case otherTag, noTag, lie
  }

  enum Digest { case content, whole }

  let number: Int
  var validator = Validator.strong
  var hasRanges = true
  /// Whether a response with the whole says that ranges are accepted.
  var announcesRanges = false
  /// Whether a 206 to `If-Range` leaves out what the client knows (RFC 9110 15.3.7).
  var isTerse = false
  /// Whether a response with the whole states its length.
  var hasLength = true
  /// The coding of the bytes, or `nil` for none.
  var coding: String?
  /// Maximum size of the body of a 206.
  var rangeMax = Int.max
  var connectionsMax = Int.max
  /// Time of a piece of a body in nanoseconds, and its size in bytes.
  var pieceTime = milliseconds(10)
  var pieceBytes = 16
  /// What the digests of responses are of, if there are any (RFC 9530).
  var digest: Digest?
  /// The share of responses that are faulty, in sixteenths, and their faults.
  var faultiness = 0
  var faults: [Fault] = []
  /// The version that the server has.
  var version = 0
  /// Number of connections that are open.
  var running = 0
  /// Whether the server has ever sent wrong bytes.
  private(set) var hasLied = false

  init(number: Int) { self.number = number }

  var url: String { "http://server\(number)/file" }

  /// Whether a download from the server can be resumed.
  var isResumable: Bool { hasRanges && validator != .weak && validator != .none }

  /// Returns the field that names a version, and its value.
  ///
  /// - Parameter isOther: Whether the name is another one that nothing but a fault gives to the version.
  func tag(of version: Int, isOther: Bool = false) -> (name: String, value: String)? {
    switch validator {
    case .strong: ("etag", "\"\(number)-\(version)\(isOther ? "-other" : "")\"")
    case .bare: ("etag", "\(number)x\(version)\(isOther ? "other" : "")")
    case .weak: ("etag", "W/\"\(number)-\(version)\"")
    case .date: ("last-modified", "Sun, 06 Nov 1994 0\(isOther ? 7 : 8):4\(version):0\(number) GMT")
    case .none: nil
    }
  }

  /// A response, as far as a client sees it: the head, and the body with its end.
  struct Response {
    enum BodyEnd { case complete, cut, stalled }

    var status = 200
    /// The fields, with names in lower case.
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var end = BodyEnd.complete
    /// Whether the body hides its wrong bytes from the rules.
    var isLie = false

    func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    fileprivate mutating func set(_ name: String, _ value: String?) {
      fields.removeAll { $0.name == name }
      if let value { fields.append((name, value)) }
    }
  }

  /// Returns the response to a GET, or `nil` if there is no connection.
  ///
  /// - Parameter isCalm: Whether the server has no faults.
  mutating func respond(
    range: String?, condition: String?, versions: SimulatedVersions, isCalm: Bool, _ draw: inout SeededRandom
  ) -> Response? {
    let fault = !isCalm && draw.chance(faultiness, of: 16) ? draw.pick(faults) : nil
    if fault == .refused { return nil }
    if let refusal = refusal(fault, &draw) { return refusal }
    var response = answer(fault == .wholeForRange ? nil : range, condition, versions)
    switch digest {
    case .content: response.set("content-digest", Self.field(response.body))
    case .whole: response.set("repr-digest", Self.field(versions.bytes(of: version)))
    case nil: break
    }
    if let fault { spoil(&response, fault, versions, &draw) }
    return response
  }

  private func refusal(_ fault: Fault?, _ draw: inout SeededRandom) -> Response? {
    var response = Response()
    if running > connectionsMax || fault == .unavailable {
      response.status = draw.pick([503, 429])
      if draw.chance(1, of: 2) { response.set("retry-after", "\(draw.number(0...20))") }
    } else if fault == .status {
      response.status = draw.pick([408, 500, 502, 504])
    } else if fault == .missing {
      response.status = draw.pick([403, 404, 410])
    } else {
      return nil
    }
    response.body = Array("busy".utf8)
    response.set("content-length", "\(response.body.count)")
    return response
  }

  /// The response of a server that does what RFC 9110 says.
  private func answer(_ range: String?, _ condition: String?, _ versions: SimulatedVersions) -> Response {
    var response = Response()
    let size = versions.sizes[version]
    let tag = tag(of: version)
    response.set("content-encoding", coding)
    response.set("date", "Sun, 06 Nov 1994 10:00:00 GMT")
    if let tag { response.set(tag.name, tag.value) }
    let isStrong = validator == .strong || validator == .date || validator == .bare
    let isWanted = condition == nil || isStrong && condition == tag?.value
    guard hasRanges, isWanted, let range, let asked = Self.parse(range) else {
      response.body = versions.bytes(of: version)
      if hasLength { response.set("content-length", "\(size)") }
      if hasRanges, announcesRanges { response.set("accept-ranges", "bytes") }
      return response
    }
    guard asked.first < size else {
      response.status = 416
      response.set("content-range", "bytes */\(size)")
      return response
    }
    let end = min(size, asked.last.map { $0 + 1 } ?? size, asked.first + min(rangeMax, size))
    response.status = 206
    response.body = versions.bytes(asked.first..<end, of: version)
    response.set("content-range", "bytes \(asked.first)-\(end - 1)/\(size)")
    response.set("content-length", "\(response.body.count)")
    if isTerse, condition != nil, let tag { response.set(tag.name, nil) }
    return response
  }

  /// The value of a field of RFC 9530.
  private static func field(_ bytes: [UInt8]) -> String {
    "sha-256=:\(Data(hash(bytes, .sha256)).base64EncodedString()):"
  }

  static func hash(_ bytes: [UInt8], _ algorithm: MessageDigest.Algorithm) -> [UInt8] {
    MessageDigest.of(bytes, algorithm) ?? []
  }

  /// Reads `bytes=FIRST-` or `bytes=FIRST-LAST`.
  static func parse(_ range: String) -> (first: Int, last: Int?)? {
    guard range.hasPrefix("bytes=") else { return nil }
    let parts = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let first = Int(parts[0]) else { return nil }
    return (first, Int(parts[1]))
  }

  private mutating func spoil(
    _ response: inout Response, _ fault: Fault, _ versions: SimulatedVersions, _ draw: inout SeededRandom
  ) {
    let count = response.body.count
    let range = response.values("content-range").first.flatMap { ContentRange($0) }
    switch fault {
    case .cut, .stalled:
      response.end = fault == .cut ? .cut : .stalled
      response.body.removeLast(count - draw.number(0...max(0, count - 1)))
    case .shortRange:
      guard let range, count > 1 else { return }
      response.body.removeLast(draw.number(1...count - 1))
      let bytes = range.bytes.lowerBound..<range.bytes.lowerBound + response.body.count
      state(bytes, versions.sizes[version], in: &response)
    case .wrongRange:
      // What the field says is what the body has.
      guard let range else { return response.set("content-range", "bytes 1-\(count)/\(count + 1)") }
      let first = draw.number(0...max(0, versions.sizes[version] - 1))
      response.body = versions.bytes(first..<max(range.bytes.upperBound, first + 1), of: version)
      state(first..<first + response.body.count, versions.sizes[version], in: &response)
    case .wrongTotal:
      guard let range else { return }
      state(range.bytes, versions.sizes[version] + draw.number(1...9), in: &response)
    case .wrongLength:
      response.set("content-length", "\(count + draw.number(1...9))")
      response.end = .cut
    case .otherTag:
      if let tag = tag(of: version, isOther: true) { response.set(tag.name, tag.value) }
    case .noTag:
      if let tag = tag(of: version) { response.set(tag.name, nil) }
    case .lie:
      guard response.status == 200 || response.status == 206, count > 0 else { return }
      let first = draw.number(0...count - 1)
      let start = (range?.bytes.lowerBound ?? 0) + first
      response.body.replaceSubrange(
        first..., with: versions.bytes(start..<start + count - first, of: SimulatedVersions.lie))
      response.isLie = true
      hasLied = true
    case .refused, .status, .unavailable, .missing, .wholeForRange: break
    }
  }

  private func state(_ range: Range<Int>, _ total: Int, in response: inout Response) {
    response.set("content-range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)")
    response.set("content-length", "\(range.count)")
  }
}
