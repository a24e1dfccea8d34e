import Foundation

/// A JSON document that operations change in place.
///
/// The containers are values: the caller's document stays as it is, and a container is copied when it is first changed.
/// To avoid further copies, a change takes each container on its path out of the parent, and puts it back afterwards.
/// After a change that fails, the document lacks these containers: the caller must discard the document.
struct JSONDocument {
  private(set) var root: Any
  private let limits: AFJSONPatchLimits
  private var carriedValues = 0
  private var carriedBytes = 0
  private var shiftedElements = 0

  typealias Reason = AFJSONPatchError.Reason

  init(_ root: Any, limits: AFJSONPatchLimits) {
    self.root = root
    self.limits = limits
  }

  // MARK: - The operations

  /// Adds a value: a new member, an element before the one at the index, or a member's new value (RFC 6902, section
  /// 4.1).
  mutating func add(_ value: Any, at path: JSONPointer) throws(Reason) {
    try check(value, at: path)
    try edit(path, .add(value))
  }

  /// Gives an existing place another value (section 4.3).
  mutating func replace(_ value: Any, at path: JSONPointer) throws(Reason) {
    try check(value, at: path)
    try edit(path, .replace(value))
  }

  /// Removes a value (section 4.2).
  mutating func remove(at path: JSONPointer) throws(Reason) {
    guard !path.tokens.isEmpty else { throw .removesDocument }
    try edit(path, .remove)
  }

  /// Removes a value, and adds it in another place (section 4.4).
  mutating func move(from: JSONPointer, to path: JSONPointer) throws(Reason) {
    let value = try value(at: from)
    guard !from.isEqual(to: path) else { return }
    guard !from.contains(path) else { throw .movesIntoItself(path.text) }
    // A value that does not get deeper is not walked: a patch can move a long array as often as it has operations.
    if path.tokens.count > from.tokens.count { try carry(value, to: path) }
    try edit(from, .remove)
    try edit(path, .add(value))
  }

  /// Adds the value of another place (section 4.5).
  mutating func copy(from: JSONPointer, to path: JSONPointer) throws(Reason) {
    let value = try value(at: from)
    try carry(value, to: path)
    try edit(path, .add(value))
  }

  /// Compares a value (section 4.6).
  func test(_ value: Any, at path: JSONPointer) throws(Reason) {
    try check(value, at: path)
    let found = try self.value(at: path)
    guard JSONValue.areEqual(found, value, depth: limits.depthMax) else { throw .testFailed(path.text) }
  }

  // MARK: - The limits

  /// Checks an operation's own value.
  private func check(_ value: Any, at path: JSONPointer) throws(Reason) {
    do throws(JSONValue.Excess) {
      _ = try JSONValue.extent(of: value, depthMax: room(at: path), isStrict: true)
    } catch {
      throw error == .tooDeep ? .tooDeep(path.text) : .notJSON(path.text)
    }
  }

  /// Checks and counts a value of the document that is added in another place.
  private mutating func carry(_ value: Any, to path: JSONPointer) throws(Reason) {
    do throws(JSONValue.Excess) {
      let (values, bytes) = (limits.carriedValuesMax - carriedValues, limits.carriedBytesMax - carriedBytes)
      let extent = try JSONValue.extent(
        of: value, depthMax: room(at: path), countMax: max(values, 0), byteCountMax: max(bytes, 0), isStrict: false)
      carriedValues += extent.count
      carriedBytes += extent.byteCount
    } catch {
      throw error == .tooDeep ? .tooDeep(path.text) : .tooMuchWork(path.text)
    }
  }

  /// Returns the depth that a value may have at a place, possibly negative.
  private func room(at path: JSONPointer) -> Int {
    let (room, isNegative) = limits.depthMax.subtractingReportingOverflow(path.tokens.count)
    return isNegative ? -1 : room
  }

  private mutating func shift(_ count: Int, _ path: JSONPointer) throws(Reason) {
    guard count <= limits.shiftedElementsMax - shiftedElements else { throw .tooMuchWork(path.text) }
    shiftedElements += count
  }

  // MARK: - The way to a value

  /// Returns the value at a place.
  private func value(at path: JSONPointer) throws(Reason) -> Any {
    var value = root
    for token in path.tokens {
      switch JSONValue(value) {
      case .object(let object):
        guard let place = object.place(of: token) else { throw .missingTarget(path.text) }
        value = object[place].value
      case .array(let array):
        guard let index = JSONPointer.index(token), index < array.count else { throw .missingTarget(path.text) }
        value = array[index]
      default: throw .missingTarget(path.text)
      }
    }
    return value
  }

  private enum Edit {
    case add(Any)
    case replace(Any)
    case remove
  }

  /// Stands in for a container that is being changed.
  private static var placeholder: Any { false }

  private mutating func edit(_ path: JSONPointer, _ edit: Edit) throws(Reason) {
    guard path.tokens.count <= limits.depthMax else { throw .tooDeep(path.text) }
    guard !path.tokens.isEmpty else {
      switch edit {
      case .add(let value), .replace(let value): root = value
      case .remove: root = Self.placeholder
      }
      return
    }
    var root = self.root
    self.root = Self.placeholder
    try descend(&root, path, path.tokens[...], edit)
    self.root = root
  }

  /// Changes a value within `node`. The depth of the recursion is that of the path, at most `depthMax`.
  private mutating func descend(
    _ node: inout Any, _ path: JSONPointer, _ tokens: ArraySlice<String>, _ edit: Edit
  ) throws(Reason) {
    guard let token = tokens.first else { return }
    let rest = tokens.dropFirst()
    if var object = Self.takeObject(&node) {
      if rest.isEmpty {
        try change(&object, token, path, edit)
      } else {
        guard let place = object.place(of: token) else { throw .missingTarget(path.text) }
        var child = Self.placeholder
        swap(&child, &object.values[place])
        try descend(&child, path, rest, edit)
        swap(&child, &object.values[place])
      }
      node = object
    } else if var array = Self.takeArray(&node) {
      if rest.isEmpty {
        try change(&array, token, path, edit)
      } else {
        guard let index = JSONPointer.index(token), index < array.count else { throw .missingTarget(path.text) }
        var child = Self.placeholder
        swap(&child, &array[index])
        try descend(&child, path, rest, edit)
        swap(&child, &array[index])
      }
      node = array
    } else {
      throw .missingTarget(path.text)
    }
  }

  /// Takes an object out of its place, where nothing refers to it any more.
  private static func takeObject(_ node: inout Any) -> [String: Any]? {
    guard case .object(let object) = JSONValue(node) else { return nil }
    node = placeholder
    return object
  }

  /// Takes an array out of its place, where nothing refers to it any more.
  private static func takeArray(_ node: inout Any) -> [Any]? {
    guard case .array(let array) = JSONValue(node) else { return nil }
    node = placeholder
    return array
  }

  private func change(
    _ object: inout [String: Any], _ name: String, _ path: JSONPointer, _ edit: Edit
  ) throws(Reason) {
    let place = object.place(of: name)
    switch edit {
    case .add(let value):
      if let place {
        object.values[place] = value
      } else {
        // A member that the dictionary takes for this one.
        guard object.updateValue(value, forKey: name) == nil else { throw .indistinguishableName(path.text) }
      }
    case .replace(let value):
      guard let place else { throw .missingTarget(path.text) }
      object.values[place] = value
    case .remove:
      guard let place else { throw .missingTarget(path.text) }
      object.remove(at: place)
    }
  }

  private mutating func change(
    _ array: inout [Any], _ token: String, _ path: JSONPointer, _ edit: Edit
  ) throws(Reason) {
    // RFC 6901, section 4: "-" is the element behind the last one, which does not exist.
    let index = token == "-" ? array.count : JSONPointer.index(token)
    guard let index, index <= array.count else { throw .missingTarget(path.text) }
    switch edit {
    case .add(let value):
      try shift(array.count - index, path)
      array.insert(value, at: index)
    case .replace(let value):
      guard index < array.count else { throw .missingTarget(path.text) }
      array[index] = value
    case .remove:
      guard index < array.count else { throw .missingTarget(path.text) }
      try shift(array.count - index, path)
      array.remove(at: index)
    }
  }
}
