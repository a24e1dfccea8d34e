import Foundation
import Larkspur

/// The domain of ``AFJSONPatchError`` as an `NSError`.
public let AFJSONPatchErrorDomain = "com.alamofire.error.json-patch"

/// The reason why a JSON Patch cannot be read or applied.
public struct AFJSONPatchError: Error, Hashable, Sendable {
  /// The kinds of errors. Texts are the JSON Pointers that the operation contains.
  public enum Reason: Error, Hashable, Sendable {
    /// The patch is not an array of objects (RFC 6902, section 3).
    case notAPatch
    /// The operation lacks a member that it needs: `op`, `path`, `from` or `value` (section 4).
    case missingMember(String)
    /// A member of the operation is not a string.
    case invalidMember(String)
    /// The operation's `op` is not among the six defined ones (section 4).
    case unknownOperation(String)
    /// The text is not a JSON Pointer (RFC 6901, section 3).
    case invalidPointer(String)
    /// The value contains something that JSON does not have, such as a date.
    case notJSON(String)
    /// The document has no value there, or no object or array to add to. An array has no element whose index has a
    /// leading zero or lies after the end (RFC 6901, section 4).
    case missingTarget(String)
    /// The document has another value there (RFC 6902, section 4.6).
    case testFailed(String)
    /// The operation removes the whole document, and puts nothing in its place.
    case removesDocument
    /// The target of the move lies within the value that is moved (section 4.4).
    case movesIntoItself(String)
    /// The object has a member whose name has other code points, and is equal to this one by Unicode's canonical
    /// equivalence. JSON distinguishes them; a Swift dictionary cannot hold both.
    case indistinguishableName(String)
    /// The document would be deeper than ``AFJSONPatchLimits/depthMax``.
    case tooDeep(String)
    /// The patch copies or moves more than ``AFJSONPatchLimits/carriedValuesMax`` or
    /// ``AFJSONPatchLimits/carriedBytesMax``, or shifts more than ``AFJSONPatchLimits/shiftedElementsMax``.
    case tooMuchWork(String)
  }

  /// The kind of error.
  public let reason: Reason

  /// The position of the operation in the patch, or `nil` if the error is not of one operation.
  public let operationIndex: Int?

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - reason: The kind of error.
  ///   - operationIndex: The position of the operation in its patch.
  public init(_ reason: Reason, operationIndex: Int? = nil) {
    self.reason = reason
    self.operationIndex = operationIndex
  }
}

extension AFJSONPatchError: CustomNSError {
  /// ``AFJSONPatchErrorDomain``.
  public static var errorDomain: String { AFJSONPatchErrorDomain }

  /// The code of the error as an `NSError`: a number of ``reason-swift.property``, from 1.
  public var errorCode: Int {
    switch reason {
    case .notAPatch: 1
    case .missingMember: 2
    case .invalidMember: 3
    case .unknownOperation: 4
    case .invalidPointer: 5
    case .notJSON: 6
    case .missingTarget: 7
    case .testFailed: 8
    case .removesDocument: 9
    case .movesIntoItself: 10
    case .indistinguishableName: 11
    case .tooDeep: 12
    case .tooMuchWork: 13
    }
  }

  /// The description and the failure reason of the error as an `NSError`.
  public var errorUserInfo: [String: Any] { NSError.entries(forMessage: description) }
}

extension AFJSONPatchError: CustomStringConvertible {
  public var description: String {
    let position = operationIndex.map { " (operation \($0))" } ?? ""
    return "Invalid JSON Patch: \(message)\(position)"
  }

  private var message: String {
    switch reason {
    case .notAPatch: "not an array of operations"
    case .missingMember(let name): "the member \"\(name)\" is missing"
    case .invalidMember(let name): "the member \"\(name)\" is not a string"
    case .unknownOperation(let name): "unknown operation \"\(name)\""
    case .invalidPointer(let text): "\"\(text)\" is not a JSON Pointer"
    case .notJSON(let path): "the value for \"\(path)\" is not JSON"
    case .missingTarget(let path): "\"\(path)\" does not exist"
    case .testFailed(let path): "\"\(path)\" has another value"
    case .removesDocument: "the operation removes the whole document"
    case .movesIntoItself(let path): "\"\(path)\" lies within the value that is moved"
    case .indistinguishableName(let path): "\"\(path)\" differs from another name by normalization only"
    case .tooDeep(let path): "the document gets too deep at \"\(path)\""
    case .tooMuchWork(let path): "the patch grows the document too much at \"\(path)\""
    }
  }
}
