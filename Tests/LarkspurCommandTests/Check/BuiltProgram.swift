import Foundation

/// A small shared library that the toolchain's clang makes, for `larkspur check` to read.
struct BuiltProgram {
  /// The names of the libraries that it links. They need not exist.
  var libraries: [String] = []
  /// The directories in which its libraries are searched.
  var searchPath: String?
  /// The symbols that it defines.
  var symbols: [String] = []
  var isStripped = false
  var hasSwiftCode = false
  var options: [String] = ["-shared"]

  /// The bytes of a library that links and defines nothing.
  static let plain = Result { () throws -> [UInt8] in
    let directory = try CheckedDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try Array(Data(contentsOf: URL(filePath: BuiltProgram().build("plain", in: directory))))
  }

  /// - Returns: The path of the file.
  @discardableResult func build(_ name: String, in directory: CheckedDirectory) throws -> String {
    let links = try libraries.map { library in
      try BuiltProgram(options: ["-shared", "-Wl,-soname,\(library)"]).compile("linked/\(library)", in: directory)
    }
    let search = searchPath.map { ["-Wl,-rpath,\($0)"] } ?? []
    return try compile(name, in: directory, ["-Wl,--no-as-needed"] + links + search)
  }

  private func compile(_ name: String, in directory: CheckedDirectory, _ links: [String] = []) throws -> String {
    let section = "__attribute__((section(\"swift5_reflstr\"))) int metadata = 1;"
    let lines = symbols.map { "int \($0) = 1;" } + (hasSwiftCode ? [section] : []) + ["int _start = 1;\n"]
    let source = try directory.write(lines.joined(separator: "\n"), to: "source.c")
    let path = try directory.write("", to: name)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["clang", "-nostdlib", source, "-o", path] + options + (isStripped ? ["-s"] : []) + links
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
    return path
  }
}
