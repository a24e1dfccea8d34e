import Foundation

/// Reading of property lists, whose function takes a pointer for the format that it finds.
enum PropertyListReading {
  /// The format does not matter: the bytes say it themselves.
  static func object(
    from data: Data, options: PropertyListSerialization.ReadOptions
  ) throws -> Any {
    // Safe: there is no pointer.
    try unsafe PropertyListSerialization.propertyList(from: data, options: options, format: nil)
  }
}
