/// A guess at the intended word for a misspelt one.
enum Suggestion {
  /// Maximum length of a word for which there is a guess.
  private static let lengthMax = 40

  /// Returns ` (did you mean X?)` for the candidate that begins with the word or is closest to it, or an empty text if
  /// no candidate is close.
  static func text(for word: String, among candidates: [String], prefix: String = "") -> String {
    guard 2...lengthMax ~= word.count else { return "" }
    let distances = candidates.map { ($0.hasPrefix(word) ? 0 : distance(Array(word), Array($0)), $0) }
    guard let best = distances.min(by: { $0.0 < $1.0 }), best.0 <= min(word.count / 3, 2) else { return "" }
    return " (did you mean \(prefix)\(best.1)?)"
  }

  /// Counts the characters to insert, to remove, to replace, and the neighbours to swap (optimal string alignment).
  private static func distance(_ one: [Character], _ other: [Character]) -> Int {
    var rows = [Array(0...other.count)]
    for i in one.indices {
      var row = [i + 1]
      for j in other.indices {
        let isSame = one[i] == other[j]
        var best = Swift.min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (isSame ? 0 : 1))
        if i > 0, j > 0, one[i] == other[j - 1], one[i - 1] == other[j] {
          best = Swift.min(best, rows[i - 1][j - 1] + 1)
        }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[one.count][other.count]
  }
}
