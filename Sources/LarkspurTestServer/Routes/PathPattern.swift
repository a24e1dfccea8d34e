/// A path with variable segments: `/bytes/{count}`, `/files/*`.
struct PathPattern: Hashable, Sendable {
  private enum Segment: Hashable {
    case literal(String)
    case parameter(String)
    /// Zero or more segments.
    case rest
  }

  private let segments: [Segment]

  init(_ path: String) {
    segments = Self.segments(of: path).map { text in
      if text == "*" { return .rest }
      if text.hasPrefix("{"), text.hasSuffix("}") { return .parameter(String(text.dropFirst().dropLast())) }
      return .literal(percentDecoded(text))
    }
  }

  /// - Returns: The values of the parameters, or `nil` if the path does not match.
  func match(_ path: String) -> [String: String]? {
    var parts = Self.segments(of: path)[...]
    var parameters: [String: String] = [:]
    for segment in segments {
      if segment == .rest { return parameters }
      guard let part = parts.popFirst().map({ percentDecoded($0) }) else { return nil }
      switch segment {
      case .literal(let text): guard part == text else { return nil }
      case .parameter(let name): parameters[name] = part
      case .rest: break
      }
    }
    return parts.isEmpty ? parameters : nil
  }

  private static func segments(of path: String) -> [Substring] {
    (path.hasPrefix("/") ? path.dropFirst() : path[...]).split(separator: "/", omittingEmptySubsequences: false)
  }
}
