/// The options of `larkspur pins`.
package struct PinsOptions: OptionList, Hashable, Sendable {
  package var url = ""
  /// The limit for connecting, or `nil` for no limit.
  package var connectTimeout: Duration?
  package var tls = TLSOptions()

  static let options: [CommandOption<PinsOptions>] =
    [.seconds(nil, "connect-timeout", "Give up when there is no connection after S seconds.", \.connectTimeout)]
    + TLSOptions.options.within(\.tls)

  mutating func take(_ word: String) throws(UsageError) { try GetOptions.take(word, as: &url) }

  func check() throws(UsageError) {
    guard !url.isEmpty else { throw UsageError("the URL is missing") }
    try tls.check()
  }
}
