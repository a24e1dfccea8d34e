import LarkspurHTTP

extension RequestComposer {
  /// The additions to one request's fields. Performance: the values are behind one reference, because this structure is
  /// moved often and few requests have such fields.
  package struct AdditionalFields {
    /// Whether a redirection has left the origin that the program named.
    package var hasLeftOrigin = false
    package var addsDefaultContentType = false
    /// Whether the request goes to a proxy in place of the host.
    package var isForwarded = false
    private var fields: Fields?

    package init() {}

    private struct Values {
      var cookie: String?
      var authorization: String?
      var authorizationIdentity: String?
      var proxyAuthorization: String?
      var conditions: FieldList = []
      var replacements: FieldList = []
    }

    /// Immutable, because copies of the structure share it.
    private final class Fields {
      let values: Values
      init(_ values: Values) { self.values = values }
    }

    private mutating func set(_ isWanted: Bool, _ change: (inout Values) -> Void) {
      guard isWanted || fields != nil else { return }
      var values = fields?.values ?? Values()
      change(&values)
      fields = Fields(values)
    }

    package var cookie: String? {
      get { fields?.values.cookie }
      set { set(newValue != nil) { $0.cookie = newValue } }
    }

    package var authorization: String? {
      get { fields?.values.authorization }
      set { set(newValue != nil) { $0.authorization = newValue } }
    }

    /// The identity that `authorization` stands for, if the field's value differs in each request.
    package var authorizationIdentity: String? {
      get { fields?.values.authorizationIdentity }
      set { set(newValue != nil) { $0.authorizationIdentity = newValue } }
    }

    package var proxyAuthorization: String? {
      get { fields?.values.proxyAuthorization }
      set { set(newValue != nil) { $0.proxyAuthorization = newValue } }
    }

    /// Conditions that the cache adds to the request.
    package var conditions: FieldList {
      get { fields?.values.conditions ?? [] }
      set { set(!newValue.isEmpty) { $0.conditions = newValue } }
    }

    /// Fields that replace those of the same names: a WebSocket's opening handshake, or a resumable upload's fields.
    package var replacements: FieldList {
      get { fields?.values.replacements ?? [] }
      set { set(!newValue.isEmpty) { $0.replacements = newValue } }
    }

    /// Whether there is nothing to add.
    package var isNone: Bool {
      guard !addsDefaultContentType else { return false }
      guard let values = fields?.values else { return true }
      return values.cookie == nil && values.authorization == nil && values.proxyAuthorization == nil
        && values.conditions.isEmpty && values.replacements.isEmpty
    }
  }
}
