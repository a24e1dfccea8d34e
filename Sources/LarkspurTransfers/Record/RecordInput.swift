import LarkspurBytes
import LarkspurHTTP

/// Reads the parts of a record, and throws `damaged` for bytes that are not what a function reads.
struct RecordInput {
  var reader: RecordReader

  private static let incomplete = TransferRecordError.damaged("a part is incomplete or impossible")

  private static func present<Value>(_ value: Value?) throws(TransferRecordError) -> Value {
    guard let value else { throw incomplete }
    return value
  }

  mutating func uint8() throws(TransferRecordError) -> UInt8 { try Self.present(reader.number(UInt8.self)) }
  mutating func uint32() throws(TransferRecordError) -> UInt32 { try Self.present(reader.number(UInt32.self)) }
  mutating func uint64() throws(TransferRecordError) -> UInt64 { try Self.present(reader.number(UInt64.self)) }
  mutating func signed() throws(TransferRecordError) -> Int64 { Int64(bitPattern: try uint64()) }
  mutating func int() throws(TransferRecordError) -> Int { try Self.present(Int(exactly: try signed())) }
  mutating func double() throws(TransferRecordError) -> Double { Double(bitPattern: try uint64()) }
  mutating func text() throws(TransferRecordError) -> String { try Self.present(reader.text()) }
  mutating func data() throws(TransferRecordError) -> [UInt8] { try Self.present(reader.data()) }
  mutating func optionalText() throws(TransferRecordError) -> String? { try Self.present(reader.optional()).text }

  /// Reads a byte that is 0 or 1.
  mutating func flag() throws(TransferRecordError) -> Bool {
    let byte = try uint8()
    guard byte <= 1 else { throw Self.incomplete }
    return byte == 1
  }

  /// Reads a byte that stands for a value.
  mutating func value<Value>(_ make: (UInt8) -> Value?) throws(TransferRecordError) -> Value {
    try Self.present(make(try uint8()))
  }

  /// Reads the number of members of a list.
  mutating func count(max: Int) throws(TransferRecordError) -> Int {
    let count = Int(try uint32())
    guard count <= max else { throw .damaged("a list has \(count) members, and may have \(max)") }
    return count
  }

  /// Reads a list of fields. Memory grows only with the bytes that are there, because each field takes some.
  mutating func fields() throws(TransferRecordError) -> FieldList {
    var fields: FieldList = []
    for _ in 0..<(try uint32()) { fields.append(Field(try text(), try text())) }
    return fields
  }
}

/// The parts that `RecordInput` reads.
extension RecordWriter {
  mutating func flag(_ flag: Bool) { number(UInt8(flag ? 1 : 0)) }
  mutating func signed(_ number: Int64) { self.number(UInt64(bitPattern: number)) }
  mutating func double(_ number: Double) { self.number(number.bitPattern) }

  mutating func present<Value>(_ value: Value?, _ write: (Value, inout RecordWriter) -> Void) {
    flag(value != nil)
    if let value { write(value, &self) }
  }

  mutating func list<Member>(_ members: [Member], _ write: (Member, inout RecordWriter) -> Void) {
    number(UInt32(clamping: members.count))
    for member in members { write(member, &self) }
  }

  mutating func fields(_ fields: FieldList) {
    list(fields) { field, writer in
      writer.text(field.name)
      writer.text(field.value)
    }
  }
}
