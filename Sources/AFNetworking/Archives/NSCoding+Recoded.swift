import Foundation

extension NSCoding where Self: NSObject {
  /// Returns an object of the same class that has been encoded and decoded: the way to make an object of a subclass,
  /// whose initializers are not known.
  ///
  /// - Returns: The object, or `nil` if the class cannot read what it has written.
  func recoded() -> Self? {
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    encode(with: archiver)
    archiver.finishEncoding()
    guard let unarchiver = try? NSKeyedUnarchiver(forReadingFrom: archiver.encodedData) else { return nil }
    unarchiver.requiresSecureCoding = false
    return type(of: self).init(coder: unarchiver)
  }
}
