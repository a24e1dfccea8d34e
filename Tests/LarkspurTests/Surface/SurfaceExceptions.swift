/// Where Larkspur differs from FoundationNetworking, by the path of the declaration, and why.
let surfaceExceptions: [String: String] = [:]
