import TestKit
import Testing

/// A package that compiles with the toolchain's FoundationNetworking compiles with the product of that name, also where
/// the package declares what Larkspur adds. Each test takes the added declarations from the two modules, writes them as
/// a package's own, and uses them in a module that imports both.
@Suite(.ownThread) struct AddedNameTests {
  private typealias Symbol = SymbolGraph.Symbol

  private static let theirs = Result { try SymbolGraph.extract("FoundationNetworking", directories: []) }
  private static let ours = Result {
    try SymbolGraph.extract("Larkspur", directories: SymbolGraph.directories())
  }

  /// The declarations that only Larkspur has, outside types that only Larkspur has.
  private static func added(_ kinds: Set<String>) throws -> [Symbol] {
    let known = Set(try theirs.get().symbols.map(\.path))
    let symbols = try ours.get().symbols.filter { !known.contains($0.path) && !$0.isUnavailable }
    let types = Set(symbols.filter { typeKinds.contains($0.kind.identifier) }.map(\.path))
    let isOverride = { (symbol: Symbol) in symbol.declarationFragments.contains { $0.spelling == "override" } }
    return symbols.filter { symbol in
      kinds.contains(symbol.kind.identifier)
        && !symbol.pathComponents.indices.dropFirst().contains {
          types.contains(symbol.pathComponents[..<$0].joined(separator: "."))
        }
        && !(isOverride(symbol) && symbol.kind.identifier != "swift.init")
    }.sorted { $0.path < $1.path }
  }

  private static let typeKinds: Set<String> = [
    "swift.struct", "swift.class", "swift.enum", "swift.protocol", "swift.typealias",
  ]

  /// Returns the errors in a client of a package, with the products in place of the toolchain's module.
  private func errors(
    package: [String], imports: [String], client: [String], networking: String = "FoundationNetworking"
  ) throws -> [Int: [String]] {
    let code = try PackageCode(modules: SymbolGraph.modules())
    let own = try code.errors(in: "Package", imports: imports, package, isImported: true)
    return own.isEmpty ? try code.errors(in: "Client", imports: [networking, "Package"], client) : own
  }

  @Test func theProductHasEveryNameOfTheToolchain() throws {
    let names = try Self.theirs.get().symbols.filter { $0.pathComponents.count == 1 }
    #expect(names.count > 40)
    let lines = names.map { name in
      let reference = "FoundationNetworking.\(name.baseName)"
      return Self.typeKinds.contains(name.kind.identifier)
        ? "extension \(reference) {}" : "let \(name.baseName) = \(reference)"
    }
    let code = try PackageCode(modules: SymbolGraph.modules())
    #expect(try code.errors(in: "Client", imports: ["FoundationNetworking"], lines) == [:])
  }

  @Test func namesOfThePackage() throws {
    // Functions with several signatures have one name.
    let symbols = try Self.added(Self.typeKinds.union(["swift.func", "swift.var"]))
      .filter { $0.pathComponents.count == 1 }
    let names = Dictionary(symbols.map { ($0.baseName, $0) }, uniquingKeysWith: { first, _ in first }).values
    #expect(names.contains { $0.path == "ServerSentEvent" })
    let package = names.map { name in
      switch name.kind.identifier {
      case "swift.func": "public func \(name.baseName)(_ argument: Never) {}"
      case "swift.var": "public let \(name.baseName) = 0"
      default: "public struct \(name.baseName) {}"
      }
    }
    let client = names.map { name in
      Self.typeKinds.contains(name.kind.identifier)
        ? "func take(_: \(name.baseName)) {}" : "func take\(name.baseName)() { _ = \(name.baseName) }"
    }
    #expect(try errors(package: package, imports: [], client: client) == [:])
    // Every line can fail: each name is ambiguous beside all of Larkspur's.
    let ambiguous = try errors(package: package, imports: [], client: client, networking: "Larkspur")
    #expect(ambiguous.count == client.count)
  }

  @Test func nestedTypesOfThePackage() throws {
    let types = try Self.added(Self.typeKinds).filter { $0.pathComponents.count > 1 }
    for path in ["URLSession.AsyncBytes", "URL.AsyncBytes"] { #expect(types.contains { $0.path == path }) }
    try expectNoErrors(
      types, package: { "extension \($0.parent) { public struct \($0.baseName) { public var own: Int } }" },
      parameter: \.path, use: { _ in "value.own" })
  }

  @Test func propertiesOfThePackage() throws {
    // Members of other modules' protocols are not Larkspur's.
    let properties = try Self.added(["swift.property", "swift.type.property"])
      .filter { !$0.identifier.precise.contains("::SYNTHESIZED::") }
    for path in ["URL.lines", "URLSession.allTasks"] { #expect(properties.contains { $0.path == path }) }
    try expectNoErrors(
      properties,
      package: { property in
        let keyword = property.isStatic ? "static var" : "var"
        return "extension \(property.parent) { public \(keyword) \(property.baseName): Int { 0 } }"
      },
      parameter: { $0.parent == "AsyncSequence" ? "some AsyncSequence<UInt8, any Error>" : $0.parent },
      use: { "\($0.isStatic ? $0.parent : "value").\($0.baseName)" })
  }

  /// Compiles a package with a line for each symbol, and a client of the package with a function for each.
  ///
  /// Packages that extend types of FoundationNetworking import it. The others, which may not, are a package of their own.
  private func expectNoErrors(
    _ symbols: [Symbol], package: (Symbol) -> String, parameter: (Symbol) -> String, use: (Symbol) -> String
  ) throws {
    let known = Set(try Self.theirs.get().symbols.map(\.path))
    for imports in [["FoundationNetworking"], []] {
      var symbols = symbols.filter { known.contains($0.parent) != imports.isEmpty }
      // What the toolchain's module refuses need not compile.
      let theirs = try PackageCode(modules: nil)
      let refused = try theirs.errors(in: "Package", imports: imports, symbols.map(package))
      symbols = symbols.indices.filter { refused[$0] == nil }.map { symbols[$0] }
      #expect(!symbols.isEmpty)
      let client = symbols.enumerated().map { index, symbol in
        "func take\(index)(_ value: \(parameter(symbol))) { _ = \(use(symbol)) }"
      }
      let errors = try errors(package: symbols.map(package), imports: imports, client: client)
      for (index, errors) in errors { Issue.record("\(symbols[index].path): \(errors)") }
    }
  }

  /// Compiles each initializer on its own: one in a class changes what is allowed in its subclass.
  @Test func initializersOfThePackage() throws {
    let classes = Set(try Self.theirs.get().symbols.filter { $0.kind.identifier == "swift.class" }.map(\.path))
    var count = 0
    for initializer in try Self.added(["swift.init"]) {
      let keywords: Set<String> = ["override", "convenience", "required"]
      let text = initializer.declarationFragments.filter { !keywords.contains($0.spelling) }.map(\.spelling).joined()
      let declaration = "\(classes.contains(initializer.parent) ? "convenience " : "")\(text) { fatalError() }"
      let line = "extension \(initializer.parent) { \(declaration) }"
      let theirs = try PackageCode(modules: nil)
      guard try theirs.errors(in: "Package", imports: ["FoundationNetworking"], [line]).isEmpty else { continue }
      count += 1
      let errors = try PackageCode(modules: SymbolGraph.modules())
        .errors(in: "Package", imports: ["FoundationNetworking"], [line])
      #expect(errors == [:], "\(line)")
    }
    #expect(count > 0)
  }

  /// Members that only Larkspur has are visible to a client of the product.
  @Test func addedMembersAreVisible() throws {
    let code = try PackageCode(modules: SymbolGraph.modules())
    let line = """
      func read(_ bytes: URLSession.AsyncBytes, _ error: URLError) async throws {
        for try await line in bytes.lines { print(line, error.networkUnavailableReason as URLError.NetworkUnavailableReason?) }
      }
      """
    #expect(try code.errors(in: "Client", imports: ["FoundationNetworking"], [line]) == [:])
  }
}

extension SymbolGraph.Symbol {
  /// The name without the arguments of a function.
  fileprivate var baseName: String { String((pathComponents.last ?? "").prefix { $0 != "(" }) }
  /// The path of the type that has this member.
  fileprivate var parent: String { pathComponents.dropLast().joined(separator: ".") }
  fileprivate var isStatic: Bool { kind.identifier.hasPrefix("swift.type.") }
}
