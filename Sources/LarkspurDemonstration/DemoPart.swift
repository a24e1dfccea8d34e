/// A part of the demo, which shows one capability.
struct DemoPart: Sendable {
  let title: String
  /// Shows the part, and returns its result in a few words for the table. An error that it throws is the reason of
  /// failure.
  let show: @Sendable (DemoStage) async throws -> String

  init(_ title: String, show: @escaping @Sendable (DemoStage) async throws -> String) {
    self.title = title
    self.show = show
  }
}

/// The failure of a part, in words.
struct DemoFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }

  /// Throws a failure with these words unless the condition holds.
  static func unless(_ condition: Bool, _ message: @autoclosure () -> String) throws(DemoFailure) {
    if !condition { throw DemoFailure(message()) }
  }
}
