/// A command line that cannot be understood.
package struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String
  /// The topic of `larkspur help` that tells more.
  package var topic: HelpTopic

  package init(_ description: String, topic: HelpTopic = .overview) {
    self.description = description
    self.topic = topic
  }

  init(secondURL: String, after first: String, topic: HelpTopic) {
    let hint = secondURL == "-" && topic == .get ? " (-C finds out by itself where to go on)" : ""
    self.init(
      "more than one URL: \(RequestURL.redacted(first)) and \(RequestURL.redacted(secondURL))\(hint)", topic: topic)
  }
}
