import Foundation
import Larkspur
import Synchronization

/// Validates a response, and reads its bytes as JSON.
///
/// `application/json`, `text/json` and `text/javascript` are acceptable at first. The bytes are UTF-8, UTF-16 or UTF-32
/// (RFC 8259 8.1 and its predecessors); nothing, or a single space, is no document and no error.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private struct Options {
    var reading: JSONSerialization.ReadingOptions = []
    var removesNulls = false
  }

  private let options = Mutex(Options())

  /// Reads without options.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/json", "text/json", "text/javascript"]
  }

  /// - Parameter readingOptions: See ``readingOptions``.
  public convenience init(readingOptions: JSONSerialization.ReadingOptions) {
    self.init()
    self.readingOptions = readingOptions
  }

  /// The same as `init()`.
  open override class func serializer() -> AFJSONResponseSerializer { AFJSONResponseSerializer() }

  /// How `JSONSerialization` reads. None at first.
  open var readingOptions: JSONSerialization.ReadingOptions {
    get { options.withLock { $0.reading } }
    set { options.withLock { $0.reading = newValue } }
  }

  /// Whether nulls are taken out: see ``AFJSONObjectByRemovingKeysWithNullValues(_:_:)``. False at first.
  open var removesKeysWithNullValues: Bool {
    get { options.withLock { $0.removesNulls } }
    set { options.withLock { $0.removesNulls = newValue } }
  }

  /// Dictionaries, arrays, strings, numbers and `NSNull`. With a status that is not acceptable there is an object as well:
  /// many servers say there what is wrong.
  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data, !data.isEmpty else { return nil }
    // Rails answers `head :ok` with a space: it is to be nothing.
    if data.count == 1, data.first == UInt8(ascii: " ") { return nil }
    let options = options.withLock { $0 }
    do {
      let object = try JSONSerialization.jsonObject(with: data, options: options.reading)
      return options.removesNulls ? AFJSONObjectByRemovingKeysWithNullValues(object, options.reading) : object
    } catch let failure {
      leave(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let readingOptions = "readingOptions"
    static let removesNulls = "removesKeysWithNullValues"
  }

  /// Reads an archive of this class. What is missing there is as `init()` has it.
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

/// Takes all nulls out of a JSON object: keys whose value is null, and nulls in arrays, at every depth.
///
/// - Parameters:
///   - JSONObject: As `JSONSerialization` gives it.
///   - readingOptions: As AFNetworking has them: on Darwin they say whether the containers are mutable. Here they are values.
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
