import Foundation
import Larkspur
import Synchronization

/// Validates a response, and parses its bytes as JSON.
///
/// `application/json`, `text/json` and `text/javascript` are acceptable by default. The bytes are UTF-8, UTF-16 or
/// UTF-32 (RFC 8259 8.1 and its predecessors). An empty body, or a single space, gives no object and no error.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private struct Options {
    var reading: JSONSerialization.ReadingOptions = []
    var removesNulls = false
  }

  private let options = Mutex(Options())

  /// Creates a serializer that reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/json", "text/json", "text/javascript"]
  }

  /// Creates a serializer with reading options.
  ///
  /// - Parameter readingOptions: See ``readingOptions``.
  public convenience init(readingOptions: JSONSerialization.ReadingOptions) {
    self.init()
    self.readingOptions = readingOptions
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFJSONResponseSerializer { AFJSONResponseSerializer() }

  /// The options for `JSONSerialization`. Empty by default.
  open var readingOptions: JSONSerialization.ReadingOptions {
    get { options.withLock { $0.reading } }
    set { options.withLock { $0.reading = newValue } }
  }

  /// Whether nulls are removed: see ``AFJSONObjectByRemovingKeysWithNullValues(_:_:)``. `false` by default.
  open var removesKeysWithNullValues: Bool {
    get { options.withLock { $0.removesNulls } }
    set { options.withLock { $0.removesNulls = newValue } }
  }

  /// Returns the parsed JSON: dictionaries, arrays, strings, numbers and `NSNull`. A response with an unacceptable
  /// status gives an object, too, because many servers describe the problem in its body.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    json(for: response, data: data, error: error, keepsNulls: false)
  }

  /// Returns the parsed JSON.
  ///
  /// - Parameter keepsNulls: Whether nulls stay, whatever ``removesKeysWithNullValues`` is.
  func json(for response: URLResponse?, data: Data?, error: NSErrorPointer, keepsNulls: Bool) -> Any? {
    guard isReadable(response, data, error), let data, !data.isEmpty else { return nil }
    // Rails answers `head :ok` with a single space, which counts as an empty body.
    if data.count == 1, data.first == UInt8(ascii: " ") { return nil }
    let options = options.withLock { $0 }
    do {
      let object = try JSONSerialization.jsonObject(with: data, options: options.reading)
      let removesNulls = options.removesNulls && !keepsNulls
      return removesNulls ? AFJSONObjectByRemovingKeysWithNullValues(object, options.reading) : object
    } catch let failure {
      store(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let readingOptions = "readingOptions"
    static let removesNulls = "removesKeysWithNullValues"
  }

  /// Creates a serializer from an archive. Settings that are missing in the archive have the defaults of `init()`,
  /// except ``AFHTTPResponseSerializer/acceptableContentTypes``, which is `nil`.
  public required init?(coder: NSCoder) {
    super.init(coder: coder)
    options.withLock { options in
      options.reading = JSONSerialization.ReadingOptions(rawValue: coder.number(forKey: Key.readingOptions) ?? 0)
      options.removesNulls = coder.flag(forKey: Key.removesNulls) ?? false
    }
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    let options = options.withLock { $0 }
    coder.encode(number: options.reading.rawValue, forKey: Key.readingOptions)
    coder.encode(options.removesNulls, forKey: Key.removesNulls)
  }

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = super.copy(with: zone)
    let options = options.withLock { $0 }
    (copy as? AFJSONResponseSerializer)?.options.withLock { $0 = options }
    return copy
  }
}

/// Removes all nulls from a JSON object at every depth: keys whose value is null, and nulls in arrays.
///
/// - Parameters:
///   - JSONObject: An object that `JSONSerialization` returned.
///   - readingOptions: No effect. AFNetworking has this parameter: on Darwin it says whether the containers are
///     mutable. Here the containers are values.
public func AFJSONObjectByRemovingKeysWithNullValues(
  _ JSONObject: Any, _ readingOptions: JSONSerialization.ReadingOptions
) -> Any {
  if let array = JSONObject as? [Any] {
    return array.compactMap { value in
      value is NSNull ? nil : AFJSONObjectByRemovingKeysWithNullValues(value, readingOptions)
    }
  }
  if let dictionary = JSONObject as? [String: Any] {
    return dictionary.compactMapValues { value in
      value is NSNull ? nil : AFJSONObjectByRemovingKeysWithNullValues(value, readingOptions)
    }
  }
  return JSONObject
}
