import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The hashes of Digest, by OpenSSL. Nil: its policy does not let us have it.
let messageHash: DigestHash.Function = { hash, bytes in MessageDigest.of(bytes, hash.algorithm) }

extension DigestHash {
  fileprivate var algorithm: MessageDigest.Algorithm {
    switch self {
    case .md5: .md5
    case .sha256: .sha256
    case .sha512_256: .sha512_256
    }
  }
}

/// How the hash of a request's body is found, which Digest's `auth-int` wants.
enum BodyHashing {
  static func of(_ data: Data) -> AuthenticatedRequest.BodyHash {
    { hash in messageHash(hash, Array(data)) }
  }

  /// Reads the file to its end, on the calling thread. Nil: it cannot be read.
  static func ofFile(at path: String) -> AuthenticatedRequest.BodyHash {
    { hash in
      guard var digest = MessageDigest(hash.algorithm), let file = try? OpenFile(readingRegular: path) else {
        return nil
      }
      while true {
        guard let piece = try? file.read(atMost: 1 << 16) else { return nil }
        if piece.isEmpty { return digest.finish() }
        digest.update(piece.span)
      }
    }
  }

  /// A stream can be read once only, and that once is for the server.
  static let impossible: AuthenticatedRequest.BodyHash = { _ in nil }
}

/// Sixteen bytes that nobody can guess, in hexadecimal digits: Digest's `cnonce`.
func clientNonce() -> String {
  let halves = [UInt64.random(in: 0 ... .max), .random(in: 0 ... .max)]
  return halves.map { half in
    let digits = String(half, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }.joined()
}
