import Glibc

/// The number of descriptors that this process may have.
public enum DescriptorLimit {
  /// Raises the limit to `count`, or to the most that the system grants. A higher limit stays.
  public static func raise(to count: Int) throws(Errno) {
    guard larkspur_raise_descriptor_limit(UInt64(max(count, 0))) == 0 else { throw .current }
  }
}
