import Foundation
import Larkspur
import Synchronization

/// Validates a response, and parses its bytes as a property list, XML or binary.
///
/// `application/x-plist` is acceptable by default.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private struct Options {
    var format = PropertyListSerialization.PropertyListFormat.xml
    var reading: PropertyListSerialization.ReadOptions = []
  }

  private let options = Mutex(Options())

  /// Creates a serializer that reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/x-plist"]
  }

  /// Creates a serializer with a format and options.
  ///
  /// - Parameters:
  ///   - format: See ``format``.
  ///   - readOptions: See ``readOptions``.
  public convenience init(
    format: PropertyListSerialization.PropertyListFormat, readOptions: PropertyListSerialization.ReadOptions
  ) {
    self.init()
    self.format = format
    self.readOptions = readOptions
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFPropertyListResponseSerializer { AFPropertyListResponseSerializer() }

  /// Stored, but without effect, as in AFNetworking: the bytes themselves state their format.
  open var format: PropertyListSerialization.PropertyListFormat {
    get { options.withLock { $0.format } }
    set { options.withLock { $0.format = newValue } }
  }

  /// The options for `PropertyListSerialization`. Empty by default.
  open var readOptions: PropertyListSerialization.ReadOptions {
    get { options.withLock { $0.reading } }
    set { options.withLock { $0.reading = newValue } }
  }

  /// Returns the parsed property list: dictionaries, arrays, strings, numbers, dates and `Data`.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data else { return nil }
    do {
      return try PropertyListReading.object(from: data, options: readOptions)
    } catch let failure {
      store(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let format = "format"
    static let readOptions = "readOptions"
  }

  /// Creates a serializer from an archive. Settings that are missing in the archive have the defaults of `init()`,
  /// except ``AFHTTPResponseSerializer/acceptableContentTypes``, which is `nil`.
  public required init?(coder: NSCoder) {
    super.init(coder: coder)
    options.withLock { options in
      let format = coder.number(forKey: Key.format)
      options.format = format.flatMap(PropertyListSerialization.PropertyListFormat.init(rawValue:)) ?? .xml
      options.reading = PropertyListSerialization.ReadOptions(rawValue: coder.number(forKey: Key.readOptions) ?? 0)
    }
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    let options = options.withLock { $0 }
    coder.encode(number: options.format.rawValue, forKey: Key.format)
    coder.encode(number: options.reading.rawValue, forKey: Key.readOptions)
  }

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = super.copy(with: zone)
    let options = options.withLock { $0 }
    (copy as? AFPropertyListResponseSerializer)?.options.withLock { $0 = options }
    return copy
  }
}
