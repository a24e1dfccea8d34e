import LarkspurBytes
import LarkspurHTTP

/// Reads the values that `TransferEncoder` has written. The bytes are untrusted.
///
/// A value has one form: all that can be read is written as the bytes that it was read from. A size is compared with the
/// remaining bytes before memory is allocated, a list grows with the bytes of its members, and the depth of values in
/// values is limited.
final class TransferDecoder: Decoder {
  /// Maximum number of members of a list: the tasks of a session.
  static let membersMax = TransferJournal.tasksMax
  /// Maximum depth of values in values. A list and each of its members count.
  static let depthMax = 16

  private var reader: RecordReader
  private var depth = 0

  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  private init(_ bytes: ArraySlice<UInt8>) { reader = RecordReader(bytes: bytes) }

  /// Reads a value that has all of the bytes.
  ///
  /// - Throws: `damaged`.
  static func value<Value: Decodable>(
    _ type: Value.Type, from bytes: ArraySlice<UInt8>
  ) throws(TransferValueError) -> Value {
    let decoder = TransferDecoder(bytes)
    do {
      let value = try decoder.read(type)
      guard decoder.reader.isAtEnd else { throw TransferValueError.damaged("bytes follow the last part") }
      return value
    } catch let error as TransferValueError {
      throw error
    } catch is DecodingError {
      throw impossible
    } catch {
      throw .damaged("\(error)")
    }
  }

  fileprivate static let impossible = TransferValueError.damaged("a part is incomplete or impossible")

  fileprivate func read<Value: Decodable>(_ type: Value.Type) throws -> Value {
    // The lists of most members.
    if type == TransferEncoder.bytes, let bytes = try present(reader.data()) as? Value { return bytes }
    if type == TransferEncoder.fields, let fields = try fields() as? Value { return fields }
    guard depth < Self.depthMax else { throw TransferValueError.damaged("values lie too deep in one another") }
    depth += 1
    defer { depth -= 1 }
    return try type.init(from: self)
  }

  private func fields() throws -> FieldList {
    var fields: FieldList = []
    for _ in 0..<(try count()) { fields.append(Field(try decode(String.self), try decode(String.self))) }
    return fields
  }

  private func count() throws -> Int {
    let count = Int(try decode(UInt32.self))
    guard count <= Self.membersMax else {
      throw TransferValueError.damaged("a list has \(count) members, and may have \(Self.membersMax)")
    }
    return count
  }

  private func present<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw Self.impossible }
    return value
  }

  /// The next text, which stays to be read.
  fileprivate var nextText: String? {
    var reader = reader
    return reader.text()
  }

  func container<Key>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Parts(decoder: self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    Members(decoder: self, count: try count())
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension TransferDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { false }

  func decode(_ type: Bool.Type) throws -> Bool {
    let byte = try decode(UInt8.self)
    guard byte <= 1 else { throw Self.impossible }
    return byte == 1
  }

  func decode(_ type: String.Type) throws -> String { try present(reader.text()) }
  func decode(_ type: Double.Type) throws -> Double { Double(bitPattern: try decode(UInt64.self)) }
  func decode(_ type: Float.Type) throws -> Float { Float(bitPattern: try decode(UInt32.self)) }
  func decode(_ type: Int.Type) throws -> Int { try wide() }
  func decode(_ type: Int8.Type) throws -> Int8 { try wide() }
  func decode(_ type: Int16.Type) throws -> Int16 { try wide() }
  func decode(_ type: Int32.Type) throws -> Int32 { Int32(bitPattern: try decode(UInt32.self)) }
  func decode(_ type: Int64.Type) throws -> Int64 { try wide() }
  func decode(_ type: UInt.Type) throws -> UInt { try wide() }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try present(reader.number(UInt8.self)) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try wide() }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try present(reader.number(UInt32.self)) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try present(reader.number(UInt64.self)) }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try read(type) }

  private func wide<Value: FixedWidthInteger>() throws -> Value {
    let number = try decode(UInt64.self)
    let value = Value(truncatingIfNeeded: number)
    guard UInt64(truncatingIfNeeded: value) == number else { throw Self.impossible }
    return value
  }
}

/// The parts of a structure, and the case of an enumeration.
private struct Parts<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: TransferDecoder
  var codingPath: [any CodingKey] { decoder.codingPath }

  /// The case of an enumeration.
  var allKeys: [Key] { decoder.nextText.flatMap { Key(stringValue: $0) }.map { [$0] } ?? [] }

  // The protocol's own functions for parts that may be absent call both.
  func contains(_ key: Key) -> Bool { true }

  func decodeNil(forKey key: Key) throws -> Bool { try !decoder.decode(Bool.self) }

  // The types of most parts, and of all others.
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try decoder.decode(type) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try decoder.decode(type) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try decoder.decode(type) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try decoder.decode(type) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try decoder.decode(type) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try decoder.decode(type) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try decoder.decode(type) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try decoder.read(type) }

  func nestedContainer<Other>(keyedBy type: Other.Type, forKey key: Key) throws -> KeyedDecodingContainer<Other> {
    // Texts can be equal and have other bytes.
    guard try decoder.decode(String.self).utf8.elementsEqual(key.stringValue.utf8) else {
      throw TransferDecoder.impossible
    }
    return decoder.container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try decoder.unkeyedContainer() }
  func superDecoder() -> any Decoder { decoder }
  func superDecoder(forKey key: Key) -> any Decoder { decoder }
}

/// The members of a list.
private struct Members: UnkeyedDecodingContainer {
  let decoder: TransferDecoder
  let count: Int?
  var currentIndex = 0
  var codingPath: [any CodingKey] { decoder.codingPath }
  var isAtEnd: Bool { currentIndex == count }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try next()
    return try decoder.read(type)
  }

  private mutating func next() throws {
    guard !isAtEnd else { throw TransferDecoder.impossible }
    currentIndex += 1
  }

  func decodeNil() -> Bool { false }

  mutating func nestedContainer<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    try next()
    return decoder.container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next()
    return try decoder.unkeyedContainer()
  }

  func superDecoder() -> any Decoder { decoder }
}
