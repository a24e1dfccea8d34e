import Foundation

/// The forms of the extraction that report their error through a parameter. Each accepts `error: &error` and
/// `error: nil`. Foundation has no `NSErrorPointer` on Linux.
extension SSZipArchive {
  /// Extracts an archive. Calls the delegate and the handlers on the caller's thread.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - destination: The directory, which is created if it does not exist.
  ///   - preserveAttributes: Whether files and new directories get the permissions and times of the archive.
  ///   - overwrite: Whether to replace files. If `false`, files that exist stay, and are no error.
  ///   - symlinksValidWithin: The directory that symbolic links of the archive must not leave. `nil` permits links to
  ///     any place: the extraction does not write through links, but programs that read the files later may follow
  ///     them. Forms without this parameter use the destination.
  ///   - nestedZipLevel: How deep archives in the archive are extracted, each into its own directory, 32 at most. An
  ///     archive that is extracted is not kept. Forms without this parameter use 0.
  ///   - password: For encrypted entries. `nil` and an empty text mean no password.
  ///   - error: Receives the error, or `nil` if there is none.
  ///   - delegate: Called on the caller's thread.
  ///   - progressHandler: Called after each entry, on the caller's thread.
  ///   - completionHandler: Called at the end, on the caller's thread.
  /// - Returns: Whether the extraction has succeeded.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool, overwrite: Bool,
    symlinksValidWithin: String?, nestedZipLevel: Int, password: String?, error: inout NSError?,
    delegate: (any SSZipArchiveDelegate)?, progressHandler: UnzipProgressHandler?,
    completionHandler: UnzipCompletionHandler?
  ) -> Bool {
    var options = options(preserveAttributes, overwrite, nestedZipLevel, password)
    options.links = linkRule(symlinksValidWithin, destination)
    error = unzip(path, destination, options, delegate, progressHandler, completionHandler)
    return error == nil
  }

  /// Extracts an archive, and drops the error. The parameters are those of the form with an error.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool, overwrite: Bool,
    symlinksValidWithin: String?, nestedZipLevel: Int, password: String?, error: Never?,
    delegate: (any SSZipArchiveDelegate)?, progressHandler: UnzipProgressHandler?,
    completionHandler: UnzipCompletionHandler?
  ) -> Bool {
    var options = options(preserveAttributes, overwrite, nestedZipLevel, password)
    options.links = linkRule(symlinksValidWithin, destination)
    return unzip(path, destination, options, delegate, progressHandler, completionHandler) == nil
  }

  /// Extracts an archive. The parameters are those of the form with `symlinksValidWithin`.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool, overwrite: Bool,
    nestedZipLevel: Int, password: String?, error: inout NSError?, delegate: (any SSZipArchiveDelegate)?,
    progressHandler: UnzipProgressHandler?, completionHandler: UnzipCompletionHandler?
  ) -> Bool {
    let options = options(preserveAttributes, overwrite, nestedZipLevel, password)
    error = unzip(path, destination, options, delegate, progressHandler, completionHandler)
    return error == nil
  }

  /// Extracts an archive, and drops the error. The parameters are those of the form with `symlinksValidWithin`.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool, overwrite: Bool,
    nestedZipLevel: Int, password: String?, error: Never?, delegate: (any SSZipArchiveDelegate)?,
    progressHandler: UnzipProgressHandler?, completionHandler: UnzipCompletionHandler?
  ) -> Bool {
    let options = options(preserveAttributes, overwrite, nestedZipLevel, password)
    return unzip(path, destination, options, delegate, progressHandler, completionHandler) == nil
  }

  /// Extracts an archive. The parameters are those of the form with `symlinksValidWithin`.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool, overwrite: Bool,
    password: String?, error: inout NSError?, delegate: (any SSZipArchiveDelegate)?
  ) -> Bool {
    error = unzip(path, destination, options(preserveAttributes, overwrite, 0, password), delegate)
    return error == nil
  }

  /// Extracts an archive, and drops the error. The parameters are those of the form with `symlinksValidWithin`.
  @discardableResult
  public class func unzipFile(
    atPath path: String, toDestination destination: String, preserveAttributes: Bool, overwrite: Bool,
    password: String?, error: Never?, delegate: (any SSZipArchiveDelegate)?
  ) -> Bool {
    unzip(path, destination, options(preserveAttributes, overwrite, 0, password), delegate) == nil
  }

  private static func linkRule(_ directory: String?, _ destination: String) -> Extraction.LinkRule {
    guard let directory else { return .anywhere }
    return directory == destination ? .destination : .directory(directory)
  }
}
