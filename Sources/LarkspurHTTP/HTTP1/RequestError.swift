/// Why a request cannot be written. Every case is the caller's doing, and nothing has been sent.
public enum RequestError: Error, Hashable, Sendable {
  /// The method is empty or holds a byte that is not a token character.
  case methodInvalid(String)
  /// The target is empty or holds white space, a control character or a byte beyond ASCII.
  case targetInvalid(String)
  /// A field name is empty or holds a byte that is not a token character.
  case fieldNameInvalid(String)
  /// The value of the named field holds CR, LF, NUL or another control character.
  case fieldValueInvalid(name: String)
  /// The named field is the writer's own: `Host`, and those that say how long the body is (`Content-Length`,
  /// `Transfer-Encoding`).
  case fieldReserved(name: String)
  /// The named field is for proxies, and the request is not.
  case fieldForProxies(name: String)
}

extension RequestError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .methodInvalid(let method): "the method \(method.debugDescription) is not a token"
    case .targetInvalid(let target): "the request target \(target.debugDescription) holds an illegal character"
    case .fieldNameInvalid(let name): "the field name \(name.debugDescription) is not a token"
    case .fieldValueInvalid(let name): "the value of \(name) holds a control character"
    case .fieldReserved(let name): "\(name) follows from the request and cannot be set"
    case .fieldForProxies(let name): "\(name) is for proxies, and this request goes to none"
    }
  }
}
