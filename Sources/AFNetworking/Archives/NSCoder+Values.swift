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

/// What the archives of this module are made of. Foundation ends the process for a key that is missing, if the decoder's
/// policy is to raise: here it is nil.
extension NSCoder {
  package func object<Kind: NSObject & NSCoding>(_ kind: Kind.Type = Kind.self, forKey key: String) -> Kind? {
    containsValue(forKey: key) ? decodeObject(of: kind, forKey: key) : nil
  }

  package func number(forKey key: String) -> UInt? {
    containsValue(forKey: key) ? UInt(clamping: decodeInt64(forKey: key)) : nil
  }

  package func encode(number: UInt, forKey key: String) { encode(Int64(clamping: number), forKey: key) }

  package func decimal(forKey key: String) -> Double? {
    containsValue(forKey: key) ? decodeDouble(forKey: key) : nil
  }

  package func flag(forKey key: String) -> Bool? { containsValue(forKey: key) ? decodeBool(forKey: key) : nil }

  package func text(forKey key: String) -> String? {
    object(NSString.self, forKey: key).map { String(describing: $0) }
  }

  package func texts(forKey key: String) -> [String]? {
    guard containsValue(forKey: key) else { return nil }
    let objects = decodeObject(of: [NSArray.self, NSString.self], forKey: key) as? [Any]
    return objects?.compactMap { ($0 as? NSString).map { String(describing: $0) } ?? $0 as? String }
  }

  package func encode(texts: [String], forKey key: String) {
    encode(NSArray(array: texts.map { NSString(string: $0) }), forKey: key)
  }

  package func textsByName(forKey key: String) -> [String: String]? {
    // Foundation takes a missing key for a broken archive if several classes are allowed.
    guard containsValue(forKey: key) else { return nil }
    return decodeObject(of: [NSDictionary.self, NSString.self], forKey: key) as? [String: String]
  }

  package func blocks(forKey key: String) -> [Data]? {
    guard containsValue(forKey: key) else { return nil }
    let objects = decodeObject(of: [NSArray.self, NSData.self], forKey: key) as? [Any]
    return objects?.compactMap { $0 as? Data ?? ($0 as? NSData).map { Data(referencing: $0) } }
  }

  package func encode(blocks: [Data], forKey key: String) {
    encode(NSArray(array: blocks.map { NSData(data: $0) }), forKey: key)
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
