/// Why a request head or a trailer section cannot be written. In every case the caller is at fault, and nothing of that
/// head or trailer section has been sent.
public enum RequestError: Error, Hashable, Sendable {
  /// The method is empty or holds a byte that is not a token character.
  case methodInvalid(String)
  /// The target is empty or holds white space, a control character or a byte beyond ASCII; or the request goes to a
  /// proxy, is no CONNECT, and its target does not begin with `http://`.
  case targetInvalid(String)
  /// A field name is empty or holds a byte that is not a token character.
  case fieldNameInvalid(String)
  /// The value of the named field holds CR, LF, NUL or another control character except HTAB.
  case fieldValueInvalid(name: String)
  /// The named field is one that the writer sets itself: `Host`, or a field that delimits the body (`Content-Length`,
  /// `Transfer-Encoding`). In trailers only the latter two are reserved.
  case fieldReserved(name: String)
  /// The named field is for proxies only, and stands in a request to an origin server or in trailers.
  case fieldForProxies(name: String)
  /// The named field has a meaning only before the body, and stands in trailers.
  case fieldNotForTrailers(name: String)
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
    case .fieldNotForTrailers(let name): "\(name) has no meaning in trailers"
    }
  }
}
