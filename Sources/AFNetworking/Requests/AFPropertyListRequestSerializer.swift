import Foundation
import Larkspur
import Synchronization

/// Writes parameters as a property list (`application/x-plist`), for methods whose parameters do not go into the URL.
/// Requests without parameters get no body.
open class AFPropertyListRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  /// The format of property lists. XML by default. `.openStep` is an error: Foundation cannot write this format.
  open var format: PropertyListSerialization.PropertyListFormat {
    get { state.withLock { $0.format } }
    set { state.withLock { $0.format = newValue } }
  }

  /// No effect: Foundation defines no write options.
  open var writeOptions: PropertyListSerialization.WriteOptions {
    get { state.withLock { $0.writeOptions } }
    set { state.withLock { $0.writeOptions = newValue } }
  }

  public override init() { super.init() }

  /// Creates a serializer with a format and options.
  public convenience init(
    format: PropertyListSerialization.PropertyListFormat, writeOptions: PropertyListSerialization.WriteOptions
  ) {
    self.init()
    self.format = format
    self.writeOptions = writeOptions
  }

  open override class func serializer() -> AFPropertyListRequestSerializer { AFPropertyListRequestSerializer() }

  /// Reads a serializer from an archive, with its format and options.
  public required init?(coder decoder: NSCoder) { super.init(coder: decoder) }

  override func blank() -> AFHTTPRequestSerializer? {
    type(of: self) == AFPropertyListRequestSerializer.self ? AFPropertyListRequestSerializer() : super.blank()
  }

  override func body(of parameters: Any?, for request: URLRequest) throws -> (type: String, bytes: Data)? {
    guard let parameters else { return nil }
    // Foundation ends the process for this format.
    guard format != .openStep else { throw CocoaError(.propertyListWriteInvalid) }
    let bytes = try PropertyListSerialization.data(
      fromPropertyList: parameters, format: format, options: writeOptions)
    return ("application/x-plist", bytes)
  }
}
