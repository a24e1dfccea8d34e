import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// Computes the hashes of Digest with OpenSSL. Returns `nil` for a hash that OpenSSL's policy forbids.
package let messageHash: DigestHash.Function = { hash, bytes in MessageDigest.of(bytes, hash.algorithm) }

extension DigestHash {
  package var algorithm: MessageDigest.Algorithm {
    switch self {
    case .md5: .md5
    case .sha256: .sha256
    case .sha512_256: .sha512_256
    }
  }
}

/// Functions that hash a request's body, as Digest's `auth-int` requires.
package enum BodyHashing {
  package static func of(_ bytes: [UInt8]) -> AuthenticatedRequest.BodyHash { { messageHash($0, bytes) } }

  /// Hashes a file, reading it to its end on the calling thread. The hash is `nil` if the file cannot be read.
  package static func ofFile(at path: String) -> AuthenticatedRequest.BodyHash {
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

  /// Returns no hash: a stream can be read only once, and that read sends the body.
  package static let impossible: AuthenticatedRequest.BodyHash = { _ in nil }
}

/// Returns 16 random bytes as hexadecimal digits, for Digest's `cnonce`.
package func clientNonce() -> String {
  let halves = [UInt64.random(in: 0 ... .max), .random(in: 0 ... .max)]
  return halves.map { half in
    let digits = String(half, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }.joined()
}
