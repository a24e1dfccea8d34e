import LarkspurConsole
import LarkspurIO

/// A program, or a shared library beside it, and the libraries that it links.
package struct LinkedFile {
  let path: String
  /// The library's name, or `nil` for the program.
  let name: String?
  let isStripped: Bool
  package let findings: [Finding]
  private let libraries: [String]
  /// The directories that the program's package chose: those that are given relative to the file's own directory.
  private let directories: [String]

  package init(_ bytes: ProgramBytes, path: String, name: String?) throws(ELFError) {
    let file = try ELFFile(bytes)
    let (dynamic, symbols) = (try file.dynamicSection(), try file.symbols())
    var findings: [Finding] = dynamic.libraries.filter(LibraryName.isForeign).map { .links(library: $0, file: name) }
    if symbols.definesNetworking { findings.append(.holdsNetworking(file: name)) }
    if symbols.definesCurl { findings.append(.holdsCurl(file: name)) }
    let isDynamic = dynamic.libraries.contains(LibraryName.swiftRuntime)
    if symbols.isStripped, !isDynamic, try file.mayHaveSwiftCode() { findings.append(.undetermined(file: name)) }
    self.path = path
    self.name = name
    self.findings = findings
    isStripped = symbols.isStripped
    libraries = dynamic.libraries.filter { name in
      !LibraryName.isForeign(name) && !LibraryName.harmless.contains(name) && !name.contains("/") && !name.isEmpty
    }
    directories = Self.directories(dynamic.searchPath, origin: FileName.directory(of: path))
  }

  private static let directorysMax = 16

  private static func directories(_ searchPath: String, origin: String) -> [String] {
    let entries = searchPath.split(separator: ":").compactMap { entry -> String? in
      for variable in ["$ORIGIN", "${ORIGIN}"] where entry.hasPrefix(variable) {
        let rest = entry.dropFirst(variable.count)
        if rest.isEmpty || rest.hasPrefix("/") { return origin + rest }
      }
      return nil
    }
    return Array(entries.prefix(directorysMax))
  }

  /// The maximum number of files that are read for one program.
  private static let filesMax = 256

  /// Reads a program, and each library that is found beside it, once.
  static func all(from program: String) throws(CommandFailure) -> [LinkedFile] {
    var files: [LinkedFile] = []
    var queue: [(path: String, name: String?)] = [(program, nil)]
    var seen: Set<String> = [(try? FilePaths.resolved(program)) ?? program]
    var position = 0
    while position < queue.count {
      let (path, name) = queue[position]
      position += 1
      do throws(ELFError) {
        // `$ORIGIN` is the directory of the path after links are resolved.
        let path = (try? FilePaths.resolved(path)) ?? path
        let file = try LinkedFile(ProgramBytes(reading: path), path: path, name: name)
        for (path, name) in file.librariesBeside() where seen.insert(path).inserted {
          guard seen.count <= filesMax else { throw .unreadable("more than \(filesMax) libraries") }
          queue.append((path, name))
        }
        files.append(file)
      } catch {
        let subject = name.map { "\(program) (\($0))" } ?? program
        throw CommandFailure(.readFailed, Format.visible("could not read \(subject): \(error)".utf8))
      }
    }
    return files
  }

  /// Returns the path, with links resolved, and the name of each library that is in one of the directories.
  private func librariesBeside() -> [(path: String, name: String)] {
    libraries.compactMap { library in
      for directory in directories {
        if let path = try? FilePaths.resolved(directory + "/" + library) { return (path, library) }
      }
      return nil
    }
  }
}

/// Parts of paths.
enum FileName {
  /// - Returns: The directory's path: empty for the root directory, and `.` if the path has no directory.
  static func directory(of path: String) -> String {
    lastSlash(in: path).map { String(path[..<$0]) } ?? "."
  }

  /// The name up to its first dot.
  static func stem(of name: String) -> String { String(name.prefix { $0 != "." }) }

  /// The last component of the path.
  static func last(of path: String) -> String {
    lastSlash(in: path).map { String(path[path.utf8.index(after: $0)...]) } ?? path
  }

  /// Searches bytes, because a slash with a combining character behind it is another `Character`.
  private static func lastSlash(in path: String) -> String.Index? { path.utf8.lastIndex(of: UInt8(ascii: "/")) }
}
