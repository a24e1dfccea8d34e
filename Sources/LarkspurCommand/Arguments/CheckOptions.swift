/// The operands of `larkspur check`.
package struct CheckOptions: Hashable, Sendable {
  package var programs: [String]

  package init(programs: [String] = []) {
    self.programs = programs
  }

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> CheckOptions? {
    var reader = ArgumentReader(arguments, options: [.init("h", "help")], topic: .check)
    var result = CheckOptions()
    while let argument = try reader.next() {
      switch argument {
      case .option: return nil
      case .operand(let path):
        guard !path.isEmpty else { throw UsageError("the program's path is empty", topic: .check) }
        result.programs.append(path)
      }
    }
    guard !result.programs.isEmpty else { throw UsageError("the program is missing", topic: .check) }
    return result
  }
}
