/// A command line that cannot be understood.
package struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String
  /// The topic of `larkspur help` with the details.
  package var topic: HelpTopic

  package init(_ description: String, topic: HelpTopic = .overview) {
    self.description = description
    self.topic = topic
  }
}
