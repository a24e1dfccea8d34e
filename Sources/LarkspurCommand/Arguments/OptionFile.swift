import LarkspurIO

/// A small file that an option names.
enum OptionFile {
  /// Maximum size, in bytes.
  static let bytesMax = 1 << 20

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - path: `-` is standard input.
  ///   - option: The option's name, for messages.
  static func read(_ path: String, of option: String) throws(UsageError) -> [UInt8] {
    let bytes: [UInt8]?
    do throws(Errno) {
      bytes = try (path == "-" ? .standardInput : OpenFile(reading: path)).readToEnd(max: bytesMax)
    } catch {
      throw UsageError("--\(option): could not read \(path): \(error)")
    }
    guard let bytes else { throw UsageError("--\(option): \(path) has more than \(bytesMax) bytes") }
    return bytes
  }
}

/// The directories of the user that runs the command.
enum UserPaths {
  /// `HOME`, if it is an absolute path.
  static var home: String? { absolute("HOME") }

  /// Returns a directory of the XDG Base Directory Specification, which ignores relative paths.
  ///
  /// - Parameter fallback: The directory below `HOME` if the variable is not set.
  static func directory(_ variable: String, _ fallback: String) -> String? {
    absolute(variable) ?? home.map { "\($0)/\(fallback)" }
  }

  private static func absolute(_ variable: String) -> String? {
    EnvironmentVariable.value(of: variable).flatMap { $0.hasPrefix("/") ? $0 : nil }
  }
}
