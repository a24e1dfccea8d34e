import Foundation
import Larkspur
import Synchronization

/// Validates a response, and reads its bytes as a property list, XML or binary.
///
/// `application/x-plist` is acceptable at first.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private struct Options {
    var format = PropertyListSerialization.PropertyListFormat.xml
    var reading: PropertyListSerialization.ReadOptions = []
  }

  private let options = Mutex(Options())

  /// Reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/x-plist"]
  }

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

  /// The same as `init()`.
  open override class func serializer() -> AFPropertyListResponseSerializer { AFPropertyListResponseSerializer() }

  /// Kept, and of no effect, as in AFNetworking: the bytes say what format they are.
  open var format: PropertyListSerialization.PropertyListFormat {
    get { options.withLock { $0.format } }
    set { options.withLock { $0.format = newValue } }
  }

  /// How `PropertyListSerialization` reads. None at first.
  open var readOptions: PropertyListSerialization.ReadOptions {
    get { options.withLock { $0.reading } }
    set { options.withLock { $0.reading = newValue } }
  }

  /// Dictionaries, arrays, strings, numbers, dates and `Data`.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data else { return nil }
    do {
      return try PropertyListReading.object(from: data, options: readOptions)
    } catch let failure {
      leave(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let format = "format"
    static let readOptions = "readOptions"
  }

  /// Reads an archive of this class. What is missing there is as `init()` has it.
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
