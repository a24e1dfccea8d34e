import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS

extension BodyHashing {
  static func of(_ data: Data) -> AuthenticatedRequest.BodyHash {
    { hash in
      guard var digest = MessageDigest(hash.algorithm) else { return nil }
      digest.update(data.span)
      return digest.finish()
    }
  }
}
