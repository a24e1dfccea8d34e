import Foundation

/// Reading of property lists, whose function takes a pointer for the format that it finds.
enum PropertyListReading {
  /// So much a list may come to, beyond twice the bytes that it has: one whose objects are not referred to twice has less than
  /// them.
  private static let growthMax = 1_000_000

  /// The format does not matter: the bytes say it themselves. A list that grows beyond all measure when it is read is no list.
  static func object(
    from data: Data, options: PropertyListSerialization.ReadOptions
  ) throws -> Any {
    if let list = BinaryPropertyList(data), list.hasMore(than: growthMax + 2 * data.count) {
      throw CocoaError(.propertyListReadCorrupt)
    }
    // Safe: there is no pointer.
    return try unsafe PropertyListSerialization.propertyList(from: data, options: options, format: nil)
  }
}
