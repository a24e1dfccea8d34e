import LarkspurConsole
import LarkspurIO

/// A program, or a shared library that is loaded with it, and the traces of the toolchain's networking in it.
package struct LinkedFile {
  let path: String
  /// The library's name, or `nil` for the program.
  let name: String?
  /// Whether the file has no full table of symbols.
  let isStripped: Bool
  package let findings: [Finding]

  private init(_ file: ProgramFile, name: String?, loaded: [SharedLibrary]) throws(ProgramFile.Unreadable) {
    path = file.path
    self.name = name
    isStripped = file.sectionNames == nil || !file.hasSection(".symtab\0")
    // The name of a library that a file links is text in the file.
    let foreign = loaded.filter(\.isForeign).map(\.name)
    let texts = try file.texts(Set(foreign.map { $0 + "\0" } + [Self.networking, Self.curl]))
    var findings: [Finding] = foreign.filter { texts.contains($0 + "\0") }.map { .links(library: $0, file: name) }
    // A program that loads the module has names of its symbols, too.
    if texts.contains(Self.networking), !loaded.contains(where: \.isNetworking),
      try !file.texts(Self.networkingTypes).isEmpty
    {
      findings.append(.holdsNetworking(file: name))
    }
    if texts.contains(Self.curl) { findings.append(.holdsCurl(file: name)) }
    let isStatic = !loaded.contains { $0.name == "libswiftCore.so" }
    // Swift's metadata has separate sections, which stay in a stripped file.
    let mayBeSwift = file.sectionNames == nil || file.hasSection("swift5_")
    if isStripped, isStatic, mayBeSwift { findings.append(.undetermined(file: name)) }
    self.findings = findings
  }

  /// The symbols of the module's types, each with the zero byte that ends it. Larkspur's module of that name does not
  /// define these types, and a program's extensions of such types have other symbols. The command itself does not
  /// contain the texts, because they are put together here.
  private static let networkingTypes = Set(
    ["10URLSessionC", "14URLSessionTaskC", "10URLRequestV", "11URLResponseC", "11URLProtocolC", "10HTTPCookieC"].map {
      "\(networking)\($0.dropFirst())Mn\0"
    })
  private static let networking = ["$s20FoundationNetworking", "1"].joined()

  /// The beginning of the symbols that curl's library uses within itself: programs that load the library lack them.
  private static let curl = ["\0Curl", "_"].joined()

  /// Reads a program, and each library of its package that is loaded with it.
  package static func all(from program: String) throws(CommandFailure) -> [LinkedFile] {
    var subject = program
    do throws(ProgramFile.Unreadable) {
      let file = try ProgramFile((try? FilePaths.resolved(program)) ?? program)
      let loaded = try SharedLibrary.all(of: file)
      var files = [try LinkedFile(file, name: nil, loaded: loaded)]
      for library in loaded where library.isChosen {
        subject = "\(program) (\(library.name))"
        files.append(try LinkedFile(ProgramFile(library.path ?? ""), name: library.name, loaded: loaded))
      }
      return files
    } catch {
      throw CommandFailure(.readFailed, Format.visible("could not read \(subject): \(error)".utf8))
    }
  }
}
