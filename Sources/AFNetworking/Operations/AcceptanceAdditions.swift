import Foundation
import Synchronization

/// Returns the media types in the value of an `Accept` or `Content-Type` field, without their parameters, or `nil` if
/// there is no field.
public func AFContentTypesFromHTTPHeader(_ string: String?) -> Set<String>? {
  guard let string else { return nil }
  let types = string.split(separator: ",").map { range in
    (range.split(separator: ";", omittingEmptySubsequences: false).first ?? "").trimmingCharacters(in: .whitespaces)
  }
  return Set(types.filter { !$0.isEmpty })
}

/// Status codes and content types that programs have added to operation classes. An addition counts for a class and its
/// subclasses.
enum AcceptanceAdditions {
  /// Content types are the texts of the program, which are only compared.
  private struct Addition: @unchecked Sendable {
    var statusCodes = IndexSet()
    var contentTypes: Set<AnyHashable> = []
  }

  private static let all = Mutex<[ObjectIdentifier: Addition]>([:])

  static func add(_ statusCodes: IndexSet, _ contentTypes: Set<AnyHashable>, for type: AnyClass) {
    all.withLock { all in
      all[ObjectIdentifier(type), default: Addition()].statusCodes.formUnion(statusCodes)
      all[ObjectIdentifier(type), default: Addition()].contentTypes.formUnion(contentTypes)
    }
  }

  static func statusCodes(for type: AnyClass) -> IndexSet {
    additions(for: type).reduce(into: IndexSet()) { $0.formUnion($1.statusCodes) }
  }

  static func contentTypes(for type: AnyClass) -> Set<AnyHashable> {
    additions(for: type).reduce(into: []) { $0.formUnion($1.contentTypes) }
  }

  private static func additions(for type: AnyClass) -> [Addition] {
    let all = all.withLock { $0 }
    return sequence(first: type) { _getSuperclass($0) }.compactMap { all[ObjectIdentifier($0)] }
  }
}
