/// An open file descriptor with a single owner, closed exactly once, when this value ends.
public struct Descriptor: ~Copyable, Sendable {
  public let number: Int32
  public let kernel: any Kernel

  /// Takes ownership of the descriptor that a kernel call returned.
  ///
  /// - Parameter result: A descriptor, or a negated error number.
  /// - Throws: The error, if `result` is negative.
  public init(_ result: Int32, kernel: any Kernel) throws(Errno) {
    guard result >= 0 else { throw Errno(rawValue: -result) }
    self.number = result
    self.kernel = kernel
  }

  deinit {
    kernel.close(number)
  }
}
