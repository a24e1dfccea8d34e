/// The options of `larkspur pins`.
package struct PinsOptions: Hashable, Sendable {
  package var url = ""
  /// The limit for connecting, or `nil` for no limit.
  package var connectTimeout: Duration?
  package var tls = TLSOptions()

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> PinsOptions? {
    let options: [ArgumentReader.Option] = [.init(nil, "connect-timeout", takesValue: true), .init("h", "help")]
    var reader = ArgumentReader(arguments, options: options + TLSOptions.options, topic: .pins)
    var result = PinsOptions()
    while let argument = try reader.next() {
      switch argument {
      case .operand(let word):
        guard result.url.isEmpty else { throw UsageError(secondURL: word, after: result.url, topic: .pins) }
        guard !word.isEmpty else { throw UsageError("the URL is empty", topic: .pins) }
        result.url = word
      case .option("help", _): return nil
      case .option("connect-timeout", let value):
        result.connectTimeout = try GetOptions.timeout(value, of: "connect-timeout", topic: .pins)
      case .option(let name, let value): _ = try result.tls.take(name, value, topic: .pins)
      }
    }
    guard !result.url.isEmpty else { throw UsageError("the URL is missing", topic: .pins) }
    try result.tls.check(topic: .pins)
    return result
  }
}
