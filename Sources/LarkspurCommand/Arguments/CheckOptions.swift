/// The operands of `larkspur check`.
package struct CheckOptions: OptionList, Hashable, Sendable {
  /// Programs, and build folders of SwiftPM.
  package var programs: [String]
  /// Whether to remove what the compiler has made of the targets that have to be compiled again.
  package var mends: Bool

  package init(programs: [String], mends: Bool = false) { (self.programs, self.mends) = (programs, mends) }

  init() { self.init(programs: []) }

  static let options: [CommandOption<CheckOptions>] = [
    .flag(
      nil, "mend",
      "Remove what the compiler has made of the named targets, so that the next build compiles them anew.", \.mends)
  ]

  mutating func take(_ path: String) throws(UsageError) {
    guard !path.isEmpty else { throw UsageError("the program's path is empty") }
    programs.append(path)
  }

  func check() throws(UsageError) {
    guard !programs.isEmpty else { throw UsageError("the program is missing") }
  }
}
