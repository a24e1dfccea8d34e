import Foundation
import LarkspurBytes
import LarkspurHTTP

/// The content of resume data: the request, the progress of its download, and the name of the partial file.
///
/// To programs the data is opaque: a magic number with the version, an authentication code, which proves that this user
/// made the data, and a property list. Foreign resume data can therefore not make a session read, write or remove a
/// file, or send a request that the program never made.
///
/// The request is kept with the fields that the program had set, `Authorization` and `Cookie` among them: a
/// download that needs them could not be continued otherwise. Cookies, credentials and fields that the session adds are
/// not kept; the session that resumes adds its own. Resume data therefore needs the same protection as the request
/// itself.
struct ResumeData: Codable, Hashable, Sendable {
  var url: String
  var mainDocument: String?
  var fieldNames: [String]
  var fieldValues: [String]
  var timeout: Double?
  var cachePolicy: UInt
  var networkServiceType: UInt
  var flags: UInt16
  var point: ResumePoint
  /// The name of the partial file in the directory of partial files.
  var fileName: String
  /// Whether `fileName` names the destination of a download in segments, whose record has the bytes that are there.
  /// Data of earlier versions lacks the value.
  var isSegmented: Bool?

  /// Creates resume data, or `nil` if the request cannot be continued. The request has to be a GET without a body,
  /// without a range and without conditions.
  init?(_ request: URLRequest, _ point: ResumePoint, fileName: String, isSegmented: Bool = false) {
    guard Self.isResumable(request), let url = request.url?.absoluteString else { return nil }
    let (own, settings) = (request.own, RequestSettings(request))
    self.url = url
    mainDocument = settings.mainDocument
    fieldNames = own.fields?.map(\.name) ?? []
    fieldValues = own.fields?.map(\.value) ?? []
    timeout = settings.timeout
    cachePolicy = settings.cachePolicy
    networkServiceType = settings.networkServiceType
    flags = settings.flags
    self.point = point
    self.fileName = fileName
    self.isSegmented = isSegmented ? true : nil
  }

  static func isResumable(_ request: URLRequest) -> Bool {
    guard request.own.method == "GET", case .none = request.own.body else { return false }
    let own = request.own.fields ?? []
    return !own.contains { field in conditions.contains { field.name.equalsIgnoringCase($0) } }
  }

  private static let conditions = [
    "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
  ]

  /// The request that started the download, or `nil` if the URL or the fields are damaged.
  var request: URLRequest? {
    guard let url = URL(string: url), fieldNames.count == fieldValues.count else { return nil }
    let storage = RequestStorage(url: url)
    RequestSettings(
      mainDocument: mainDocument, timeout: timeout, cachePolicy: cachePolicy, networkServiceType: networkServiceType,
      flags: flags
    ).apply(to: storage)
    if !fieldNames.isEmpty { storage.fields = FieldList(untrusted: fieldNames, fieldValues) }
    return URLRequest(storage)
  }

  // MARK: - As bytes

  /// Maximum size of resume data, in bytes. Larger data is not ours, and would only fill the memory.
  static let bytesMax = 1 << 20
  /// The magic number. Its last character is the version.
  private static let magic = Array("LarkspurResume1".utf8)

  /// The reason for which resume data is not accepted.
  enum Refusal: Error, Hashable {
    case tooLong
    case foreign
    case changed
    case unreadable
  }

  /// - Returns: The bytes, or `nil` if the value cannot be encoded.
  func encoded(key: [UInt8]) -> Data? {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    guard let content = try? encoder.encode(self) else { return nil }
    guard let code = MessageAuthentication.code(of: Self.magic + content, key: key) else { return nil }
    let data = Data(Self.magic + code) + content
    return data.count <= Self.bytesMax ? data : nil
  }

  /// Decodes resume data. Verifies the authentication code before it decodes the content.
  static func decoded(_ data: Data, key: () -> [UInt8]?) throws(Refusal) -> ResumeData {
    guard data.count <= bytesMax else { throw .tooLong }
    let bytes = [UInt8](data)
    let headCount = magic.count + MessageAuthentication.codeBytes
    guard bytes.count > headCount, bytes.starts(with: magic), let key = key() else { throw .foreign }
    let content = Array(bytes[headCount...])
    guard let code = MessageAuthentication.code(of: magic + content, key: key),
      MessageAuthentication.isEqual(code, Array(bytes[magic.count..<headCount]))
    else { throw .changed }
    guard let decoded = try? PropertyListDecoder().decode(ResumeData.self, from: Data(content)),
      PartialFiles.isName(decoded.fileName), decoded.point.offset > 0,
      decoded.point.total.map({ $0 >= decoded.point.offset }) ?? true, decoded.point.validator.isFieldValue
    else { throw .unreadable }
    return decoded
  }
}

/// The point at which a download task continues, or the refusal of its resume data.
enum DecodedResumeData: Sendable {
  case point(ResumeData, encoded: Data)
  case refused(ResumeData.Refusal)

  init(_ data: Data, _ files: PartialFiles) {
    do throws(ResumeData.Refusal) {
      let decoded = try ResumeData.decoded(data, key: { files.key(isCreating: false) })
      guard decoded.request != nil else { throw .unreadable }
      self = .point(decoded, encoded: data)
    } catch {
      self = .refused(error)
    }
  }

  var request: URLRequest? {
    switch self {
    case .point(let data, _): data.request
    case .refused: nil
    }
  }
}

extension URLError {
  /// Creates the error of a refusal. As on Darwin, the error is that of a task without a URL.
  init(_ refusal: ResumeData.Refusal) {
    let message =
      switch refusal {
      case .tooLong: "the resume data is too long to be any"
      case .foreign: "this is no resume data, or it was made by another user or a version that is not known"
      case .changed: "the resume data has been changed, or was made by another user"
      case .unreadable: "the resume data cannot be read"
      }
    self = .make(.unsupportedURL, message, underlying: nil)
  }

  /// The data with which a failed download can be continued: see ``URLSession/downloadTask(withResumeData:)``. `nil` if
  /// the download can only start over.
  public var downloadTaskResumeData: Data? { userInfo[URLSessionDownloadTaskResumeData] as? Data }

  /// The data with which a failed upload can be continued: see ``URLSession/uploadTask(withResumeData:)``. `nil` if the
  /// upload can only start over: the server does not support resumable uploads, or its upload resource is gone.
  public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }

  /// Whether the bytes of the failed download go with it: a file that cannot be written is on a disk that is full.
  var isOfFullDisk: Bool { code == .cannotWriteToFile }

  func adding(resumeData: Data, for key: String) -> URLError {
    var info = userInfo
    info[key] = resumeData
    return URLError(code, userInfo: info)
  }
}
