extension TestServer {
  /// One header or trailer field.
  public struct Field: Hashable, Sendable {
    /// The name as spelled on the wire.
    public var name: String
    /// The value without the white space around it.
    public var value: String

    /// Creates a field. Neither text is checked, so that a server can send wrong ones.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Header or trailer fields in their order on the wire, with repeats and spelling kept.
  ///
  /// Names are looked up without regard to letter case.
  public struct Fields: Hashable, Sendable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
    private var list: [Field]

    /// Creates fields in this order.
    public init(_ fields: [Field] = []) {
      list = fields
    }

    /// Creates fields in the order of the literal. A name may occur more than once.
    public init(dictionaryLiteral elements: (String, String)...) {
      list = elements.map { Field($0, $1) }
    }

    /// The position of the first field: 0.
    public var startIndex: Int { list.startIndex }
    /// The position behind the last field: the number of fields.
    public var endIndex: Int { list.endIndex }
    /// The field at a position.
    public subscript(position: Int) -> Field { list[position] }

    /// The first value of the name, or `nil` if there is none. Setting a value replaces all of them; `nil` removes
    /// them.
    public subscript(name: String) -> String? {
      get { list.first { isSameName($0.name, name) }?.value }
      set {
        list.removeAll { isSameName($0.name, name) }
        if let newValue { add(name, newValue) }
      }
    }

    /// Returns all values of the name, in order.
    public func values(_ name: String) -> [String] {
      list.filter { isSameName($0.name, name) }.map(\.value)
    }

    /// Appends a field, even if a field of that name exists.
    public mutating func add(_ name: String, _ value: String) { list.append(Field(name, value)) }

    /// Whether the comma-separated list in the fields of that name has the token, in any letter case.
    public func contains(token: String, in name: String) -> Bool {
      values(name).contains { value in
        value.split(separator: ",").contains { isSameName(trimmed($0), token) }
      }
    }
  }
}
