import Foundation

extension NSCoding where Self: NSObject {
  /// Returns a copy of the object, made by encoding and decoding. This also works for a subclass with unknown
  /// initializers.
  ///
  /// - Returns: The copy, or `nil` if the class cannot decode the object that it has encoded.
  func recoded() -> Self? {
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    encode(with: archiver)
    archiver.finishEncoding()
    guard let unarchiver = try? NSKeyedUnarchiver(forReadingFrom: archiver.encodedData) else { return nil }
    unarchiver.requiresSecureCoding = false
    return type(of: self).init(coder: unarchiver)
  }
}
