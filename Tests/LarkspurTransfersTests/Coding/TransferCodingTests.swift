import LarkspurHTTP
import TestKit
import Testing

@testable import LarkspurTransfers

@Suite struct TransferCodingTests {
  private enum Choice: Codable, Equatable {
    case none
    case pair(Int, other: String?)
    case Kind(UInt8)
  }

  private struct Everything: TransferValue, Equatable {
    var flag = true
    var texts = ["", "größe"]
    var double = -0.0
    var float: Float = 1.5
    var numbers = [Int.min, .max]
    var small = Int8(-1)
    var short = Int16.min
    var middle = Int32(-7)
    var long = Int64.min
    var unsigned = UInt.max
    var byte = UInt8.max
    var word = UInt16.max
    var quarter = UInt32.max
    var whole = UInt64.max
    var bytes: [UInt8] = [0, 255]
    var fields: FieldList = [Field("A", "b"), Field("", "")]
    var choices = [Choice.none, .pair(1, other: nil), .pair(-1, other: "x"), .Kind(3)]
    var absentFlag: Bool?
    var absentText: String?
    var absentDouble: Double?
    var absentFloat: Float?
    var absentNumber: Int?
    var absentSmall: Int8?
    var absentShort: Int16?
    var absentMiddle: Int32?
    var absentLong: Int64?
    var absentUnsigned: UInt?
    var absentByte: UInt8?
    var absentWord: UInt16?
    var absentQuarter: UInt32?
    var absentWhole: UInt64?
    var absentBytes: [UInt8]?
    var absentFields: FieldList?
    var absentChoice: Choice?
    var lists: [[String]] = [[], ["a"], []]

    var invalidPart: String? { nil }

    static var full: Everything {
      var value = Everything()
      (value.absentFlag, value.absentText, value.absentDouble, value.absentFloat) = (false, "a", .infinity, -1)
      (value.absentNumber, value.absentSmall, value.absentShort, value.absentMiddle) = (1, 2, 3, 4)
      (value.absentLong, value.absentUnsigned, value.absentByte, value.absentWord) = (5, 6, 7, 8)
      (value.absentQuarter, value.absentWhole, value.absentBytes) = (9, 10, [])
      (value.absentFields, value.absentChoice) = ([], .pair(0, other: ""))
      return value
    }
  }

  @Test func whatIsWrittenIsRead() throws {
    for value in [Everything(), .full] {
      let bytes = try value.bytes(after: [1, 2])
      #expect(bytes.starts(with: [1, 2]))
      #expect(try Everything(bytes: bytes.dropFirst(2)) == value)
      for count in 2..<bytes.count {
        #expect(throws: TransferValueError.self, "\(count) bytes") { try Everything(bytes: bytes[2..<count]) }
      }
      #expect(throws: TransferValueError.damaged("bytes follow the last part")) {
        try Everything(bytes: bytes[2...] + [0])
      }
    }
  }

  /// What can be read is written as the bytes that it was read from.
  @Test func eachValueHasOneForm() throws {
    var generator = SeededGenerator(for: "transfer coding")
    let bytes = try Everything.full.bytes()
    var accepted = 0
    for _ in 0..<20_000 {
      var changed = bytes
      let index = Int.random(in: changed.indices, using: &generator)
      changed[index] = [0, 1, 2, .random(in: 0...255, using: &generator)].randomElement(using: &generator) ?? 0
      guard let value = try? Everything(bytes: changed[...]) else { continue }
      accepted += 1
      #expect(try value.bytes() == changed)
    }
    #expect(accepted > 1_000)
  }

  private struct One<Value: Codable & Equatable>: TransferValue, Equatable {
    var value: Value
    var invalidPart: String? { nil }
  }

  /// The sign for degrees Kelvin equals a letter, and has other bytes.
  @Test func namesOfCasesHaveOneForm() throws {
    let bytes = try One(value: Choice.Kind(3)).bytes()
    #expect(bytes == [4, 0, 0, 0] + Array("Kind".utf8) + [3])
    #expect(throws: TransferValueError.self) {
      try One<Choice>(bytes: [6, 0, 0, 0] + Array("\u{212A}ind".utf8) + [3])
    }
  }

  // MARK: - Limits

  @Test func membersAreLimited() throws {
    let most = try One(value: Array(repeating: "", count: TransferDecoder.membersMax)).bytes()
    #expect(try One<[String]>(bytes: most[...]).value.count == TransferDecoder.membersMax)
    // One more can neither be written nor read.
    let more = TransferDecoder.membersMax + 1
    #expect(throws: TransferValueError.invalid("a list of \(more) members")) {
      try One(value: Array(repeating: "", count: more)).bytes()
    }
    #expect(throws: TransferValueError.invalid("a list of \(more) members")) {
      try One(value: FieldList(repeating: Field("", ""), count: more)).bytes()
    }
    var list = most + [0, 0, 0, 0]
    list[0] += 1
    #expect(throws: TransferValueError.damaged("a list has \(more) members, and may have \(more - 1)")) {
      try One<[String]>(bytes: list[...])
    }
    // A claim alone.
    #expect(throws: TransferValueError.self) { try One<FieldList>(bytes: [255, 255, 255, 255]) }
    #expect(throws: TransferValueError.self) { try One<[UInt8]>(bytes: [255, 255, 255, 255]) }
    #expect(throws: TransferValueError.self) { try One<[Choice]>(bytes: [255, 0, 0, 0]) }
  }

  private indirect enum Tree: Codable, Equatable {
    case leaf
    case branch(Tree)
  }

  /// A value that contains values of its own type ends at a depth, however deep its bytes go.
  @Test func depthIsLimited() throws {
    func bytes(_ depth: Int) -> [UInt8] {
      Array(repeating: [6, 0, 0, 0] + Array("branch".utf8), count: depth).flatMap { $0 } + [4, 0, 0, 0]
        + Array("leaf".utf8)
    }
    _ = try One<Tree>(bytes: bytes(TransferDecoder.depthMax - 2)[...])
    for depth in [TransferDecoder.depthMax - 1, 100_000] {
      #expect(throws: TransferValueError.damaged("values lie too deep in one another")) {
        try One<Tree>(bytes: bytes(depth)[...])
      }
    }
  }

  @Test func valuesWithoutAForm() {
    #expect(throws: TransferValueError.invalid("an absent member of a list")) {
      try One(value: [Int?.none]).bytes()
    }
    #expect(throws: TransferValueError.invalid("a dictionary")) { try One(value: ["a": 1]).bytes() }
    #expect(throws: TransferValueError.invalid("a dictionary")) { try One(value: [1: 1]).bytes() }
  }

  private struct Ruled: TransferValue {
    var number: Int
    var invalidPart: String? { number == 0 ? "the number" : nil }
  }

  @Test func rulesHoldBothWays() throws {
    #expect(throws: TransferValueError.invalid("the number")) { try Ruled(number: 0).bytes() }
    let bytes = try Ruled(number: 1).bytes()
    #expect(throws: TransferValueError.damaged("the number is not valid")) {
      try Ruled(bytes: bytes.map { $0 == 1 ? 0 : $0 }[...])
    }
  }
}
