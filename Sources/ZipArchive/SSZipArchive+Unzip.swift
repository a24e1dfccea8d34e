import Foundation

/// Extraction. Every form extracts all entries, or leaves the destination as it was: after an error, what was extracted
/// is removed, and replaced files are put back.
extension SSZipArchive {
  /// Receives the name of an extracted entry, information about it, its index from 0, and the number of entries.
  public typealias UnzipProgressHandler = (String, unz_file_info, Int, Int) -> Void
  /// Receives the archive's path, whether the extraction has succeeded, and its error.
  public typealias UnzipCompletionHandler = (String, Bool, (any Error)?) -> Void

  /// Extracts an archive, keeps attributes, and replaces files.
  ///
  /// - Returns: Whether the extraction has succeeded.
  @discardableResult
  public class func unzipFile(atPath path: String, toDestination destination: String) -> Bool {
    unzipFile(atPath: path, toDestination: destination, delegate: nil)
  }

  /// Extracts an archive, keeps attributes, and replaces files.
  ///
  /// - Returns: Whether the extraction has succeeded.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, delegate: (any SSZipArchiveDelegate)?
  ) -> Bool {
    unzip(path, destination, options(), delegate) == nil
  }

  /// Extracts an archive, and keeps attributes.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - destination: The directory, which is created if it does not exist.
  ///   - overwrite: Whether to replace files. If `false`, files that exist stay, and are no error.
  ///   - password: For encrypted entries. `nil` and an empty text mean no password.
  /// - Throws: An error with ``SSZipArchiveErrorDomain``; `CocoaError.userCancelled` if the Swift task that runs the
  ///   call is cancelled.
  public class func unzipFile(
    atPath path: String, toDestination destination: String, overwrite: Bool, password: String?
  ) throws {
    try unzipFile(
      atPath: path, toDestination: destination, overwrite: overwrite, password: password, delegate: nil)
  }

  /// Extracts an archive, and keeps attributes. The other parameters and the errors are those of
  /// ``unzipFile(atPath:toDestination:overwrite:password:)``.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - destination: The directory, which is created if it does not exist.
  ///   - overwrite: Whether to replace files. If `false`, files that exist stay, and are no error.
  ///   - password: For encrypted entries. `nil` and an empty text mean no password.
  ///   - delegate: Called on the caller's thread.
  public class func unzipFile(
    atPath path: String, toDestination destination: String, overwrite: Bool, password: String?,
    delegate: (any SSZipArchiveDelegate)?
  ) throws {
    let options = options(overwrites: overwrite, password: password)
    try Extraction.run(path, to: destination, options, delegate: delegate)
  }

  /// Extracts an archive with the given limits. SSZipArchive has no such function.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - destination: The directory, which is created if it does not exist.
  ///   - preserveAttributes: Whether files and new directories get the permissions and times of the archive. Files
  ///     can always be read and written by their owner. The bits for setuid, setgid and sticky are never set.
  ///   - overwrite: Whether to replace files. If `false`, files that exist stay, and are no error.
  ///   - nestedZipLevel: How deep archives in the archive are extracted, each into its own directory, 32 at most. An
  ///     archive that is extracted is not kept. 0 for not at all.
  ///   - password: For encrypted entries, also those of nested archives. `nil` and an empty text mean no password.
  ///   - limits: The limits of this extraction.
  /// - Throws: An error with ``SSZipArchiveErrorDomain``; `CocoaError.userCancelled` if the Swift task that runs the
  ///   call is cancelled.
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool = true, overwrite: Bool = true,
    nestedZipLevel: Int = 0, password: String? = nil, limits: SSZipArchiveLimits
  ) throws {
    var options = options(preserveAttributes, overwrite, nestedZipLevel, password)
    options.limits = limits
    try Extraction.run(path, to: destination, options)
  }

  /// Extracts an archive, keeps attributes, and replaces files. Calls the handlers on the caller's thread.
  ///
  /// - Returns: Whether the extraction has succeeded.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, progressHandler: UnzipProgressHandler?,
    completionHandler: UnzipCompletionHandler?
  ) -> Bool {
    unzip(path, destination, options(), nil, progressHandler, completionHandler) == nil
  }

  /// Extracts an archive, and keeps attributes. Calls the handlers on the caller's thread.
  ///
  /// - Returns: Whether the extraction has succeeded.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, overwrite: Bool, password: String?,
    progressHandler: UnzipProgressHandler?, completionHandler: UnzipCompletionHandler?
  ) -> Bool {
    let options = options(overwrites: overwrite, password: password)
    return unzip(path, destination, options, nil, progressHandler, completionHandler) == nil
  }

  // MARK: - Helpers

  static func options(
    _ preservesAttributes: Bool = true, _ overwrites: Bool = true, _ nestedLevel: Int = 0, _ password: String? = nil
  ) -> Extraction.Options {
    Extraction.Options(
      preservesAttributes: preservesAttributes, overwrites: overwrites, nestedLevel: nestedLevel, password: password,
      limits: limits)
  }

  private static func options(overwrites: Bool, password: String?) -> Extraction.Options {
    options(true, overwrites, 0, password)
  }

  /// Extracts an archive, and calls the completion handler.
  ///
  /// - Returns: The error.
  static func unzip(
    _ path: String, _ destination: String, _ options: Extraction.Options, _ delegate: (any SSZipArchiveDelegate)?,
    _ progressHandler: UnzipProgressHandler? = nil, _ completionHandler: UnzipCompletionHandler? = nil
  ) -> NSError? {
    do {
      try Extraction.run(path, to: destination, options, delegate: delegate, progressHandler: progressHandler)
    } catch {
      completionHandler?(path, false, error)
      return error as NSError
    }
    completionHandler?(path, true, nil)
    return nil
  }
}
