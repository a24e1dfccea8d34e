/// Limits on the work that a JSON Patch can cause. Each limit is inclusive: the value itself passes, one more fails.
///
/// A patch often comes from a server. Without limits, twenty-odd `copy` operations double a small document until it
/// fills the memory.
public struct AFJSONPatchLimits: Hashable, Sendable {
  /// Maximum number of nested arrays and objects at the place that an operation changes. The default is the greatest
  /// depth that `JSONSerialization` reads. A deeper document ends a program that walks it recursively.
  public var depthMax = 512

  /// Maximum number of values that all `copy` operations of a patch copy, and that its `move` operations move to a
  /// greater depth. A container counts as one value, plus its members. Values of `add` and `replace` do not count: the
  /// patch itself has to contain them.
  public var carriedValuesMax = 1 << 20

  /// Maximum number of bytes of JSON that all these values have, with their names. 16 MiB by default.
  ///
  /// Without the limit, a patch of 140 KB makes a document of 300 MB, by 3,000 copies of a text of 100 KB.
  public var carriedBytesMax = 1 << 24

  /// Maximum number of array elements that all insertions and removals of a patch shift. The default is about a second
  /// of work. A patch that inserts at the beginning of a long array thousands of times takes hours otherwise.
  public var shiftedElementsMax = 1 << 28

  /// Creates limits with the defaults.
  public init() {}
}
