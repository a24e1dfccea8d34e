extension RequestComposer {
  /// What is written for one request beside its own fields. (It is moved about, and hardly any request has fields of these.)
  struct Extras {
    /// A redirection has left the origin that the program had meant.
    var isElsewhere = false
    var addsDefaultContentType = false
    /// The request goes to a proxy in place of the host.
    var isForwarded = false
    private var fields: Fields?

    private struct Values {
      var cookie: String?
      var authorization: String?
      var speaker: String?
      var proxyAuthorization: String?
      var conditions: [RequestFields.Field] = []
    }

    /// Never changed: others may have it, too.
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

    var cookie: String? {
      get { fields?.values.cookie }
      set { set(newValue != nil) { $0.cookie = newValue } }
    }

    var authorization: String? {
      get { fields?.values.authorization }
      set { set(newValue != nil) { $0.authorization = newValue } }
    }

    /// For whom `authorization` speaks, where that itself is another one each time.
    var speaker: String? {
      get { fields?.values.speaker }
      set { set(newValue != nil) { $0.speaker = newValue } }
    }

    var proxyAuthorization: String? {
      get { fields?.values.proxyAuthorization }
      set { set(newValue != nil) { $0.proxyAuthorization = newValue } }
    }

    /// Conditions that the cache adds.
    var conditions: [RequestFields.Field] {
      get { fields?.values.conditions ?? [] }
      set { set(!newValue.isEmpty) { $0.conditions = newValue } }
    }

    /// Nothing is written besides.
    var isNone: Bool {
      guard !addsDefaultContentType else { return false }
      guard let values = fields?.values else { return true }
      return values.cookie == nil && values.authorization == nil && values.proxyAuthorization == nil
        && values.conditions.isEmpty
    }
  }
}
