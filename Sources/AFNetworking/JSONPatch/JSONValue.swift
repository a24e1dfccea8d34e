import Foundation

/// A value of JSON, one level deep: an object that `JSONSerialization` returns, or that a program puts in its place.
enum JSONValue {
  case null
  case boolean(Bool)
  case number(JSONNumber)
  case string(String)
  case array([Any])
  case object([String: Any])
  /// Something that JSON does not have, such as a date, or a number that is not finite.
  case other

  init(_ value: Any) {
    // Performance: exact types first, because casts that try a bridge are slow.
    let type = type(of: value)
    if type == String.self, let string = value as? String {
      self = .string(string)
    } else if type == [String: Any].self, let object = value as? [String: Any] {
      self = .object(object)
    } else if type == [Any].self, let array = value as? [Any] {
      self = .array(array)
    } else {
      self.init(bridging: value)
    }
  }

  private init(bridging value: Any) {
    switch value {
    case is NSNull: self = .null
    case let string as String: self = .string(string)
    case let number as NSNumber:
      if number.storedType == .boolean {
        self = .boolean(number.boolValue)
      } else {
        self = JSONNumber(number).map(JSONValue.number) ?? .other
      }
    case let object as [String: Any]: self = .object(object)
    case let array as [Any]: self = .array(array)
    default: self = .other
    }
  }

  /// Compares two values as RFC 6902, section 4.6, says.
  ///
  /// - Parameter depth: The greatest depth to compare. Deeper values are not equal.
  static func areEqual(_ one: Any, _ other: Any, depth: Int) -> Bool {
    switch (JSONValue(one), JSONValue(other)) {
    case (.null, .null): return true
    case (.boolean(let one), .boolean(let other)): return one == other
    case (.number(let one), .number(let other)): return one == other
    // Code points, not characters: a letter with an accent differs from the letter followed by the accent.
    case (.string(let one), .string(let other)): return one.utf8.elementsEqual(other.utf8)
    case (.array(let one), .array(let other)):
      return depth > 0 && one.count == other.count
        && zip(one, other).allSatisfy { areEqual($0, $1, depth: depth - 1) }
    case (.object(let one), .object(let other)):
      return depth > 0 && one.count == other.count
        && one.allSatisfy { name, value in
          other.place(of: name).map { areEqual(value, other[$0].value, depth: depth - 1) } ?? false
        }
    default: return false
    }
  }

  /// The size of a value.
  struct Extent: Hashable {
    /// Number of values, with the value itself.
    var count = 0
    /// Number of bytes of the value's JSON without white space. For numbers, the greatest that there can be.
    var byteCount = 0
    /// Number of nested arrays and objects.
    var depth = 0
  }

  enum Excess: Error {
    case tooDeep
    case tooMany
    case notJSON
  }

  /// Measures a value, and stops at the first excess.
  ///
  /// - Parameter isStrict: Whether values that JSON does not have are an excess.
  static func extent(
    of value: Any, depthMax: Int, countMax: Int = .max, byteCountMax: Int = .max, isStrict: Bool
  ) throws(Excess) -> Extent {
    var measure = Measure(depthMax: depthMax, countMax: countMax, byteCountMax: byteCountMax, isStrict: isStrict)
    try measure.add(value, at: 0)
    return measure.extent
  }

  private struct Measure {
    let depthMax: Int
    let countMax: Int
    let byteCountMax: Int
    let isStrict: Bool
    var extent = Extent()

    mutating func add(_ value: Any, at depth: Int) throws(Excess) {
      guard extent.count < countMax else { throw .tooMany }
      extent.count += 1
      switch JSONValue(value) {
      case .null: try add(byteCount: 4)
      case .boolean: try add(byteCount: 5)
      case .number(let number): try add(byteCount: number.byteCountMax)
      case .string(let text): try add(byteCount: Self.byteCount(of: text))
      case .array(let array):
        try enter(depth + 1)
        // Two brackets, and a comma for each element.
        try add(byteCount: 2 + array.count)
        for element in array { try add(element, at: depth + 1) }
      case .object(let object):
        try enter(depth + 1)
        // Two braces, and a colon and a comma for each member.
        try add(byteCount: 2 + 2 * object.count)
        for (name, member) in object {
          try add(byteCount: Self.byteCount(of: name))
          try add(member, at: depth + 1)
        }
      case .other:
        if isStrict { throw .notJSON }
        try add(byteCount: 1)
      }
    }

    private mutating func enter(_ depth: Int) throws(Excess) {
      guard depth <= depthMax else { throw .tooDeep }
      extent.depth = max(extent.depth, depth)
    }

    private mutating func add(byteCount: Int) throws(Excess) {
      guard byteCount <= byteCountMax - extent.byteCount else { throw .tooMany }
      extent.byteCount += byteCount
    }

    /// The bytes that `JSONSerialization` writes for a text: with quotation marks, and with escapes of two characters,
    /// or of six for control characters.
    private static func byteCount(of text: String) -> Int {
      text.utf8.reduce(2) { $0 + ($1 < 0x20 ? 6 : "\"\\/".utf8.contains($1) ? 2 : 1) }
    }
  }
}

/// A number of JSON, compared by its value: 1 is 1.0, and 2^53 + 1 is not 2^53.
enum JSONNumber: Equatable {
  /// An integer of 64 bits, signed or not.
  case integer(Int128)
  case decimal(Decimal)
  case floating(Double)

  /// Creates a number, or returns `nil` if it is not finite.
  init?(_ number: NSNumber) {
    if let decimal = number as? NSDecimalNumber {
      guard decimal.decimalValue.isFinite else { return nil }
      self = .decimal(decimal.decimalValue)
      return
    }
    switch number.storedType {
    case .floating:
      guard number.doubleValue.isFinite else { return nil }
      self = .floating(number.doubleValue)
    case .unsigned: self = .integer(Int128(number.uint64Value))
    case .signed, .boolean: self = .integer(Int128(number.int64Value))
    }
  }

  /// Maximum number of digits and signs of a number of this kind. A `Decimal` has 38 digits and up to 128 zeros.
  var byteCountMax: Int {
    switch self {
    case .integer: 20
    case .floating: 24
    case .decimal: 168
    }
  }

  static func == (one: JSONNumber, other: JSONNumber) -> Bool {
    switch (one, other) {
    case (.integer(let one), .integer(let other)): one == other
    case (.floating(let one), .floating(let other)): one == other
    case (.decimal(let one), .decimal(let other)): one == other
    case (.integer(let integer), .floating(let floating)), (.floating(let floating), .integer(let integer)):
      Int128(exactly: floating) == integer
    case (.integer(let integer), .decimal(let decimal)), (.decimal(let decimal), .integer(let integer)):
      Self.decimal(integer) == decimal
    case (.floating(let floating), .decimal(let decimal)), (.decimal(let decimal), .floating(let floating)):
      NSDecimalNumber(decimal: decimal).doubleValue == floating
    }
  }

  private static func decimal(_ integer: Int128) -> Decimal {
    let magnitude = Decimal(UInt64(clamping: integer.magnitude))
    return integer < 0 ? -magnitude : magnitude
  }
}

extension [String: Any] {
  /// Returns the place of the member with a name, compared by code points.
  func place(of name: String) -> Index? {
    guard let index = index(forKey: name), self[index].key.utf8.elementsEqual(name.utf8) else { return nil }
    return index
  }
}
