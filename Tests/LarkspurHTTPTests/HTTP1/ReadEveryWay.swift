import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import Testing

/// The positions at which an input is cut in two.
enum Splits {
  case everywhere
  /// Around these positions only: for large inputs, or very many, all positions would take too long.
  case around([Int])

  func offsets(in count: Int) -> [Int] {
    switch self {
    case .everywhere: Array(0...count)
    case .around(let offsets): Set(offsets.flatMap { $0 - 3...$0 + 3 }).filter { 0...count ~= $0 }.sorted()
    }
  }
}

/// Gives `bytes` to the parser whole, byte by byte, and cut in two at many positions. The logs have to be equal, and
/// have to agree with the naive reader where no limit interferes. Then the connection ends.
func read(
  _ bytes: [UInt8], requests: [RequestContext] = [RequestContext()], limits: Limits = Limits(),
  splits: Splits = .everywhere, sourceLocation: SourceLocation = #_sourceLocation
) -> Transcript {
  let whole = Listener.transcript(of: Cuts.whole(bytes), requests: requests, limits: limits)
  #expect(whole.breach == nil, sourceLocation: sourceLocation)
  func check(_ pieces: [ArraySlice<UInt8>], _ how: @autoclosure () -> String) {
    let cut = Listener.transcript(of: pieces, requests: requests, limits: limits)
    if cut != whole {
      Issue.record("\(how()): \(cut.lines), but whole: \(whole.lines)", sourceLocation: sourceLocation)
    }
  }
  // The listener copies what it keeps with each piece, which is too slow for large inputs.
  if bytes.count < 4096 { check(Cuts.single(bytes), "byte by byte") }
  for offset in splits.offsets(in: bytes.count) { check(Cuts.two(bytes, at: offset), "split at \(offset)") }
  if let difference = NaiveReader.disagreement(with: whole, over: bytes, requests: requests) {
    Issue.record("\(difference)", sourceLocation: sourceLocation)
  }
  return whole
}

func read(
  _ text: String, requests: [RequestContext] = [RequestContext()], limits: Limits = Limits(),
  splits: Splits = .everywhere, sourceLocation: SourceLocation = #_sourceLocation
) -> Transcript {
  read(Array(text.utf8), requests: requests, limits: limits, splits: splits, sourceLocation: sourceLocation)
}

extension RequestContext {
  static let get = RequestContext()
  static let head = RequestContext(method: .head)
  static let connect = RequestContext(method: .connect)
  static let upgrade = RequestContext(offersUpgrade: true)
}

/// Returns `text` repeated, for inputs that consist mostly of one thing.
func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
