import LarkspurHTTP

/// What a task and its servers say about credentials.
final class TaskAuthentication {
  /// To one of the two who may ask for them.
  struct Side {
    var talk: AuthenticationConversation?
    /// What the request has to say to be let through.
    var value: String?

    /// Whether nothing has been said.
    var isOpen: Bool { talk == nil && value == nil }
  }

  /// The present origin.
  var origin = Side()
  var proxy = Side()

  subscript(role: AuthenticationTarget.Role) -> Side {
    get {
      switch role {
      case .origin: origin
      case .proxy: proxy
      }
    }
    set {
      switch role {
      case .origin: origin = newValue
      case .proxy: proxy = newValue
      }
    }
  }

  /// The server or the proxy has let the request pass. Returns what the storage has to do about it.
  func accepted(by response: HTTPURLResponse) -> [@Sendable () -> Void] {
    let ofOrigin =
      response.statusCode == 401
      ? nil : origin.talk?.accepted(info: response.fields.values(of: "Authentication-Info"))
    let ofProxy =
      response.statusCode == 407
      ? nil : proxy.talk?.accepted(info: response.fields.values(of: "Proxy-Authentication-Info"))
    return [ofOrigin, ofProxy].compactMap(\.self)
  }
}
