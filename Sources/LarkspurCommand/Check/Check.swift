/// `larkspur check`: finds the toolchain's FoundationNetworking and curl's library in programs.
struct Check {
  private let options: CheckOptions

  init(_ options: CheckOptions) {
    self.options = options
  }

  func run() -> ExitStatus {
    var findings: [Finding] = []
    var failure: ExitStatus?
    for program in options.programs {
      do throws(CommandFailure) {
        findings += try report(on: program)
      } catch {
        if let message = error.message { Console.complain(message) }
        failure = error.status
      }
    }
    let hasFault = findings.contains(where: \.isFault)
    if hasFault { Console.print(Self.remedy) }
    if hasFault { return .foreignNetworking }
    return failure ?? (findings.isEmpty ? .success : .networkingUnknown)
  }

  /// Prints a line for each finding, or one line if there is none.
  private func report(on program: String) throws(CommandFailure) -> [Finding] {
    let files = try LinkedFile.all(from: program)
    let findings = files.flatMap(\.findings) + BuildDirectory(of: files).findings()
    let name = Format.visible(program.utf8)
    for finding in findings { Console.print("\(name): \(finding.message)\n") }
    if findings.isEmpty {
      let isStripped = files.contains(where: \.isStripped)
      let note = isStripped ? " (stripped: a libcurl that is linked statically would not be seen)" : ""
      Console.print("\(name): nothing of FoundationNetworking or libcurl\(note)\n")
    }
    return findings
  }

  private static let remedy = """
    To mend that, build the package anew, each time with its options (such as -c release):
      swift package clean
      swift build --target FoundationNetworking
      swift build

    """
}
