import Foundation

/// A decoder of an archive that holds nothing: with it the `init(coder:)` of any class makes an object with its defaults,
/// where no initializer but that one is there for every subclass.
enum EmptyArchive {
  static func decoder() -> NSCoder? {
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    archiver.finishEncoding()
    return try? NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
  }
}

extension IndexSet {
  /// `200-299,404`
  var rangesText: String {
    rangeView.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(
      separator: ",")
  }

  /// What does not look like that is left out.
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
