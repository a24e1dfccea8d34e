/// The operands of `larkspur check`.
package struct CheckOptions: Hashable, Sendable {
  /// Programs, and build folders of SwiftPM.
  package var programs: [String]
  /// Whether to remove what the compiler has made of the targets that have to be compiled again.
  package var mends: Bool

  package init(programs: [String] = [], mends: Bool = false) {
    self.programs = programs
    self.mends = mends
  }

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> CheckOptions? {
    var reader = ArgumentReader(arguments, options: [.init("h", "help"), .init(nil, "mend")])
    var result = CheckOptions()
    while let argument = try reader.next() {
      switch argument {
      case .option("mend", _): result.mends = true
      case .option: return nil
      case .operand(let path):
        guard !path.isEmpty else { throw UsageError("the program's path is empty") }
        result.programs.append(path)
      }
    }
    guard !result.programs.isEmpty else { throw UsageError("the program is missing") }
    return result
  }
}
