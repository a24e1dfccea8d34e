/// The deliberate differences from FoundationNetworking: the path of each declaration, with the reason.
let surfaceExceptions: [String: String] = [
  "URLSession.ResponseDisposition.becomeStream": "as on Darwin; what delegates answer is switched over by sessions only"
]
