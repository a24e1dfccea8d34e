import LarkspurConsole

/// A trace of the toolchain's FoundationNetworking or of curl's library in a program.
///
/// `file` is the name of a shared library of the program, or `nil` for the program itself. Names come from the files
/// unchanged; only `message` makes them safe for a terminal.
package struct Finding: Hashable, Sendable {
  package let message: String
  /// Whether the finding is a fault, which a new build repairs. Any other finding means that a fact is unknown.
  package let isFault: Bool
  /// The target that has to be compiled again, or `nil` if the finding names no target.
  let target: String?

  private init(_ message: String, file: String? = nil, isFault: Bool = true, target: String? = nil) {
    self.message = Format.visible(((file.map { $0 + " " } ?? "") + message).utf8)
    self.isFault = isFault
    self.target = target
  }

  package static func links(library: String, file: String?) -> Self { Self("links \(library)", file: file) }

  package static func holdsNetworking(file: String?) -> Self {
    Self("holds the toolchain's FoundationNetworking", file: file)
  }

  package static func holdsCurl(file: String?) -> Self { Self("holds libcurl", file: file) }

  /// Swift's libraries are linked statically, and the symbols that would show which are stripped.
  package static func undetermined(file: String?) -> Self {
    Self(
      "links Swift's libraries statically and is stripped of its symbols: check it unstripped", file: file,
      isFault: false)
  }

  static func compiledAgainstToolchain(target: String) -> Self {
    Self("the target \(target) was compiled against the toolchain's FoundationNetworking", target: target)
  }

  static func compiledBeforeLarkspur(target: String) -> Self {
    Self("the target \(target) was compiled before Larkspur was last built, and may crash", target: target)
  }

  /// Larkspur was built between the first time that the target can have been compiled and the last.
  static func compiledAroundLarkspur(target: String) -> Self {
    let message = "whether the target \(target) was compiled before Larkspur was last built cannot be determined"
    return Self(message, isFault: false, target: target)
  }

  /// Some files of the build directory are too large, too many or not readable.
  static let targetsNotRead = Self(
    "some of the files that tell how its targets were compiled could not be read", isFault: false)
}
