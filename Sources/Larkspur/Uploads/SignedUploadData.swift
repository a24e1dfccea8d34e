import Foundation
import LarkspurHTTP

/// The resume data of uploads as programs see it: a magic number with the version, an authentication code, and the
/// encoded `UploadResumeData`.
///
/// The code proves that this user made the data, as for downloads (`ResumeData`), with the key of the directory of
/// partial files: foreign data could make a session send any file that the user can read.
enum SignedUploadData {
  /// Its last character is the version.
  private static let magic = Array("LarkspurUploads1".utf8)

  /// - Returns: `nil` if the data cannot be encoded or there is no key.
  static func encode(_ data: UploadResumeData, files: PartialFiles = .standard) -> Data? {
    guard let content = data.encoded(), let key = files.key(isCreating: true),
      let code = MessageAuthentication.code(of: magic + content, key: key)
    else { return nil }
    return Data(magic + code + content)
  }

  /// Verifies the authentication code, and then decodes the content.
  static func decode(_ data: Data, files: PartialFiles = .standard) throws(ResumeData.Refusal) -> UploadResumeData {
    let headCount = magic.count + MessageAuthentication.codeBytes
    guard data.count <= UploadResumeData.bytesMax + headCount else { throw .tooLong }
    let bytes = [UInt8](data)
    guard bytes.count > headCount, bytes.starts(with: magic), let key = files.key(isCreating: false) else {
      throw .foreign
    }
    let content = Array(bytes[headCount...])
    guard let code = MessageAuthentication.code(of: magic + content, key: key),
      MessageAuthentication.isEqual(code, Array(bytes[magic.count..<headCount]))
    else { throw .changed }
    do throws(UploadResumeData.Refusal) {
      return try UploadResumeData.decoded(content)
    } catch {
      throw .unreadable
    }
  }
}
