import Foundation

/// Makes a decoder of an empty archive. With this decoder, the `init(coder:)` of any class makes an object with default
/// settings. `init(coder:)` is the only initializer that every subclass has.
enum EmptyArchive {
  static func decoder() -> NSCoder? {
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    archiver.finishEncoding()
    return try? NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
  }
}

extension IndexSet {
  /// The ranges as text, such as `200-299,404`.
  var rangesText: String {
    rangeView.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(
      separator: ",")
  }

  /// Creates an index set from text such as `200-299,404`. Skips malformed ranges.
  init(rangesText: String) {
    self.init()
    for part in rangesText.split(separator: ",") {
      let bounds = part.split(separator: "-").map { Int($0) ?? -1 }
      guard let first = bounds.first, let last = bounds.last, first >= 0, last >= first, last < Int.max else {
        continue
      }
      insert(integersIn: first...last)
    }
  }
}
