import LarkspurConsole

/// A trace of the toolchain's FoundationNetworking or of curl's library in a program.
///
/// `file` is the name of a shared library beside the program, or `nil` for the program itself. Names come from the
/// files unchanged; only `message` makes them safe for a terminal.
package enum Finding: Hashable, Sendable {
  case links(library: String, file: String?)
  case holdsNetworking(file: String?)
  case holdsCurl(file: String?)
  /// Swift's libraries are linked statically, and the symbols that would show which are stripped.
  case undetermined(file: String?)
  case compiledAgainstToolchain(target: String)
  case compiledBeforeLarkspur(target: String)
  /// Larkspur was built between the first time that the target can have been compiled and the last.
  case compiledAroundLarkspur(target: String)
  /// Some files of the build directory are too large, too many or not readable.
  case targetsNotRead

  /// Whether the finding is a fault, which a new build repairs. Any other finding means that a fact is unknown.
  package var isFault: Bool {
    switch self {
    case .links, .holdsNetworking, .holdsCurl, .compiledAgainstToolchain, .compiledBeforeLarkspur: true
    case .undetermined, .compiledAroundLarkspur, .targetsNotRead: false
    }
  }

  package var message: String {
    let message =
      switch self {
      case .links(let library, let file): Self.subject(file) + "links \(library)"
      case .holdsNetworking(let file): Self.subject(file) + "holds the toolchain's FoundationNetworking"
      case .holdsCurl(let file): Self.subject(file) + "holds libcurl"
      case .undetermined(let file):
        Self.subject(file) + "links Swift's libraries statically and is stripped of its symbols: check it unstripped"
      case .compiledAgainstToolchain(let target):
        "the target \(target) was compiled against the toolchain's FoundationNetworking"
      case .compiledBeforeLarkspur(let target):
        "the target \(target) was compiled before Larkspur was last built, and may crash"
      case .compiledAroundLarkspur(let target):
        "whether the target \(target) was compiled before Larkspur was last built cannot be determined"
      case .targetsNotRead: "some of the files that tell how its targets were compiled could not be read"
      }
    return Format.visible(message.utf8)
  }

  /// The target that has to be compiled again, or `nil` if the finding names none.
  var target: String? {
    switch self {
    case .compiledAgainstToolchain(let target), .compiledBeforeLarkspur(let target),
      .compiledAroundLarkspur(let target):
      target
    case .links, .holdsNetworking, .holdsCurl, .undetermined, .targetsNotRead: nil
    }
  }

  private static func subject(_ file: String?) -> String { file.map { $0 + " " } ?? "" }
}
