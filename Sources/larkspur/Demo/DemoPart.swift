/// One capability that the demo shows.
struct DemoPart: Sendable {
  let title: String
  /// Shows it, and says the result in a few words for the table. What it throws is the reason for its failure.
  let show: @Sendable (DemoStage) async throws -> String

  init(_ title: String, show: @escaping @Sendable (DemoStage) async throws -> String) {
    self.title = title
    self.show = show
  }
}

/// What was not as it should have been.
struct DemoFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }

  /// Throws with these words unless the condition holds.
  static func unless(_ condition: Bool, _ words: @autoclosure () -> String) throws(DemoFailure) {
    if !condition { throw DemoFailure(words()) }
  }
}
