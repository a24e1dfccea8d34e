extension RequestComposer {
  /// What is written for one request beside its own fields. (It is moved about, and hardly any request has fields of these.)
  struct Extras {
    /// A redirection has left the origin that the program had meant.
    var isElsewhere = false
    var addsDefaultContentType = false
    /// The request goes to a proxy in place of the host.
    var isForwarded = false
    /// Never changed: others may have it, too.
    private var fields: Fields?

    private final class Fields {
      let cookie: String?
      let authorization: String?
      let speaker: String?
      let proxyAuthorization: String?
      let conditions: [RequestFields.Field]

      init(
        _ cookie: String?, _ authorization: String?, _ speaker: String?, _ proxyAuthorization: String?,
        _ conditions: [RequestFields.Field]
      ) {
        self.cookie = cookie
        self.authorization = authorization
        self.speaker = speaker
        self.proxyAuthorization = proxyAuthorization
        self.conditions = conditions
      }
    }

    var cookie: String? {
      get { fields?.cookie }
      set { fields = Fields(newValue, authorization, speaker, proxyAuthorization, conditions) }
    }

    var authorization: String? {
      get { fields?.authorization }
      set { fields = Fields(cookie, newValue, speaker, proxyAuthorization, conditions) }
    }

    /// For whom `authorization` speaks, where that itself is another one each time.
    var speaker: String? {
      get { fields?.speaker }
      set { fields = Fields(cookie, authorization, newValue, proxyAuthorization, conditions) }
    }

    var proxyAuthorization: String? {
      get { fields?.proxyAuthorization }
      set { fields = Fields(cookie, authorization, speaker, newValue, conditions) }
    }

    /// Conditions that the cache adds.
    var conditions: [RequestFields.Field] {
      get { fields?.conditions ?? [] }
      set { fields = Fields(cookie, authorization, speaker, proxyAuthorization, newValue) }
    }

    /// Nothing is written besides.
    var isNone: Bool {
      guard !addsDefaultContentType else { return false }
      guard let fields else { return true }
      return fields.cookie == nil && fields.authorization == nil && fields.proxyAuthorization == nil
        && fields.conditions.isEmpty
    }
  }
}
