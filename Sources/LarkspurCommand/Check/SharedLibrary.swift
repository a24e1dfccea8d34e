import Foundation
import LarkspurIO

/// A shared library that is loaded with a program.
struct SharedLibrary {
  let name: String
  /// The file, or `nil` if there is none.
  let path: String?

  /// Whether this is the toolchain's FoundationNetworking.
  var isNetworking: Bool { name.hasPrefix("libFoundationNetworking") && name.contains(".so") }

  /// Whether this is the toolchain's FoundationNetworking, or curl's library in any of its variants.
  var isForeign: Bool { isNetworking || name.hasPrefix("libcurl") && name.contains(".so") }

  /// Whether the package may have chosen the library: it is neither the system's nor the toolchain's.
  var isChosen: Bool {
    guard let path, !isForeign else { return false }
    return !path.contains("/lib/swift/linux/")
      && !["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"].contains(where: path.hasPrefix)
  }

  /// Maximum size of the list of a program's libraries, in bytes.
  private static let listMax = 1 << 20

  /// Lists all libraries of a program by `ldd`, which has the system's loader find them, without starting the program.
  static func all(of file: ProgramFile) throws(ProgramFile.Unreadable) -> [SharedLibrary] {
    let (status, text) = try list(file.path)
    if status != 0 {
      // A program at a fixed address that is linked statically. Any other file has a section for the loader.
      if file.sectionNames != nil, !file.hasSection(".dynamic\0") { return [] }
      let reason = text.split(separator: "\n").last.map { ": \($0.trimmingPrefix(while: \.isWhitespace))" } ?? ""
      throw ProgramFile.Unreadable("ldd cannot list its libraries\(reason)")
    }
    return text.split(separator: "\n").filter { $0.hasPrefix("\t") }.map { line in
      // `NAME => PATH (ADDRESS)`, `NAME => not found` or `PATH (ADDRESS)`.
      let words = (line.dropFirst().components(separatedBy: " (0x").first ?? "").components(separatedBy: " => ")
      let path = words.last.flatMap { $0.hasPrefix("/") ? (try? FilePaths.resolved($0)) ?? $0 : nil }
      return SharedLibrary(name: FilePaths.name(of: words[0]), path: path)
    }
  }

  private static func list(_ path: String) throws(ProgramFile.Unreadable) -> (status: Int32, text: String) {
    let directories = EnvironmentVariable.value(of: "PATH") ?? "/usr/bin:/bin"
    let program = directories.split(separator: ":").map { "\($0)/ldd" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
    guard let program else { throw .init("there is no ldd, which lists its libraries (Debian's package libc-bin)") }
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: program)
    process.arguments = [path]
    process.environment = ProcessInfo.processInfo.environment.merging(["LC_ALL": "C"]) { $1 }
    (process.standardInput, process.standardOutput, process.standardError) = (FileHandle.nullDevice, output, output)
    do {
      try process.run()
      let bytes = try OpenFile(lent: output.fileHandleForReading.fileDescriptor).readToEnd(max: listMax)
      guard let bytes else { throw ProgramFile.Unreadable("ldd lists more than \(listMax) bytes of libraries") }
      process.waitUntilExit()
      return (process.terminationStatus, String(decoding: bytes, as: UTF8.self))
    } catch {
      throw error as? ProgramFile.Unreadable ?? .init("ldd: \(error)")
    }
  }
}
