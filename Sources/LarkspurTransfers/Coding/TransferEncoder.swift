import LarkspurBytes
import LarkspurHTTP

/// Writes a `Codable` value as bytes, which `TransferDecoder` reads.
///
/// The parts of a value stand one after another, in the order of the declaration, without names. Each value has one form:
///
/// - An integer or a floating-point number: its bytes, little-endian. Integers of 8 and 32 bits keep their size, all
///   others have 64 bits.
/// - A truth value: one byte, 0 or 1.
/// - A text or bytes: the size, a number of 32 bits, and then the bytes.
/// - A value that may be absent: one byte, 0 or 1, and then the value.
/// - A list: the number of members, a number of 32 bits, and then the members.
/// - An enumeration with associated values: the name of the case, and then the values.
///
/// Dictionaries, and lists of values that may be absent, have no form.
final class TransferEncoder: Encoder {
  fileprivate var writer = RecordWriter()
  private var hasDictionary = false

  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  /// - Throws: `invalid` for a value without a form.
  static func bytes(of value: some Encodable, after head: [UInt8] = []) throws(TransferValueError) -> [UInt8] {
    let encoder = TransferEncoder()
    encoder.writer.bytes = head
    do {
      try encoder.write(value)
    } catch {
      throw error as? TransferValueError ?? .invalid("a part")
    }
    if encoder.hasDictionary { throw .invalid("a dictionary") }
    return encoder.writer.bytes
  }

  fileprivate func write<Value: Encodable>(_ value: Value) throws {
    // The lists of most members.
    if Value.self == Self.bytes, let bytes = value as? [UInt8] {
      writer.data(bytes)
    } else if Value.self == Self.fields, let fields = value as? FieldList {
      try Self.check(count: fields.count)
      writer.number(UInt32(clamping: fields.count))
      for field in fields {
        writer.text(field.name)
        writer.text(field.value)
      }
    } else {
      try value.encode(to: self)
    }
  }

  /// - Throws: `invalid` for more members than a decoder reads.
  fileprivate static func check(count: Int) throws {
    if count > TransferDecoder.membersMax { throw TransferValueError.invalid("a list of \(count) members") }
  }

  // Performance: the runtime looks for the type of a list at each use.
  static let bytes: Any.Type = [UInt8].self
  static let fields: Any.Type = FieldList.self

  fileprivate func writePresent<Value: Encodable>(_ value: Value?) throws {
    writer.number(UInt8(value == nil ? 0 : 1))
    if let value { try write(value) }
  }

  func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    // A key type that accepts any number belongs to a dictionary. The keys of a structure accept no numbers.
    if type.init(intValue: -1) != nil { hasDictionary = true }
    return KeyedEncodingContainer(Parts(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    defer { writer.number(UInt32(0)) }
    return Members(encoder: self, start: writer.bytes.count)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension TransferEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { throw TransferValueError.invalid("an absent member of a list") }
  func encode(_ value: Bool) { writer.number(UInt8(value ? 1 : 0)) }
  func encode(_ value: String) { writer.text(value) }
  func encode(_ value: Double) { writer.number(value.bitPattern) }
  func encode(_ value: Float) { writer.number(value.bitPattern) }
  func encode(_ value: Int) { wide(value) }
  func encode(_ value: Int8) { wide(value) }
  func encode(_ value: Int16) { wide(value) }
  func encode(_ value: Int32) { writer.number(UInt32(bitPattern: value)) }
  func encode(_ value: Int64) { wide(value) }
  func encode(_ value: UInt) { wide(value) }
  func encode(_ value: UInt8) { writer.number(value) }
  func encode(_ value: UInt16) { wide(value) }
  func encode(_ value: UInt32) { writer.number(value) }
  func encode(_ value: UInt64) { writer.number(value) }
  func encode<Value: Encodable>(_ value: Value) throws { try write(value) }

  fileprivate func setNumber(_ number: UInt32, at start: Int) {
    for index in 0..<4 { writer.bytes[start + index] = UInt8(truncatingIfNeeded: number >> UInt32(8 * index)) }
  }

  private func wide(_ value: some FixedWidthInteger) { writer.number(UInt64(truncatingIfNeeded: value)) }
}

/// The parts of a structure, and the case of an enumeration.
private struct Parts<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: TransferEncoder
  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) { encoder.encode(false) }

  // The types of most parts, and of all others.
  func encode(_ value: Bool, forKey key: Key) { encoder.encode(value) }
  func encode(_ value: String, forKey key: Key) { encoder.encode(value) }
  func encode(_ value: Double, forKey key: Key) { encoder.encode(value) }
  func encode(_ value: Int, forKey key: Key) { encoder.encode(value) }
  func encode(_ value: Int64, forKey key: Key) { encoder.encode(value) }
  func encode(_ value: UInt32, forKey key: Key) { encoder.encode(value) }
  func encode(_ value: UInt64, forKey key: Key) { encoder.encode(value) }
  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try encoder.write(value) }

  // For each of these types the protocol has a separate default implementation, which writes nothing for an absent
  // value.
  func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try encoder.writePresent(value) }
  func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws { try encoder.writePresent(value) }

  func nestedContainer<Other>(keyedBy type: Other.Type, forKey key: Key) -> KeyedEncodingContainer<Other> {
    encoder.encode(key.stringValue)
    return encoder.container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder.unkeyedContainer() }
  func superEncoder() -> any Encoder { encoder }
  func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

/// The members of a list. Each one adds to the number before them.
private struct Members: UnkeyedEncodingContainer {
  let encoder: TransferEncoder
  let start: Int
  var count = 0
  var codingPath: [any CodingKey] { [] }

  mutating func encode<Value: Encodable>(_ value: Value) throws {
    add()
    try TransferEncoder.check(count: count)
    try encoder.write(value)
  }

  func encodeNil() throws { try encoder.encodeNil() }

  mutating func nestedContainer<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    add()
    return encoder.container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    add()
    return encoder.unkeyedContainer()
  }

  func superEncoder() -> any Encoder { encoder }

  private mutating func add() {
    count += 1
    encoder.setNumber(UInt32(clamping: count), at: start)
  }
}
