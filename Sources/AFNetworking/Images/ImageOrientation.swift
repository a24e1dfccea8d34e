/// How a stored image has to be turned for display: mirrored left to right or not, and then turned clockwise by quarter
/// turns. These are the eight orientations of EXIF.
package struct ImageOrientation: Hashable, Sendable {
  package private(set) var isMirrored = false
  /// Number of quarter turns clockwise, from 0 to 3, after the mirroring.
  package private(set) var quarterTurns = 0

  /// Creates the orientation of an image that is displayed as stored.
  package init() {}

  /// Creates an orientation from its value in EXIF (CIPA DC-008, 4.6.4 A, tag 274).
  ///
  /// - Returns: The orientation, or `nil` if the value is not within 1 to 8.
  package init?(exif value: Int) {
    guard 1...8 ~= value else { return nil }
    isMirrored = [2, 4, 5, 7].contains(value)
    quarterTurns = [0, 0, 2, 2, 3, 1, 1, 3][value - 1]
  }

  /// The value in EXIF, from 1 to 8.
  package var exif: Int { isMirrored ? [2, 7, 4, 5][quarterTurns] : [1, 6, 3, 8][quarterTurns] }

  /// Whether the displayed image is as wide as the stored one is high.
  package var swapsSides: Bool { !quarterTurns.isMultiple(of: 2) }

  /// Adds a turn to the changes for display.
  mutating func turnClockwise(by quarters: Int) { quarterTurns = (quarterTurns + quarters) & 3 }

  /// Adds an exchange of left and right to the changes for display.
  mutating func exchangeLeftAndRight() {
    isMirrored.toggle()
    quarterTurns = -quarterTurns & 3
  }

  /// Adds an exchange of top and bottom to the changes for display.
  mutating func exchangeTopAndBottom() {
    exchangeLeftAndRight()
    turnClockwise(by: 2)
  }
}
