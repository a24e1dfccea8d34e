import LarkspurConsole
import LarkspurIO

/// A file that an option names.
enum OptionFile {
  /// Maximum size of a file of options, texts or passwords, in bytes.
  static let bytesMax = 1 << 20

  /// Reads a small file while the command line is read.
  ///
  /// - Parameters:
  ///   - path: `-` is standard input.
  ///   - option: The option's name, for messages.
  static func read(_ path: String, of option: String) throws(UsageError) -> [UInt8] {
    do throws(CommandFailure) {
      return try read(path, atMost: bytesMax)
    } catch {
      throw UsageError("--\(option): \(error.message ?? "")")
    }
  }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - path: `-` is standard input.
  ///   - max: The maximum size, in bytes.
  static func read(_ path: String, atMost max: Int = .max) throws(CommandFailure) -> [UInt8] {
    let name = path == "-" ? "standard input" : path
    let bytes: [UInt8]?
    do throws(Errno) {
      bytes = try (path == "-" ? .standardInput : OpenFile(reading: path)).readToEnd(max: max)
    } catch {
      throw CommandFailure(.readFailed, "could not read \(name): \(error)")
    }
    guard let bytes else { throw CommandFailure(.readFailed, "\(name) is larger than \(Format.bytes(max))") }
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
