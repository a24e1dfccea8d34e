/// An open file descriptor with one owner. It is closed when its owner lets go of it, exactly once.
public struct Descriptor: ~Copyable, Sendable {
  public let number: Int32
  public let kernel: any Kernel

  /// Takes over what a kernel call returned.
  public init(_ result: Int32, kernel: any Kernel) throws(Errno) {
    guard result >= 0 else { throw Errno(rawValue: -result) }
    self.number = result
    self.kernel = kernel
  }

  deinit {
    kernel.close(number)
  }
}
