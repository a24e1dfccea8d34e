import Foundation
import Larkspur

/// The operations of JSON Patch (RFC 6902, section 4).
public enum AFJSONPatchOperationType: UInt, Hashable, Sendable, CaseIterable {
  /// `add`: adds a value to an object or an array, or replaces a member of an object.
  case addOperationType = 1
  /// `remove`: removes a value.
  case removeOperationType = 2
  /// `replace`: gives an existing place another value.
  case replaceOperationType = 3
  /// `move`: removes a value, and adds it in another place.
  case moveOperationType = 4
  /// `copy`: adds the value of another place.
  case copyOperationType = 5
  /// `test`: compares a value. If it differs, the whole patch fails.
  case testOperationType = 6

  /// The operation's name in a patch.
  var name: String {
    switch self {
    case .addOperationType: "add"
    case .removeOperationType: "remove"
    case .replaceOperationType: "replace"
    case .moveOperationType: "move"
    case .copyOperationType: "copy"
    case .testOperationType: "test"
    }
  }

  /// Whether the operation has a value.
  var hasValue: Bool { self == .addOperationType || self == .replaceOperationType || self == .testOperationType }

  /// Whether the operation has an originating path.
  var hasOrigin: Bool { self == .moveOperationType || self == .copyOperationType }
}

/// One operation of a JSON Patch (RFC 6902), a change of a JSON document.
///
/// ```swift
/// let patch = try AFJSONPatchOperation.operations(withPatch: JSONSerialization.jsonObject(with: body))
/// resource = try AFJSONPatchOperation.apply(patch, to: resource)
/// ```
///
/// AFNetworking's companion AFRocketClient has this class, with the properties and the functions that create
/// operations. An operation does not change once it is created. Safe to use from any thread, unless its ``value``
/// contains objects that are not, such as `NSMutableArray`.
open class AFJSONPatchOperation: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// The type of the operation.
  public let type: AFJSONPatchOperationType

  /// The place of the change, as a JSON Pointer (RFC 6901): `/songs/0/title`, or empty for the whole document.
  public let path: String!

  /// The originating place of a `move` or `copy`, or `nil`.
  public let from: String!

  /// The value of an `add`, `replace` or `test`: an object of `JSONSerialization`, or a Swift value in its place. `nil`
  /// for other operations. JSON's null is `NSNull`.
  public let value: Any!

  /// Creates an operation of any type.
  ///
  /// - Parameters:
  ///   - type: The type.
  ///   - path: See ``path``. A text that is not a JSON Pointer makes ``apply(to:limits:)`` fail.
  ///   - from: See ``from``. Ignored unless the type is `move` or `copy`; `nil` stands for the whole document then.
  ///   - value: See ``value``. Ignored unless the type is `add`, `replace` or `test`; `nil` stands for null then.
  public required init(type: AFJSONPatchOperationType, path: String, from: String? = nil, value: Any? = nil) {
    self.type = type
    self.path = path
    self.from = type.hasOrigin ? from ?? "" : nil
    self.value = type.hasValue ? value ?? NSNull() : nil
    super.init()
  }

  // MARK: - AFRocketClient's names

  /// Creates an `add` operation.
  public class func addOperation(withPath path: String, value: Any?) -> Self {
    Self(type: .addOperationType, path: path, value: value)
  }

  /// Creates a `remove` operation.
  public class func removeOperation(withPath path: String) -> Self { Self(type: .removeOperationType, path: path) }

  /// Creates a `replace` operation.
  public class func replaceOperation(withPath path: String, value: Any?) -> Self {
    Self(type: .replaceOperationType, path: path, value: value)
  }

  /// Creates a `move` operation.
  public class func moveOperation(from fromPath: String, to toPath: String) -> Self {
    Self(type: .moveOperationType, path: toPath, from: fromPath)
  }

  /// Creates a `copy` operation.
  public class func copyOperation(from fromPath: String, to toPath: String) -> Self {
    Self(type: .copyOperationType, path: toPath, from: fromPath)
  }

  /// Creates a `test` operation.
  public class func testOperation(withPath path: String, value: Any?) -> Self {
    Self(type: .testOperationType, path: path, value: value)
  }

  // MARK: - Dictionaries

  /// Creates an operation from a JSON object: `["op": "add", "path": "/a", "value": 1]`. Members that the operation
  /// does not have are ignored.
  ///
  /// AFRocketClient accepts an operation without a value, and gives no error for an unknown `op`.
  ///
  /// - Throws: An ``AFJSONPatchError`` if a member is missing or not a string, `op` is unknown, or a path is not a JSON
  ///   Pointer.
  public required convenience init(dictionary: [AnyHashable: Any]!) throws {
    let dictionary = dictionary ?? [:]
    do throws(AFJSONPatchError.Reason) {
      let name = try Self.text("op", of: dictionary)
      guard let type = AFJSONPatchOperationType.allCases.first(where: { $0.name == name }) else {
        throw .unknownOperation(name)
      }
      let path = try JSONPointer(Self.text("path", of: dictionary)).text
      let from = type.hasOrigin ? try JSONPointer(Self.text("from", of: dictionary)).text : nil
      let value = dictionary["value"]
      if type.hasValue, value == nil { throw .missingMember("value") }
      self.init(type: type, path: path, from: from, value: value)
    } catch {
      throw AFJSONPatchError(error)
    }
  }

  /// Creates an operation from a JSON object, for callers that pass an error pointer.
  ///
  /// - Parameters:
  ///   - dictionary: See `init(dictionary:)`.
  ///   - error: Receives an ``AFJSONPatchError``. Without a problem the value there stays unchanged.
  public convenience init?(dictionary: [AnyHashable: Any]!, error: NSErrorPointer) {
    do {
      try self.init(dictionary: dictionary)
    } catch let problem {
      error?.pointee = problem as NSError
      return nil
    }
  }

  /// Creates an operation from a JSON object, for callers that write `error: &error`.
  public convenience init?(dictionary: [AnyHashable: Any]!, error: inout NSError?) {
    do {
      try self.init(dictionary: dictionary)
    } catch let problem {
      error = problem as NSError
      return nil
    }
  }

  private static func text(_ name: String, of dictionary: [AnyHashable: Any]) throws(AFJSONPatchError.Reason) -> String
  {
    guard let value = dictionary[name] else { throw .missingMember(name) }
    guard let text = value as? String else { throw .invalidMember(name) }
    return text
  }

  /// The operation as a JSON object, from which `init(dictionary:)` creates an equal operation.
  open var dictionaryRepresentation: [String: Any] {
    var dictionary: [String: Any] = ["op": type.name, "path": path ?? ""]
    dictionary["from"] = from
    if let value { dictionary["value"] = value }
    return dictionary
  }

  /// Creates the operations of a patch.
  ///
  /// - Parameter document: The parsed JSON of the patch: an array of objects.
  /// - Throws: An ``AFJSONPatchError`` if one of the operations is invalid. Then the whole patch is (RFC 6902, section
  ///   5).
  public class func operations(withPatch document: Any) throws -> [AFJSONPatchOperation] {
    guard let members = document as? [Any] else { throw AFJSONPatchError(.notAPatch) }
    return try members.enumerated().map { index, member in
      guard let dictionary = member as? [String: Any] else {
        throw AFJSONPatchError(.notAPatch, operationIndex: index)
      }
      do {
        return try Self(dictionary: dictionary)
      } catch let error as AFJSONPatchError {
        throw AFJSONPatchError(error.reason, operationIndex: index)
      }
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let type = "type"
    static let path = "path"
    static let from = "from"
    static let value = "value"
  }

  /// `true`: an archive holds texts, numbers and data only. The value is in it as JSON.
  open class var supportsSecureCoding: Bool { true }

  /// Creates an operation from an archive that this class wrote, or returns `nil` if something is missing.
  public required init?(coder: NSCoder) {
    guard let type = coder.number(forKey: Key.type).flatMap(AFJSONPatchOperationType.init(rawValue:)),
      let path = coder.text(forKey: Key.path)
    else { return nil }
    let from = type.hasOrigin ? coder.text(forKey: Key.from) : nil
    let data = type.hasValue ? coder.object(NSData.self, forKey: Key.value) : nil
    let value = data.flatMap {
      try? JSONSerialization.jsonObject(with: Data(referencing: $0), options: .fragmentsAllowed)
    }
    if type.hasOrigin, from == nil { return nil }
    if type.hasValue, value == nil { return nil }
    self.type = type
    self.path = path
    self.from = from
    self.value = value
    super.init()
  }

  /// Writes the operation to a keyed archive. A value that is not JSON, or deeper than
  /// ``AFJSONPatchLimits/depthMax``, is left out, so that the archive cannot be read.
  open func encode(with coder: NSCoder) {
    coder.encode(number: type.rawValue, forKey: Key.type)
    coder.encode((path ?? "") as NSString, forKey: Key.path)
    if let from { coder.encode(from as NSString, forKey: Key.from) }
    // Only a measured value is written: `JSONSerialization` walks it recursively.
    let depthMax = AFJSONPatchLimits().depthMax
    guard let value,
      (try? JSONValue.extent(of: value, depthMax: depthMax, isStrict: true)) != nil,
      let data = try? JSONSerialization.data(withJSONObject: value, options: .fragmentsAllowed)
    else { return }
    coder.encode(data as NSData, forKey: Key.value)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns this operation, which does not change.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  // MARK: - Comparison

  /// Compares operations: types, paths by code points, and values as a `test` operation does.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? AFJSONPatchOperation else { return false }
    if self === other { return true }
    guard type == other.type, Self.areEqual(path, other.path), Self.areEqual(from, other.from) else { return false }
    guard let value, let otherValue = other.value else { return self.value == nil && other.value == nil }
    return JSONValue.areEqual(value, otherValue, depth: AFJSONPatchLimits().depthMax)
  }

  private static func areEqual(_ one: String?, _ other: String?) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    return one.utf8.elementsEqual(other.utf8)
  }

  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(type)
    hasher.combine(path)
    hasher.combine(from)
    return hasher.finalize()
  }

  open override var description: String {
    let path = path ?? ""
    return if let from { "\(type.name) \(from) to \(path)" } else { "\(type.name) \(path)" }
  }
}
