import LarkspurBytes
import LarkspurHTTP

/// Checks the response parser on any bytes that a server could send.
///
/// An input begins with four bytes: the requests (`Asked`), and the sizes of the pieces in which the rest arrives, in
/// turn. The rest is the server's bytes.
package enum ResponseParserOracle {
  /// The bits of the first byte. Letters make readable seeds: `@` is a single GET with the default limits.
  private struct Asked: OptionSet {
    let rawValue: UInt8
    static let head = Asked(rawValue: 1)
    static let connect = Asked(rawValue: 2)
    static let upgrade = Asked(rawValue: 4)
    /// Three requests at once instead of one.
    static let pipeline = Asked(rawValue: 8)
    /// Limits that an input of a few hundred bytes can reach.
    static let tightLimits = Asked(rawValue: 16)

    var requests: [RequestContext] {
      let method: RequestContext.Method = contains(.connect) ? .connect : contains(.head) ? .head : .other
      let request = RequestContext(method: method, offersUpgrade: contains(.upgrade))
      return Array(repeating: request, count: contains(.pipeline) ? 3 : 1)
    }
  }

  package static let tightLimits: Limits = {
    var limits = Limits()
    limits.headBytesMax = 200
    limits.fieldLineBytesMax = 64
    limits.fieldsMax = 5
    limits.interimResponsesMax = 2
    limits.chunkExtensionBytesMax = 24
    limits.trailerBytesMax = 80
    return limits
  }()

  /// - Returns: The error of the parser, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 4 else { return nil }
    let asked = Asked(rawValue: input[0])
    let sizes = input[1..<4]
    let bytes = Array(input[4...])
    let limits = asked.contains(.tightLimits) ? tightLimits : Limits()
    let requests = asked.requests

    var listener = Listener(requests: requests, limits: limits)
    for piece in Cuts.cycling(bytes, sizes: sizes) { listener.receive(piece) }
    listener.close()
    let cut = listener.transcript
    if let breach = cut.breach { return breach }

    let whole = Listener.transcript(of: Cuts.whole(bytes), requests: requests, limits: limits)
    guard cut == whole else { return "whole: \(whole.lines), cut by \(Array(sizes)): \(cut.lines)" }

    // The parser may require a head or a trailer section to be kept, each within its limit.
    let retainable = max(limits.headBytesMax, limits.trailerBytesMax + 2)
    guard listener.retainedBytesMax <= retainable else { return "kept \(listener.retainedBytesMax) bytes" }
    if let excess = excess(in: cut, over: limits) { return excess }

    return NaiveReader.disagreement(with: cut, over: bytes, requests: requests)
  }

  private static func excess(in transcript: Transcript, over limits: Limits) -> String? {
    var interims = 0
    for entry in transcript.entries {
      switch entry {
      case .interim(let head), .head(let head):
        if case .interim = entry { interims += 1 } else { interims = 0 }
        if head.byteCount > limits.headBytesMax { return "a head of \(head.byteCount) bytes" }
        if interims > limits.interimResponsesMax { return "\(interims) interim responses" }
        if let excess = excess(in: head.fields, over: limits) { return excess }
      case .end(let trailers):
        if let excess = excess(in: trailers, over: limits) { return excess }
        // Each line has at least one more byte (its end). The limit leaves two bytes for the empty line, which may need
        // only one.
        let size = trailers.reduce(0) { $0 + $1.name.utf8.count + 1 + $1.value.unicodeScalars.count + 1 }
        if size > limits.trailerBytesMax + 1 { return "trailers of \(size) bytes" }
      case .body, .tunnel, .failed, .broken: break
      }
    }
    return nil
  }

  private static func excess(in fields: [Transcript.Field], over limits: Limits) -> String? {
    if fields.count > limits.fieldsMax { return "\(fields.count) fields" }
    // A scalar is at least one byte, so this count is never too large.
    let longest = fields.map { $0.name.utf8.count + 1 + $0.value.unicodeScalars.count }.max() ?? 0
    return longest > limits.fieldLineBytesMax ? "a field line of \(longest) bytes" : nil
  }
}
