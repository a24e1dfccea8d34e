/// Where Larkspur differs from FoundationNetworking, by the path of the declaration, and why.
let surfaceExceptions: [String: String] = [
  "URLSession.ResponseDisposition.becomeStream": "as on Darwin; what delegates answer is switched over by sessions only"
]
