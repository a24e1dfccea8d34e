import Foundation
import LarkspurConsole
import LarkspurIO

/// `larkspur check`: finds the toolchain's FoundationNetworking and curl's library in programs.
struct Check {
  private let options: CheckOptions

  init(_ options: CheckOptions) {
    self.options = options
  }

  func run() -> ExitStatus {
    var findings: [Finding] = []
    var products: [String] = []
    var failure: ExitStatus?
    for program in options.programs {
      do throws(CommandFailure) {
        let (directory, found) = try report(on: program)
        findings += found
        for target in found.compactMap(\.target) {
          let made = directory.products(of: target)
          for product in made where !products.contains(product) { products.append(product) }
          if options.mends { try BuildDirectory.remove(made) }
        }
      } catch {
        failure = error.report()
      }
    }
    let hasFault = findings.contains(where: \.isFault)
    if hasFault || !products.isEmpty { Console.print(Self.remedy(products, isRemoved: options.mends)) }
    if hasFault { return .foreignNetworking }
    return failure ?? (findings.isEmpty ? .success : .networkingUnknown)
  }

  /// Prints a line for each finding, or one line if there is none.
  private func report(on program: String) throws(CommandFailure) -> (BuildDirectory, [Finding]) {
    let name = Format.visible(program.utf8)
    if FileManager.default.fileExists(atPath: program + "/Modules") {
      let directory = BuildDirectory((try? FilePaths.resolved(program)) ?? program)
      let findings = directory.findings()
      if findings.isEmpty { Console.print("\(name): no target was compiled against another networking\n") }
      for finding in findings { Console.print("\(name): \(finding.message)\n") }
      return (directory, findings)
    }
    let files = try LinkedFile.all(from: program)
    let directory = BuildDirectory(of: files)
    let findings = files.flatMap(\.findings) + directory.findings()
    for finding in findings { Console.print("\(name): \(finding.message)\n") }
    if findings.isEmpty {
      let isStripped = files.contains(where: \.isStripped)
      let note = isStripped ? " (stripped: a libcurl that is linked statically would not be seen)" : ""
      Console.print("\(name): nothing of FoundationNetworking or libcurl\(note)\n")
    }
    return (directory, findings)
  }

  /// Returns what to do: to compile the named targets again, or the whole package if the fault is in no named target.
  private static func remedy(_ products: [String], isRemoved: Bool) -> String {
    let first =
      if products.isEmpty {
        "  swift package clean\n"
      } else if isRemoved {
        ""
      } else {
        "  rm -r \(products.map(quoted).joined(separator: " "))\n"
      }
    let subject = products.isEmpty ? "the package" : "these targets"
    return """
      To mend that, build \(subject) anew, each time with the build's options (such as -c release):
      \(first)  swift build --target FoundationNetworking
        swift build

      """
  }

  /// Quotes a path for a shell, unless the path needs no quotes.
  private static func quoted(_ path: String) -> String {
    let visible = Format.visible(path.utf8)
    let isPlain = visible.utf8.allSatisfy { byte in
      UnicodeScalar(byte).properties.isAlphabetic && byte < 0x80 || "0123456789/._-+".utf8.contains(byte)
    }
    return isPlain ? visible : "'\(visible.replacing("'", with: "'\\''"))'"
  }
}
