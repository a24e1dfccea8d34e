import Foundation

/// The program's data of a stored response in a form that can be written: the types of a property list.
indirect enum StoredUserInfo: Codable {
  case text(String)
  case flag(Bool)
  case integer(Int64)
  case number(Double)
  /// An `NSNumber`, which converts to each type that its value fits. A flag in an `NSNumber` is read back as 0 or 1.
  case boxedInteger(Int64)
  case boxedUnsigned(UInt64)
  case boxedNumber(Double)
  case date(Double)
  case data(Data)
  case list([StoredUserInfo])
  case table([String: StoredUserInfo])

  /// Converts a value, or returns `nil` if a part of it cannot be written.
  init?(_ value: Any) {
    switch value {
    case let text as String: self = .text(text)
    // Test for `NSNumber` first: it also casts to `Bool` and to number types.
    case let number as NSNumber where type(of: value) is NSNumber.Type:
      self =
        (number as? Int64).map(Self.boxedInteger) ?? (number as? UInt64).map(Self.boxedUnsigned)
        ?? .boxedNumber(number.doubleValue)
    case let flag as Bool: self = .flag(flag)
    case let integer as any BinaryInteger: self = .integer(Int64(clamping: integer))
    case let number as any BinaryFloatingPoint: self = .number(Double(number))
    case let date as Date: self = .date(date.timeIntervalSinceReferenceDate)
    case let data as Data: self = .data(data)
    case let list as [Any]:
      let values = list.compactMap(StoredUserInfo.init)
      guard values.count == list.count else { return nil }
      self = .list(values)
    case let table as [AnyHashable: Any]:
      var values: [String: StoredUserInfo] = [:]
      for (key, value) in table {
        guard let name = key.base as? String, let value = StoredUserInfo(value) else { return nil }
        values[name] = value
      }
      self = .table(values)
    default: return nil
    }
  }

  var value: Any {
    switch self {
    case .text(let text): text
    case .flag(let flag): flag
    case .integer(let integer): Int(clamping: integer)
    case .number(let number): number
    case .boxedInteger(let integer): NSNumber(value: integer)
    case .boxedUnsigned(let integer): NSNumber(value: integer)
    case .boxedNumber(let number): NSNumber(value: number)
    case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
    case .data(let data): data
    case .list(let values): values.map(\.value)
    case .table(let values): values.mapValues(\.value)
    }
  }

  static func bytes(of info: [AnyHashable: Any]?) -> [UInt8] {
    guard let info, let stored = StoredUserInfo(info), let data = try? JSONEncoder().encode(stored) else { return [] }
    return [UInt8](data)
  }

  static func info(of bytes: [UInt8]) -> [AnyHashable: Any]? {
    guard !bytes.isEmpty, case .table(let values)? = try? JSONDecoder().decode(StoredUserInfo.self, from: Data(bytes))
    else { return nil }
    return values.mapValues(\.value)
  }
}
