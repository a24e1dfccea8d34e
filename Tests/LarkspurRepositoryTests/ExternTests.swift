import Foundation
import TestKit
import Testing

/// Compares each declaration of C in Swift (`@_extern(c)`, in the files `Extern.swift`) with clang's view of the
/// headers. The Swift compiler believes such a declaration: a wrong one compiles, links, and passes wrong values.
@Suite(.ownThread) struct ExternTests {
  /// The headers that declare what a module uses.
  static let headers: [String: [String]] = [
    "LarkspurBytes": ["CLarkspurScan.h"],
    "LarkspurCoding": ["zlib.h"],
    "LarkspurIO": [
      "CLarkspurLinux.h", "fcntl.h", "linux/rtnetlink.h", "netdb.h", "poll.h", "sys/epoll.h", "sys/socket.h",
      "sys/xattr.h",
    ],
    "LarkspurTLS": ["CLarkspurOpenSSL.h"],
    "ZipArchive": ["CLarkspurZip.h"],
  ]

  @Test(arguments: headers.keys.sorted())
  func declarationsAreThoseOfTheHeaders(module: String) throws {
    let files = Repository.files(under: "Sources/\(module)").filter { $0.path.hasSuffix("/Extern.swift") }
    #expect(files.count == 1)
    let declarations = ExternDeclarations(files.map { $0.code.joined(separator: "\n") }.joined())
    #expect(!declarations.functions.isEmpty)
    let includes = Self.headers[module, default: []].map { "#include <\($0)>\n" }.joined()
    #expect(try Clang.complaints(about: includes + declarations.check) == "")
  }

  /// All declarations stand in the files that are compared.
  @Test func noOtherFileDeclares() {
    for file in RuleTests.sources where file.text.contains("@_extern") || file.text.contains("@_silgen_name") {
      #expect(file.path.hasSuffix("/Extern.swift") && Self.headers[file.module] != nil, "\(file.path)")
      let count = file.code.count { $0.contains("@_extern") }
      #expect(ExternDeclarations(file.code.joined(separator: "\n")).functions.count == count, "\(file.path)")
    }
  }

  private static let sample = """
    #include <stddef.h>
    extern "C" {
    typedef struct { int number; long count; const char *name; } facts;
    typedef struct { long count; int number; } padded;
    enum kind { good, bad };
    enum { LIMIT = 128 };
    int take(const unsigned char *bytes, size_t count, facts *out);
    const char *name(int (*judge)(void *, unsigned long), bool is_set);
    enum kind kind_of(double value, const char **text);
    }

    """

  @Test(arguments: [
    "@_extern(c) func take(_ bytes: UnsafePointer<UInt8>?, _ count: Int, _ out: UnsafeMutableRawPointer) -> Int32",
    "@_extern(c) func take(_ bytes: UnsafeRawPointer?, _ count: Int, _ out: OpaquePointer?) -> Int32",
    """
    @_extern(c) func name(
      _ judge: @convention(c) (UnsafeMutableRawPointer?, UInt) -> Int32, _ isSet: Bool
    ) -> UnsafePointer<CChar>?
    """,
    "@_extern(c) func kind_of(_ v: Double, _ text: UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> UInt32",
    "let LIMIT: Int32 = 128", "let LIMIT: UInt32 = 0x80",
    "struct facts {\n  var number: Int32 = 0\n  var count: Int = 0\n  var name: UnsafePointer<CChar>?\n}",
    "struct padded {\n  var count: Int = 0\n  var number: Int32 = 0\n  var _padding: UInt32 = 0\n}",
  ])
  func rightDeclarationsPass(text: String) throws {
    #expect(try Clang.complaints(about: Self.sample + ExternDeclarations(text).check) == "")
  }

  private static func judged(_ rest: String) -> String { "@_extern(c) func name(_ judge: @convention(c) \(rest)" }

  @Test(arguments: [
    // A count of 32 bits, too few parameters, a result that is none, a pointee of another size, an order.
    "@_extern(c) func take(_ bytes: UnsafePointer<UInt8>?, _ count: Int32, _ out: UnsafeMutableRawPointer) -> Int32",
    "@_extern(c) func take(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32",
    "@_extern(c) func take(_ bytes: UnsafePointer<UInt8>?, _ count: Int, _ out: UnsafeMutableRawPointer)",
    "@_extern(c) func take(_ bytes: UnsafePointer<UInt16>?, _ count: Int, _ out: UnsafeMutableRawPointer) -> Int32",
    "@_extern(c) func take(_ count: Int, _ bytes: UnsafePointer<UInt8>?, _ out: UnsafeMutableRawPointer) -> Int32",
    // C writes to memory that Swift lends for reading.
    "@_extern(c) func take(_ bytes: UnsafePointer<UInt8>?, _ count: Int, _ out: UnsafeRawPointer) -> Int32",
    // Swift may write to memory that C returns for reading.
    judged("(UnsafeMutableRawPointer?, UInt) -> Int32, _ s: Bool) -> UnsafeMutablePointer<CChar>?"),
    judged("(UnsafeMutableRawPointer?, UInt32) -> Int32, _ s: Bool) -> UnsafePointer<CChar>?"),
    judged("(UnsafeMutableRawPointer?, UInt) -> Int32, _ s: Int32) -> UnsafePointer<CChar>?"),
    "@_extern(c) func kind_of(_ v: Int, _ text: UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> UInt32",
    "@_extern(c) func kind_of(_ v: Double, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> UInt32",
    "@_extern(c) func kind_of(_ v: Double, _ text: UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> UInt8",
    "@_extern(c) func missing() -> Int32", "let LIMIT: Int32 = 127", "let MISSING: Int32 = 1",
    // A field is missing, at another place, or of another size.
    "struct facts {\n  var number: Int32 = 0\n  var count: Int = 0\n}",
    "struct facts {\n  var count: Int = 0\n  var number: Int32 = 0\n  var name: UnsafePointer<CChar>?\n}",
    "struct facts {\n  var number: Int64 = 0\n  var count: Int = 0\n  var name: UnsafePointer<CChar>?\n}",
    // C copies four bytes more than Swift reserves.
    "struct padded {\n  var count: Int = 0\n  var number: Int32 = 0\n}",
  ])
  func wrongDeclarationsFail(text: String) throws {
    #expect(try Clang.complaints(about: Self.sample + ExternDeclarations(text).check) != "")
  }

  /// Xcode compiles the C targets also for platforms for which no target needs them: nothing of them is left there.
  @Test func otherPlatformsCompileNothingOfC() throws {
    let files = Repository.files(under: "Sources", suffixes: [".h", ".c"])
    #expect(files.count > 10)
    for file in files {
      let complaints = try Clang.complaints(
        about: file.text, language: "c", ["-target", "arm64-apple-macos15", "-nostdinc", "-Wall"])
      #expect(complaints == "", "\(file.path)")
    }
  }
}

/// The compiler for C of the Swift toolchain.
enum Clang {
  /// Returns the errors and warnings about a text.
  static func complaints(about text: String, language: String = "c++", _ options: [String] = []) throws -> String {
    let process = Process()
    let (input, output) = (Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.currentDirectoryURL = Repository.root
    let includes = try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: "Sources").path)
      .filter { $0.hasPrefix("C") }.flatMap { ["-I", "Sources/\($0)/include"] }
    process.arguments =
      ["clang", "-x", language, "-fsyntax-only"] + (language == "c++" ? ["-nostdinc++", "-w"] : [])
      + includes
      + options + ["-"]
    process.standardInput = input
    process.standardError = output
    try process.run()
    try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
    try input.fileHandleForWriting.close()
    let complaints = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    let result = String(decoding: complaints, as: UTF8.self)
    return process.terminationStatus == 0 || !result.isEmpty ? result : "clang failed"
  }
}

/// What a text of Swift declares of C: functions with `@_extern(c)`, constants, and the layouts of structures.
struct ExternDeclarations {
  struct Function {
    var name: String
    var parameters: [String]
    var result: String
  }

  struct Layout {
    var name: String
    var fields: [(name: String, type: String)]
  }

  private(set) var functions: [Function] = []
  private(set) var constants: [(name: String, value: String)] = []
  private(set) var layouts: [Layout] = []

  init(_ text: String) {
    for match in text.matches(of: /@_extern\(c\)\s+func\s+(\w+)\(/) {
      let rest = text[match.range.upperBound...]
      guard let end = Self.end(of: rest) else { continue }
      let parameters = Self.list(rest[..<end])
      let result = rest[rest.index(after: end)...].prefixMatch(of: /\s*->\s*([\w<>?]+)/)
      functions.append(
        Function(
          name: String(match.1), parameters: parameters, result: result.map { Self.type($0.1) } ?? "void"))
    }
    for match in text.matches(of: /(?m)^let (\w+): \w+ = (.+)$/) {
      constants.append((String(match.1), String(match.2.replacing("_", with: ""))))
    }
    for match in text.matches(of: /(?m)^struct (\w+) \{\n([^}]*)\}/) {
      let fields = match.2.matches(of: /var (\w+): ([\w<>?]+)/).map { (name: String($0.1), type: Self.type($0.2)) }
      layouts.append(Layout(name: String(match.1), fields: fields))
    }
  }

  /// Returns the index of the parenthesis that ends a list.
  private static func end(of text: Substring) -> Substring.Index? {
    var depth = 0
    return text.indices.first { index in
      if text[index] == "(" { depth += 1 }
      if text[index] == ")" { depth -= 1 }
      return depth < 0
    }
  }

  /// Returns the types of a list of parameters, as C++ writes them.
  private static func list(_ text: Substring) -> [String] {
    var depth = 0
    let parts = text.replacing("->", with: "→").split { character in
      if "(<".contains(character) { depth += 1 }
      if ")>".contains(character) { depth -= 1 }
      return character == "," && depth == 0
    }
    return parts.map { part in
      let label = part.prefixMatch(of: /\s*_ \w+:/)
      return type(part[(label?.range.upperBound ?? part.startIndex)...])
    }
  }

  /// Returns the type of C++ for a type of Swift.
  private static func type(_ text: some StringProtocol) -> String {
    let text = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    if text.hasSuffix(")?"), text.hasPrefix("(") { return type(text.dropFirst().dropLast(2)) }
    if text.hasSuffix("?") { return type(text.dropLast()) }
    if let function = text.wholeMatch(of: /@convention\(c\) \((.*)\) → (\w+\??)/) {
      return "function<\(([type(function.2)] + list(function.1)).joined(separator: ", "))>"
    }
    if let pointer = text.wholeMatch(of: /UnsafePointer<(.*)>/) { return "pointer<const \(type(pointer.1))>" }
    if let pointer = text.wholeMatch(of: /UnsafeMutablePointer<(.*)>/) { return "pointer<\(type(pointer.1))>" }
    return types[text] ?? "unknown_\(text)"
  }

  private static let types = [
    "Void": "void", "Bool": "bool", "Double": "double", "CChar": "char", "Int16": "short", "Int32": "int",
    "Int": "long", "Int64": "long", "UInt8": "unsigned char", "UInt16": "unsigned short", "UInt32": "unsigned",
    "UInt": "unsigned long", "UInt64": "unsigned long", "UnsafeRawPointer": "pointer<const void>",
    "UnsafeMutableRawPointer": "pointer<void>", "OpaquePointer": "pointer<opaque>",
  ]

  /// The text of C++ that compiles if the declarations are right. The headers stand before it.
  var check: String {
    var text = Self.rules + "namespace check {\n"
    for function in functions {
      let types = ([function.result] + function.parameters).joined(separator: ", ")
      text += "static_assert(same<decltype(&::\(function.name)), function<\(types)>>, \"\(function.name)\");\n"
    }
    for (name, value) in constants {
      text += "static_assert((long long)(\(name)) == (long long)(\(value)), \"\(name)\");\n"
    }
    for layout in layouts {
      let (c, swift) = ("::\(layout.name)", "swift_\(layout.name)")
      text += "struct \(swift) { \(layout.fields.map { "plain<\($0.type)> \($0.name);" }.joined(separator: " ")) };\n"
      // The size of a structure of Swift ends with its last field, and C may copy the padding after that.
      let end =
        layout.fields.last.map { "__builtin_offsetof(\(swift), \($0.name)) + sizeof(\(swift)::\($0.name))" } ?? "0"
      text += "static_assert(\(end) == sizeof(\(c)), \"\(layout.name)\");\n"
      for (name, type) in layout.fields where !name.hasPrefix("_") {
        text += "static_assert(__builtin_offsetof(\(swift), \(name)) == __builtin_offsetof(\(c), \(name)));\n"
        text += "static_assert(same<decltype(\(c)::\(name)), \(type), field>, \"\(layout.name).\(name)\");\n"
      }
    }
    return text + "}\n"
  }

  /// Decides whether a type of C is passed as a type of Swift is. Integers must have one size, and one sign if they are
  /// extended to a register. Swift must not read memory as another type, nor write to it where C has `const`.
  private static let rules = """
    namespace check {
    struct opaque;
    template <class T> struct pointer {};
    template <class R, class... P> struct function {};
    enum use { argument, result, field };

    template <class T> struct plain_of { using type = T; };
    template <class T> struct plain_of<pointer<T>> { using type = void *; };
    template <class... T> struct plain_of<function<T...>> { using type = void *; };
    template <class T> using plain = typename plain_of<T>::type;

    template <class T> constexpr bool is_char = false;
    template <> constexpr bool is_char<char> = true;

    template <class T, bool = __is_enum(T)> struct number { using type = T; };
    template <class T> struct number<T, true> { using type = __underlying_type(T); };
    template <class T> constexpr bool is_signed = (typename number<T>::type)(-1) < (typename number<T>::type)(0);

    template <class C, class S> constexpr bool same_number() {
      if constexpr (__is_same(C, void) || __is_same(S, void)) return __is_same(C, S);
      else if constexpr (__is_same(C, bool) || __is_same(S, bool)) return __is_same(C, S);
      else if constexpr (__is_floating_point(C) || __is_floating_point(S)) return __is_same(C, S);
      else if constexpr (!(__is_integral(C) || __is_enum(C)) || !__is_integral(S)) return false;
      else if constexpr (sizeof(C) != sizeof(S)) return false;
      else return sizeof(C) == 8 || is_char<C> || is_char<S> || is_signed<C> == is_signed<S>;
    }

    template <class C, class S, use U = argument> constexpr bool same = same_number<C, S>();
    template <class C, class S, use U> constexpr bool same<const C, S, U> = same<C, S, U>;
    template <class C, class S, use U> constexpr bool same<C *, pointer<S>, U> =
        (__is_same(S, opaque) || U == field || __is_const(S) == __is_const(C) || U == argument && __is_const(C)) &&
        (__is_void(S) || __is_same(S, opaque) || __is_void(C) || same<__remove_cv(C), __remove_cv(S), result>);
    template <class R, class... P, class SR, class... SP, use U>
    constexpr bool same<R (*)(P...), function<SR, SP...>, U> = [] {
      if constexpr (sizeof...(P) == sizeof...(SP)) return (same<R, SR, result> && ... && same<P, SP, argument>);
      else return false;
    }();
    template <class R, class... P, class SR, class... SP, use U>
    constexpr bool same<R (*)(P...) noexcept, function<SR, SP...>, U> = same<R (*)(P...), function<SR, SP...>, U>;
    }

    """
}
