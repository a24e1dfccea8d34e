import Glibc
import LarkspurIO

/// A temporary directory for one test. Deinitialization removes it.
final class TemporaryDirectory {
  let path: String

  init() throws {
    let base = EnvironmentVariable.value(of: "TMPDIR") ?? "/tmp"
    path = base + "/larkspur-" + String(UInt64.random(in: 0...(.max)), radix: 36)
    guard mkdir(path, 0o700) == 0 else { throw Errno(rawValue: errno) }
  }

  deinit {
    for name in names { unlink(path + "/" + name) }
    rmdir(path)
  }

  func file(_ name: String) -> String { path + "/" + name }

  /// The names of the directory's entries, sorted.
  var names: [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  func write(_ text: String, to name: String) throws {
    try OpenFile(creating: file(name)).write(text)
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try OpenFile(creating: file(name)).write(bytes.span)
  }

  func text(of name: String) throws -> String {
    String(decoding: try bytes(of: name), as: UTF8.self)
  }

  func bytes(of name: String) throws -> [UInt8] { try OpenFile(reading: file(name)).readToEnd() }
}
