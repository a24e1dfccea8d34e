import Foundation
import LarkspurBytes

/// Reads values from archives, which may contain anything: each value has the expected type or is `nil`.
///
/// Foundation ends the process if a key is missing and the decoder's policy is to raise, and, whatever the policy, if a
/// value has a class that is not allowed. These functions therefore look for the key first, allow the classes that
/// archives usually contain for each value, and check the type afterwards.
extension NSCoder {
  private static var valueClasses: [AnyClass] {
    [
      NSString.self, NSNumber.self, NSData.self, NSDate.self, NSURL.self, NSUUID.self, NSArray.self, NSDictionary.self,
      NSSet.self, NSNull.self,
    ]
  }

  /// - Parameter more: The classes of members, beside the usual ones.
  package func object<Kind: NSObject & NSCoding>(
    _ kind: Kind.Type = Kind.self, with more: [AnyClass] = [], forKey key: String
  ) -> Kind? {
    containsValue(forKey: key) ? decodeObject(of: Self.valueClasses + more + [kind], forKey: key) as? Kind : nil
  }

  /// - Returns: The number, or `nil` if it is missing or negative.
  package func number(forKey key: String) -> UInt? {
    containsValue(forKey: key) ? UInt(exactly: decodeInt64(forKey: key)) : nil
  }

  package func encode(number: UInt, forKey key: String) { encode(Int64(clamping: number), forKey: key) }

  /// - Returns: The number, or `nil` if it is missing or not a number.
  package func decimal(forKey key: String) -> Double? {
    guard containsValue(forKey: key) else { return nil }
    let number = decodeDouble(forKey: key)
    return number.isNaN ? nil : number
  }

  package func flag(forKey key: String) -> Bool? { containsValue(forKey: key) ? decodeBool(forKey: key) : nil }

  package func text(forKey key: String) -> String? {
    object(NSString.self, forKey: key).map { String(describing: $0) }
  }

  /// - Returns: A text without control characters, or `nil`.
  func line(forKey key: String) -> String? {
    text(forKey: key).flatMap { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } ? nil : $0 }
  }

  func url(forKey key: String) -> URL? { object(NSURL.self, forKey: key) as URL? }

  func bytes(forKey key: String) -> Data? { object(NSData.self, forKey: key).map { Data(referencing: $0) } }

  private func list(forKey key: String) -> [Any]? { object(NSArray.self, forKey: key).map { $0 as? [Any] ?? [] } }

  package func texts(forKey key: String) -> [String]? {
    list(forKey: key)?.compactMap { ($0 as? NSString).map { String(describing: $0) } ?? $0 as? String }
  }

  package func encode(texts: [String], forKey key: String) {
    encode(NSArray(array: texts.map { NSString(string: $0) }), forKey: key)
  }

  package func textsByName(forKey key: String) -> [String: String]? {
    object(NSDictionary.self, forKey: key) as? [String: String]
  }

  package func blocks(forKey key: String) -> [Data]? {
    list(forKey: key)?.compactMap { $0 as? Data ?? ($0 as? NSData).map { Data(referencing: $0) } }
  }

  package func encode(blocks: [Data], forKey key: String) {
    encode(NSArray(array: blocks.map { NSData(data: $0) }), forKey: key)
  }
}

extension String {
  /// Whether the text is a token (RFC 9110 5.6.2), such as a method or the name of a field.
  var isToken: Bool { !isEmpty && utf8.allSatisfy(Scan.isToken) }
}
