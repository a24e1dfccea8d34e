@_implementationOnly import CLarkspurOpenSSL

/// An object of OpenSSL's that counts its references: one of them is ours, and goes with the last owner here.
///
/// What is kept so is not changed any more once it is shared, or is locked by OpenSSL itself (certificates, keys,
/// stores, contexts, sessions): any thread may read it.
@safe
final class Reference: @unchecked Sendable {
  // Safe: the object lives as long as this reference to it.
  @unsafe let pointer: OpaquePointer
  private let release: (OpaquePointer?) -> Void

  /// Takes a reference over. Nil for null.
  @unsafe
  init?(_ pointer: OpaquePointer?, releasedBy release: @escaping (OpaquePointer?) -> Void) {
    guard let pointer = unsafe pointer else { return nil }
    unsafe self.pointer = pointer
    unsafe self.release = unsafe release
  }

  deinit {
    // Safe: this is the one reference that was taken over.
    unsafe release(pointer)
  }
}

extension [UInt8] {
  /// Copies memory that C allocated for us, and frees it.
  @unsafe
  init(taking bytes: larkspur_bytes) {
    // Safe: `bytes` is as long as it says, and nobody else has it.
    self = unsafe bytes.bytes == nil ? [] : Array(UnsafeBufferPointer(start: bytes.bytes, count: bytes.count))
    unsafe larkspur_bytes_free(bytes)
  }
}
