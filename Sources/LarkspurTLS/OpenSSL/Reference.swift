import Glibc

/// A reference to a reference-counted object of OpenSSL, released with the last owner.
///
/// Any thread may read the object: it is either not changed once it is shared, or locked by OpenSSL (certificates,
/// keys, stores, contexts, sessions).
@safe
final class Reference: @unchecked Sendable {
  // Safe: the object lives as long as this reference to it.
  @unsafe let pointer: OpaquePointer
  private let release: (OpaquePointer?) -> Void

  /// Takes ownership of a reference. Returns `nil` for a null pointer.
  @unsafe
  init?(_ pointer: OpaquePointer?, releasedBy release: @escaping (OpaquePointer?) -> Void) {
    guard let pointer = unsafe pointer else { return nil }
    unsafe self.pointer = pointer
    unsafe self.release = unsafe release
  }

  deinit {
    // Safe: releases the one reference that `init` took.
    unsafe release(pointer)
  }
}

extension [UInt8] {
  /// Copies memory that C allocated for the caller, and frees it.
  @unsafe
  init(taking bytes: UnsafeMutableRawPointer?) {
    self = []
    guard let bytes = unsafe bytes else { return }
    // Safe: the memory begins with the number of the bytes after it (`larkspur_bytes`), and has no other owner.
    let start = MemoryLayout<Int>.size
    self = unsafe Array(UnsafeRawBufferPointer(start: bytes + start, count: bytes.load(as: Int.self)))
    unsafe free(bytes)
  }
}
