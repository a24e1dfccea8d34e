import Foundation
import Larkspur
import Synchronization

/// Writes parameters as JSON (`application/json`), for methods whose parameters do not go into the URL. Requests
/// without parameters get no body.
open class AFJSONRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  /// The options for `JSONSerialization`. Empty by default.
  open var writingOptions: JSONSerialization.WritingOptions {
    get { state.withLock { $0.writingOptions } }
    set { state.withLock { $0.writingOptions = newValue } }
  }

  public override init() { super.init() }

  /// Creates a serializer with writing options.
  public convenience init(writingOptions: JSONSerialization.WritingOptions) {
    self.init()
    self.writingOptions = writingOptions
  }

  open override class func serializer() -> AFJSONRequestSerializer { AFJSONRequestSerializer() }

  /// Reads a serializer from an archive, with its writing options.
  public required init?(coder decoder: NSCoder) { super.init(coder: decoder) }

  override func blank() -> AFHTTPRequestSerializer? {
    type(of: self) == AFJSONRequestSerializer.self ? AFJSONRequestSerializer() : super.blank()
  }

  override func body(of parameters: Any?, for request: URLRequest) throws -> (type: String, bytes: Data)? {
    guard let parameters else { return nil }
    guard JSONSerialization.isValidJSONObject(parameters) else {
      throw RequestProblem.make(
        .cannotDecodeContentData, "The `parameters` argument is not valid JSON.", request: request)
    }
    return (
      "application/json", try JSONSerialization.data(withJSONObject: parameters, options: writingOptions)
    )
  }
}
