import LarkspurBytes
import LarkspurHTTP

/// The facts that a connection's owner learns from a server's bytes, recorded so that two runs over the same bytes can
/// be compared. Adjacent pieces of a body are one entry, because their borders may depend on how the bytes were cut.
package struct Transcript: Hashable, Sendable {
  package struct Field: Hashable, Sendable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  package struct Head: Hashable, Sendable {
    package var status = 0
    package var minorVersion = 1
    package var reason = ""
    package var fields: [Field] = []
    /// The framing decided from the fields. For an interim response this and the next two properties keep their
    /// defaults.
    package var framing = BodyFraming.none
    package var isPersistent = false
    package var contentLength: Int?
    package var byteCount = 0

    package init() {}
  }

  package enum Entry: Hashable, Sendable {
    case interim(Head)
    case head(Head)
    case body([UInt8])
    case end(trailers: [Field])
    /// Bytes of another protocol.
    case tunnel([UInt8])
    case failed(ResponseError)
    /// The parser broke a rule of its interface.
    case broken(String)
  }

  package private(set) var entries: [Entry] = []

  package init() {}

  package mutating func append(_ entry: Entry) {
    switch (entries.last, entry) {
    case (.body(let before), .body(let more)):
      entries[entries.count - 1] = .body(before + more)
    case (.tunnel(let before), .tunnel(let more)):
      entries[entries.count - 1] = .tunnel(before + more)
    default:
      entries.append(entry)
    }
  }
}

// MARK: - Reading a transcript

extension Transcript {
  package var error: ResponseError? {
    if case .failed(let error) = entries.last { error } else { nil }
  }

  package var breach: String? {
    for case .broken(let what) in entries { return what }
    return nil
  }

  /// The heads of the final responses.
  package var heads: [Head] {
    entries.compactMap { if case .head(let head) = $0 { head } else { nil } }
  }

  package var interims: [Head] {
    entries.compactMap { if case .interim(let head) = $0 { head } else { nil } }
  }

  /// The bytes of all bodies, one after another.
  package var body: [UInt8] {
    entries.flatMap { entry -> [UInt8] in
      if case .body(let bytes) = entry { bytes } else { [] }
    }
  }

  package var endCount: Int {
    entries.count { if case .end = $0 { true } else { false } }
  }

  /// The transcript as text: a line for each entry, and one more for each field.
  package var lines: [String] { entries.flatMap(\.lines) }
}

extension Transcript.Entry {
  package var lines: [String] {
    switch self {
    case .interim(let head): ["interim \(head.statusText)"] + head.fields.map { "  \($0.name): \($0.value)" }
    case .head(let head):
      ["head \(head.statusText), \(head.framing), \(head.isPersistent ? "persistent" : "closing")"]
        + head.fields.map { "  \($0.name): \($0.value)" }
    case .body(let bytes): ["body \(String(decoding: bytes, as: UTF8.self))"]
    case .end(let trailers): ["end"] + trailers.map { "  \($0.name): \($0.value)" }
    case .tunnel(let bytes): ["tunnel \(String(decoding: bytes, as: UTF8.self))"]
    case .failed(let error): ["error: \(error)"]
    case .broken(let what): ["broken: \(what)"]
    }
  }
}

extension Transcript.Head {
  fileprivate var statusText: String { "1.\(minorVersion) \(status) \(reason)" }
}
