import Foundation
import LarkspurHTTP

/// What resume data says: the request, how far its download is, and in which partial file.
///
/// On the outside it is opaque: a magic number with the version, a code that shows that this user made it, and a property
/// list. So nobody can make us read, write or remove a file by giving us resume data, nor send a request that the program
/// never made.
///
/// The request is kept with the fields that the program had set, `Authorization` and `Cookie` among them: without them a
/// download that needs them could not go on. What the session adds (cookies, credentials, the configuration's fields) is
/// not kept; the session that resumes adds its own. So resume data is to be guarded as well as the request itself.
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
  /// The name of the partial file, within the folder of partial files.
  var fileName: String

  /// Nil: a request of this kind cannot be asked to go on. It has to be a GET without a body, which asks for the whole and
  /// under no condition of its own.
  init?(_ request: URLRequest, _ point: ResumePoint, fileName: String) {
    guard Self.isResumable(request), let url = request.url?.absoluteString else { return nil }
    let own = request.own
    self.url = url
    mainDocument = own.mainDocumentURL?.absoluteString
    fieldNames = own.fields?.all.map(\.name) ?? []
    fieldValues = own.fields?.all.map(\.value) ?? []
    timeout = own.timeoutInterval
    cachePolicy = own.cachePolicy.rawValue
    networkServiceType = own.networkServiceType.rawValue
    flags = own.flags.rawValue
    self.point = point
    self.fileName = fileName
  }

  static func isResumable(_ request: URLRequest) -> Bool {
    guard request.own.method == "GET", case .none = request.own.body else { return false }
    let own = request.own.fields?.all ?? []
    return !own.contains { field in conditions.contains { field.name.isCaseless($0) } }
  }

  private static let conditions = [
    "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
  ]

  /// The request that the download was begun with.
  var request: URLRequest? {
    guard let url = URL(string: url), fieldNames.count == fieldValues.count else { return nil }
    let storage = RequestStorage(url: url)
    storage.mainDocumentURL = mainDocument.flatMap { URL(string: $0) }
    storage.timeoutInterval = timeout?.isNaN == true ? nil : timeout
    storage.cachePolicy = NSURLRequest.CachePolicy(rawValue: cachePolicy) ?? .useProtocolCachePolicy
    storage.networkServiceType = NSURLRequest.NetworkServiceType(rawValue: networkServiceType) ?? .default
    storage.flags = RequestStorage.Flags(rawValue: flags).intersection(.all)
    if !fieldNames.isEmpty { storage.fields = RequestFields(untrusted: fieldNames, fieldValues) }
    return URLRequest(storage)
  }

  // MARK: - As bytes

  /// More would not be ours: somebody wants to fill our memory.
  static let bytesMax = 1 << 20
  /// The last character is the version.
  private static let magic = Array("LarkspurResume1".utf8)

  /// Why bytes are not accepted.
  enum Refusal: Error, Hashable {
    case tooLong
    case foreign
    case changed
    case unreadable
  }

  /// Nil: it cannot be encoded.
  func encoded(key: [UInt8]) -> Data? {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    guard let content = try? encoder.encode(self) else { return nil }
    guard let code = MessageAuthentication.code(of: Self.magic + content, key: key) else { return nil }
    let data = Data(Self.magic + code) + content
    return data.count <= Self.bytesMax ? data : nil
  }

  /// Nothing of the bytes is believed before their code has been checked.
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

/// What a download task is to go on from.
enum Resumption: Sendable {
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
  /// As Darwin says it: a task that has no URL.
  init(_ refusal: ResumeData.Refusal) {
    let words =
      switch refusal {
      case .tooLong: "the resume data is too long to be any"
      case .foreign: "this is no resume data, or it was made by another user or a version that is not known"
      case .changed: "the resume data has been changed, or was made by another user"
      case .unreadable: "the resume data cannot be read"
      }
    self = .make(.unsupportedURL, words, underlying: nil)
  }

  /// What a download that has failed can go on from, with ``URLSession/downloadTask(withResumeData:)``. Nil: it can only
  /// start over.
  public var downloadTaskResumeData: Data? { userInfo[URLSessionDownloadTaskResumeData] as? Data }

  /// What an upload that has failed can go on from. Nil in this version: see
  /// ``URLSessionUploadTask/cancel(byProducingResumeData:)``.
  public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }

  func adding(resumeData: Data) -> URLError {
    var info = userInfo
    info[URLSessionDownloadTaskResumeData] = resumeData
    return URLError(code, userInfo: info)
  }
}
