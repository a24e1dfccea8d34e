import Foundation

extension AFJSONPatchOperation {
  /// Applies a patch to a JSON document, whole or not at all (RFC 6902, section 5).
  ///
  /// Numbers are equal if their values are equal (1 and 1.0). Texts and names are equal if their code points are equal.
  /// The boolean `true` is not equal to 1.
  ///
  /// - Parameters:
  ///   - operations: The operations of the patch, applied in their order, each to the result of the one before.
  ///   - document: The document: an object of `JSONSerialization`, or Swift values in its place. The document stays
  ///     unchanged.
  ///   - limits: Limits on the depth of the result and on the work.
  /// - Returns: The changed document. Its changed arrays and objects are Swift arrays and dictionaries.
  /// - Throws: An ``AFJSONPatchError`` with the index of the operation that failed.
  public class func apply(
    _ operations: [AFJSONPatchOperation], to document: Any, limits: AFJSONPatchLimits = AFJSONPatchLimits()
  ) throws -> Any {
    var changed = JSONDocument(document, limits: limits)
    for (index, operation) in operations.enumerated() {
      do throws(AFJSONPatchError.Reason) {
        try operation.apply(to: &changed)
      } catch {
        throw AFJSONPatchError(error, operationIndex: index)
      }
    }
    return changed.root
  }

  /// Applies this operation alone to a JSON document.
  ///
  /// - Parameters:
  ///   - document: The document, which stays unchanged.
  ///   - limits: Limits on the depth of the result and on the work.
  /// - Returns: The changed document.
  /// - Throws: An ``AFJSONPatchError``.
  public func apply(to document: Any, limits: AFJSONPatchLimits = AFJSONPatchLimits()) throws -> Any {
    try AFJSONPatchOperation.apply([self], to: document, limits: limits)
  }

  private func apply(to document: inout JSONDocument) throws(AFJSONPatchError.Reason) {
    let path = try JSONPointer(self.path ?? "")
    switch type {
    case .addOperationType: try document.add(value ?? NSNull(), at: path)
    case .removeOperationType: try document.remove(at: path)
    case .replaceOperationType: try document.replace(value ?? NSNull(), at: path)
    case .moveOperationType: try document.move(from: JSONPointer(from ?? ""), to: path)
    case .copyOperationType: try document.copy(from: JSONPointer(from ?? ""), to: path)
    case .testOperationType: try document.test(value ?? NSNull(), at: path)
    }
  }
}
