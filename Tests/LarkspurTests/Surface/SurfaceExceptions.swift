/// The deliberate differences from FoundationNetworking: the path of each declaration, with the reason.
let surfaceExceptions: [String: String] = [
  "URLSession.ResponseDisposition.becomeStream":
    "as on Darwin; what delegates answer is switched over by sessions only",
  "URLSessionWebSocketTask.CloseCode.other(_:)":
    "the codes of applications, 3000 to 4999, which on Darwin are values of the enumeration without a name",
]
