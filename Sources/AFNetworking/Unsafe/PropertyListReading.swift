import Foundation

/// Reads property lists. Foundation's function takes a pointer for the format that it finds, so the call is unsafe.
enum PropertyListReading {
  /// The maximum expanded size of a list in units of `BinaryPropertyList`, in addition to twice its number of bytes. A
  /// list without shared objects expands to less than its number of bytes. A unit takes about 100 bytes of memory: a
  /// list of a few hundred bytes takes 10 MB at most.
  private static let growthMax = 100_000

  /// Reads a property list of any format. A binary list that expands beyond the limit fails with
  /// `propertyListReadCorrupt`.
  static func object(
    from data: Data, options: PropertyListSerialization.ReadOptions
  ) throws -> Any {
    if let list = BinaryPropertyList(data), list.hasMore(than: growthMax + 2 * data.count) {
      throw CocoaError(.propertyListReadCorrupt)
    }
    // Safe: the pointer argument is `nil`.
    return try unsafe PropertyListSerialization.propertyList(from: data, options: options, format: nil)
  }
}
