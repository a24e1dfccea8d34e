/// The public declarations of a module, in a form in which two modules can be compared.
struct Surface {
  struct Declaration {
    var path: String
    var kind: String
    var isOpen: Bool
    var isDeprecated: Bool
    /// The declaration without the parts that make no difference to a caller.
    var text: String
    var textWithoutDefaults: String
    var hasDefaults: Bool
    /// Whether a property can be set.
    var isSettable: Bool
  }

  private(set) var declarations: [String: [Declaration]] = [:]
  /// The protocols and the superclass of each type, by the type's path.
  private(set) var conformances: [String: Set<String>] = [:]
  /// The requirements of each protocol, by its path. `defaults` has those with a default implementation.
  private(set) var requirements: [String: Set<String>] = [:]
  private(set) var defaults: Set<String> = []
  private var superclasses: [String: String] = [:]

  init(_ graph: SymbolGraph, of module: String) {
    var paths: [String: String] = [:]
    for symbol in graph.symbols { paths[symbol.identifier.precise] = symbol.path }
    for symbol in graph.symbols where !symbol.isUnavailable {
      declarations[symbol.path, default: []].append(Self.declaration(symbol))
    }
    for relationship in graph.relationships {
      let target = (paths[relationship.target] ?? relationship.targetFallback ?? relationship.target)
        .replacing("\(module).", with: "")
      guard let source = paths[relationship.source] else { continue }
      switch relationship.kind {
      case "inheritsFrom":
        superclasses[source] = target
        conformances[source, default: []].insert(target)
      // Every type conforms to these unless its declaration says otherwise.
      case "conformsTo" where ["Swift.Copyable", "Swift.Escapable"].contains(target): break
      case "conformsTo": conformances[source, default: []].insert(target)
      case "requirementOf": requirements[target, default: []].insert(source)
      case "defaultImplementationOf": defaults.insert(source)
      default: break
      }
    }
  }

  /// The declarations of a path in its type, or in the superclass of that type.
  private func declarations(of path: String) -> [Declaration] {
    if let found = declarations[path] { return found }
    guard let dot = path[..<(path.firstIndex(of: "(") ?? path.endIndex)].lastIndex(of: "."),
      let superclass = superclasses[String(path[..<dot])]
    else { return [] }
    return declarations(of: superclass + path[dot...])
  }

  private static func declaration(_ symbol: SymbolGraph.Symbol) -> Declaration {
    var text = ""
    for fragment in symbol.declarationFragments {
      // Skips internal parameter names, and keywords such as `override` that make no difference to a caller.
      if fragment.kind == "internalParam" {
        if text.last == " " { text.removeLast() }
        continue
      }
      if fragment.kind == "keyword", ["override", "final", "any", "convenience"].contains(fragment.spelling) {
        continue
      }
      text += fragment.spelling
    }
    text = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    // Callers use a class member and a static member alike; `isOpen` says whether a member can be overridden.
    for (word, other) in [("class var", "static var"), ("class func", "static func"), ("any ", "")] {
      text.replace(word, with: other)
    }
    for (alias, name) in aliases { text.replace(alias, with: name) }
    var isSettable = false
    if symbol.kind.identifier.hasSuffix("property") || symbol.kind.identifier == "swift.var" {
      isSettable = text.contains(" set }") || !text.contains("{") && !text.contains("let ")
      if let brace = text.firstIndex(of: "{") { text = text[..<brace].trimmingSuffix(" ") }
      text.replace("let ", with: "var ")
    }
    let without = withoutDefaults(text)
    return Declaration(
      path: symbol.path, kind: symbol.kind.identifier, isOpen: symbol.accessLevel == "open",
      isDeprecated: symbol.isDeprecated, text: text, textWithoutDefaults: without, hasDefaults: without != text,
      isSettable: isSettable)
  }

  /// Alternative names of one type.
  private static let aliases = [
    ("URLRequest.CachePolicy", "NSURLRequest.CachePolicy"), ("NSNSURLRequest", "NSURLRequest"),
    ("URLRequest.NetworkServiceType", "NSURLRequest.NetworkServiceType"), ("NSNSURLRequest", "NSURLRequest"),
    ("NSNotification.Name", "Notification.Name"),
  ]

  private static func withoutDefaults(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let range = rest.firstRange(of: " = ") {
      result += rest[..<range.lowerBound]
      rest = rest[range.upperBound...]
      let end = rest.firstIndex { $0 == "," || $0 == ")" } ?? rest.endIndex
      rest = rest[end...]
    }
    return result + rest
  }

  // MARK: - Comparison

  /// The differences that could break a program that compiles with `theirs`, one for each declaration, with its path.
  func gaps(to theirs: Surface) -> [(path: String, reason: String)] {
    var gaps: [(path: String, reason: String)] = []
    for (path, wanted) in theirs.declarations.sorted(by: { $0.key < $1.key }) {
      for declaration in wanted {
        let ours = declarations(of: path)
        let objections = ours.map { Self.objection($0, to: declaration) }
        if objections.contains(nil) { continue }
        if ours.isEmpty {
          gaps.append((path, "is missing: \(declaration.text)"))
        } else {
          gaps.append((path, objections.compactMap { $0 }.joined(separator: "; ")))
        }
      }
    }
    return gaps + caseGaps(to: theirs) + conformanceGaps(to: theirs) + requirementGaps(to: theirs)
  }

  /// Compares two declarations.
  ///
  /// - Returns: The first difference that could break a caller, or `nil` if there is none.
  private static func objection(_ ours: Declaration, to theirs: Declaration) -> String? {
    if ours.kind != theirs.kind { return "is a \(ours.kind) and no \(theirs.kind)" }
    let isEqual =
      ours.text == theirs.text || !theirs.hasDefaults && ours.textWithoutDefaults == theirs.textWithoutDefaults
    if !isEqual { return "says `\(ours.text)` and not `\(theirs.text)`" }
    if theirs.isOpen, !ours.isOpen { return "is not open" }
    if theirs.isSettable, !ours.isSettable { return "cannot be set" }
    if ours.isDeprecated, !theirs.isDeprecated { return "is deprecated" }
    return nil
  }

  /// Additional enumeration cases, which make complete `switch` statements of a program incomplete.
  private func caseGaps(to theirs: Surface) -> [(path: String, reason: String)] {
    let enumerations = Set(theirs.cases.map { $0.enumeration })
    let known = Set(theirs.cases.map { $0.path })
    return cases.filter { enumerations.contains($0.enumeration) && !known.contains($0.path) }
      .map { ($0.path, "is a case more") }.sorted { $0.0 < $1.0 }
  }

  private var cases: [(enumeration: Substring, path: String)] {
    declarations.values.joined().filter { $0.kind == "swift.enum.case" }.map { declaration in
      (declaration.path[..<(declaration.path.lastIndex(of: ".") ?? declaration.path.startIndex)], declaration.path)
    }
  }

  private func conformanceGaps(to theirs: Surface) -> [(path: String, reason: String)] {
    var gaps: [(path: String, reason: String)] = []
    for (path, wanted) in theirs.conformances.sorted(by: { $0.key < $1.key }) {
      let ours = conformances[path] ?? []
      for name in wanted.subtracting(ours).sorted() where declarations[path] != nil {
        gaps.append((path, "does not conform to or inherit from \(name)"))
      }
      // A subclass of a `Sendable` class must restate its conformance, so the conformance must not be new.
      if !wanted.contains("Swift.Sendable"), ours.contains("Swift.Sendable") {
        gaps.append((path, "is Sendable"))
      }
    }
    return gaps
  }

  /// Differences in requirements that could break a program's conforming type.
  private func requirementGaps(to theirs: Surface) -> [(path: String, reason: String)] {
    var gaps: [(path: String, reason: String)] = []
    for (name, wanted) in theirs.requirements.sorted(by: { $0.key < $1.key }) {
      for path in (requirements[name] ?? []).sorted() where !defaults.contains(path) {
        if !wanted.contains(path) || theirs.defaults.contains(path) {
          gaps.append((path, "has no default implementation"))
        }
      }
      for path in wanted.sorted() where requirements[name]?.contains(path) != true && declarations[name] != nil {
        gaps.append((path, "is no requirement of \(name)"))
      }
    }
    return gaps
  }
}

extension Substring {
  fileprivate func trimmingSuffix(_ end: Character) -> String {
    var rest = self
    while rest.last == end { rest.removeLast() }
    return String(rest)
  }
}
